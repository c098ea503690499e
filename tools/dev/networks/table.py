"""All networks of docs/reference/networks.md, by family."""

from __future__ import annotations

from tcir.tools.dev.networks import decoders, diffusion, encoders, pairs, vision, written

FAMILIES = {
    "Encoders of text (transformers)": encoders.NETWORKS,
    "Language models (transformers)": decoders.NETWORKS,
    "Encoders and decoders, speech, text and images (transformers)": pairs.NETWORKS,
    "Images (transformers)": vision.NETWORKS,
    "Diffusion (diffusers)": diffusion.NETWORKS,
    "Written by hand": written.NETWORKS,
}
NETWORKS = {network.name: network for family in FAMILIES.values() for network in family}
assert len(NETWORKS) == sum(map(len, FAMILIES.values()))

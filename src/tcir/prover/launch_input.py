"""Describes a launch as sentryward's input (its schema ``spverify.kernel-input/v1``)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, TypeAlias

from tcir.errors import IncompleteError
from tcir.program.launch import Launch

Json: TypeAlias = Mapping[str, Any]
SCHEMA = "spverify.kernel-input/v1"
SWIZZLES = {"NONE": "none", "128B_ATOM_32B": "128B_atom32B", "128B_ATOM_64B": "128B_atom64B"}


def launch_input(launch: Launch, grid: tuple[int, int, int]) -> Json:
    """Describes a launch for the prover: sizes, one object per buffer, tensor maps.

    grid: the CTAs that are to be judged: the launch's grid, or a part of it

    IncompleteError for a parameter that is neither a pointer nor a tensor map.
    """
    declared, maps = [], []
    for number, param in enumerate(launch.params):
        kind = param["kind"]
        name = f"workspace{number}" if kind == "workspace" else f"buffer{param['arg']}"
        if kind == "tensor_map":
            declared.append({"parameter": number, "type": "tensor_map", "object": name})
            maps.append({"parameter": number, "object": name, **_descriptor(param)})
        elif kind in ("pointer", "workspace"):
            declared.append(
                {"parameter": number, "type": "pointer", "space": "global", "object": name}
            )
        else:
            raise IncompleteError(
                f"@{launch.name}, parameter {number}: expected a pointer or a tensor map, got a "
                f"{kind}, whose value sentryward would need"
            )
    sizes: dict[str, object] = {
        "grid_dim": list(grid),
        "block_dim": list(launch.block),
        "dynamic_shared_bytes": launch.dynamic_smem,
    }
    if launch.cluster != (1, 1, 1):
        sizes["cluster_dim"] = list(launch.cluster)
    return {
        "schema": SCHEMA,
        "entry": launch.name,
        "launch": sizes,
        "declarations": declared,
        "arguments": [],
        "tma_descriptors": maps,
    }


def first_ctas(launch: Launch, ctas: int | None) -> tuple[int, int, int]:
    """Extents of a smaller grid of about `ctas` CTAs in whole clusters, which is filled along x,
    then y, then z. None stands for the whole grid.
    """
    if ctas is None or prod(launch.grid) <= ctas:
        return launch.grid
    left, sizes = max(ctas, prod(launch.cluster)), []
    for axis, (most, cluster) in enumerate(zip(launch.grid, launch.cluster, strict=True)):
        share = left // prod(launch.cluster[axis:]) * cluster
        sizes.append(max(cluster, min(most, share)))
        left = max(1, left // sizes[-1])
    x, y, z = sizes
    return x, y, z


def _descriptor(param: Json) -> Json:
    """Describes a tensor map; an im2col map is described as tiles of as many bytes
    (`rewritings.IM2COL`)."""
    dims, swizzle = list(param["dims"]), param.get("swizzle", "NONE")
    if param["mode"] == "tiled":
        box = list(param["box"])
    else:
        box = [param["channels_per_pixel"], param["pixels_per_column"], *[1] * (len(dims) - 2)]
        dims = [max(pair) for pair in zip(dims, box, strict=True)]
    return {
        "element_type": param["dtype"],
        "rank": len(dims),
        "global_shape": dims,
        "global_strides_bytes": list(param.get("strides_bytes", param.get("strides", ()))),
        "box_shape": box,
        "element_strides": list(param.get("element_strides", [1] * len(dims))),
        "swizzle": SWIZZLES.get(swizzle, swizzle),
        "interleave": param.get("interleave", "NONE").lower(),
        "oob_fill": param.get("oob_fill", "zero"),
    }

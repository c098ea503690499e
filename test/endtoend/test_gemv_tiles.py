"""gemv-padded-n with tiles of 256 rows and stages of other widths: every level equal."""

from __future__ import annotations

from typing import Any

import pytest

import tcir
from tcir.sweep.space import Combination

from .block_scaled_text import UE8M0, BlockScaled
from .test_gemv_options import right_at_every_level

SMALL = BlockScaled(m=24, k=256)
CASES: dict[str, tuple[BlockScaled, str]] = {
    "a pair, the second CTA without rows": (SMALL, "m-tile=256 pad-n=32"),
    "two pairs, columns, a batch": (
        BlockScaled(m=300, n=20, k=512, batch=2, out="bf16"), "m-tile=256 pad-n=32 k-tile=128",
    ),
    "a pair of MXFP4": (
        BlockScaled(m=130, k=512, scale=UE8M0, block=32), "m-tile=256 pad-n=32",
    ),
    "stages of 128": (BlockScaled(m=130, n=4, k=320), "k-tile=128"),
    "a batch, tiles of CTAs that are taken over": (
        BlockScaled(m=300, n=3, k=320, batch=2, out="bf16"), "scheduler=clc",
    ),
    "pairs that are taken over": (
        BlockScaled(m=300, k=512), "scheduler=clc m-tile=256 pad-n=32",
    ),
    "a cluster, the last CTA without rows": (
        BlockScaled(m=300, n=20, k=320, out="bf16"), "cluster=4x1 pad-n=32",
    ),
    "a cluster of MXFP4, a batch": (
        BlockScaled(m=130, k=512, scale=UE8M0, block=32, batch=2), "cluster=2x1",
    ),
    "stages of 64, in two parts": (
        BlockScaled(m=130, k=512), "k-tile=64 schedule=split-k splits=2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_level(name: str) -> None:
    case, options = CASES[name]
    ptx = right_at_every_level(case, f"gemv-padded-n{{{options}}}")
    assert ("cta_group::2" in ptx) == ("m-tile=256" in options)
    assert ("clusterlaunchcontrol" in ptx) == ("clc" in options)
    assert ("bytes.multicast::cluster [" in ptx) == ("cluster" in options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m_tile": 64}, "m-tile to be 128 or 256, got 64: .* take m-tile=128"),
        ({"m_tile": 256}, r"multiple of 32 up to 128 with m-tile=256, got 16 .*; take pad-n=32"),
        (
            {"m_tile": 256, "pad_n": 32, "schedule": "split-k"},
            "schedule=auto or single with m-tile=256, got split-k: .*; leave one of them out",
        ),
        ({"cluster": "4x1"}, "multiple of 32 with cluster=4x1, got 16: .*; take pad-n=32"),
        ({"scheduler": "fair"}, "expected scheduler to be one of static, clc, got fair"),
        ({"k_tile": 100}, "k-tile to be one of 64, 128, 256, got 100 .*; take k-tile=256, or 0"),
    ],
)
def test_illegal(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tcir.Error, match=message):
        tcir.compile(SMALL.linalg(), "gemv-padded-n", **options)


def test_a_sweep_knows_the_tiles() -> None:
    text = "gemv-padded-n{m-tile=256 pad-n=32 k-tile=128}"
    assert str(Combination.parse(text)).count("tile") == 2
    made = [tcir.compile(SMALL.linalg(), "gemv-padded-n", k_tile=k) for k in (64, 128, 256)]
    assert len({kernel.launches.launches[-1].dynamic_smem for kernel in made}) == 3

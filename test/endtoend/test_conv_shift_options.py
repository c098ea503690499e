"""conv-shift-reuse with the schedulers and clusters of other products: every level, the PTX beside
numpy; breaks; refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passmanager.options import OptionValue

from .breaking import Edit, change_text, erase, run_broken, set_attribute, walk
from .cases import SAME_3x3
from .linalg_text import Conv
from .oracle import convolution, operands
from .test_conv_compositions import CLUSTER, STORED, TAKEN_OVER, Case

PIPELINE = "conv-shift-reuse"
TWO = Conv(1, 7, 9, 8, 32, 3, 3, SAME_3x3, out="f16")
"""Two tiles of pixels, two of channels with n-tile=16."""
ODD = Conv(1, 12, 11, 8, 32, 3, 3, SAME_3x3, strides=(2, 1), element="bf16", out="bf16")
LONG = Conv(1, 14, 34, 8, 16, 1, 3, (0, 0, 1, 1))
"""Five tiles of pixels in rows of 34: one short of whole clusters."""
CASES = [
    Case(TWO, "persistent=true ctas=1 n-tile=16", ".ashift"),
    Case(TWO, "persistent=true ctas=1 tiling=packed halo=refresh n-tile=16", ".4x256b"),
    Case(ODD, "cluster=2x1 n-tile=32", CLUSTER),
    Case(ODD, "persistent=true scheduler=clc n-tile=16", TAKEN_OVER),
    Case(ODD, "epilogue-warps=8 n-tile=32", ".ashift"),
    Case(ODD, "persistent=true ctas=1 acc-stages=1", ".ashift"),
    Case(LONG, "persistent=true scheduler=clc tiling=packed", TAKEN_OVER),
    Case(LONG, "cluster=2x1 persistent=true ctas=2 halo=refresh halo-load=w128 tiling=packed",
         CLUSTER),
    Case(LONG, "persistent=true ctas=2 halo=refresh shift=shift", "tcgen05.shift"),
    Case(LONG, "cluster=2x1 tiling=linear", CLUSTER),
    Case(ODD, "n-tiles=2 n-tile=16", ".ashift"),
    Case(ODD, "epilogue-tile=128x32 n-tile=32", ".32x32b.x32"),
    Case(ODD, "split-k=3", ".ashift"),
    Case(ODD, "cta-group=2", "cta_group::2"),
    Case(LONG, "cta-group=2 tiling=packed halo=refresh halo-load=w128 n-tiles=2 n-tile=32",
         "cta_group::2"),
    Case(TWO, "tiling=linear n-tiles=2 n-tile=16 split-k=3"),
    Case(TWO, "cta-group=2 split-k=3 persistent=true scheduler=clc", "cta_group::2"),
    Case(ODD, "store=tma", STORED.replace(".2d", ".4d")),
    Case(TWO, "store=tma split-k=3 persistent=true ctas=1 n-tile=16", STORED.replace(".2d", ".5d")),
    Case(LONG, "store=tma halo=refresh cluster=2x1 n-tile=32", STORED.replace(".2d", ".4d")),
]  # fmt: skip


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_level(case: Case) -> None:
    kernel = tcir.compile(
        case.conv.text(), f"{PIPELINE}{{{case.options}}}", validate=True, orders=2
    )
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]
    assert case.instruction in kernel.ptx
    x, w = operands(case.conv)
    want = convolution(case.conv, x, w)
    out = np.zeros_like(want)
    outcome = kernel(x, w, out, order_seed=1)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)


def test_a_cluster_loads_its_filters_once() -> None:
    """Of two CTAs along the pixels each loads half of the filters, for both."""
    loaded = []
    for cluster in ("1x1", "2x1"):
        kernel = tcir.compile(ODD.text(), PIPELINE, cluster=cluster, n_tile=32)
        text = kernel.ir["tile-conv-shift-reuse"]
        loads = re.findall(r'"tc\.tma_load"\(%1,.*?nbytes = (\d+)', text)
        loaded.append(sum(map(int, loads)))
    assert loaded == [3 * 32 * 32, 3 * 32 * 16], "bytes of three taps, of 16 channels or K"


def _first_part(module: Any) -> None:
    """Every CTA loads the first part of the filters."""
    change_text(r'"tc\.cta_rank"\(\) : \(\) -> index', "arith.constant 0 : index")(module)


def _one_copy(module: Any) -> None:
    """Both accumulators shift one copy of the pixels."""
    tiles = [op.results[0] for op in walk(module, "tc.tmem_tile")]
    first, second = [tile for tile in tiles if "bf16" in str(tile.type)]
    second.replace_all_uses_with(first)


BREAKS: list[tuple[str, Conv, str, str, Edit]] = [
    ("the sums are not set to zero for the next tile", TWO, "persistent=true ctas=1",
     "tile-conv-shift-reuse", change_text(r"arith\.cmpi ne, %\w+, %c0\w*", "arith.constant true")),
    ("both CTAs load the first part", ODD, "cluster=2x1 n-tile=32", "tile-conv-shift-reuse",
     _first_part),
    ("a part is not sent to the other CTA", ODD, "cluster=2x1 n-tile=32", "tile-conv-shift-reuse",
     change_text("cta_mask = 3", "cta_mask = 1")),
    ("the response is not awaited", ODD, "persistent=true scheduler=clc", "cluster-launch-control",
     erase("tc.mbarrier_wait", -1)),
    ("the copy is overwritten while it is shifted", TWO, "persistent=true ctas=1 n-tile=16",
     "assign-roles", erase("tc.mbarrier_wait", 1)),
    ("both tiles have the same filters", ODD, "n-tiles=2 n-tile=16", "tile-conv-shift-reuse",
     change_text(r"(arith\.addi %\w+), %c16 : index", r"\1, %c0 : index")),
    ("both accumulators shift one copy", ODD, "n-tiles=2 n-tile=16", "assign-roles", _one_copy),
    ("each part sums the same filter rows", TWO, "split-k=3", "tile-conv-shift-reuse",
     change_text(r"%block_id_z = gpu.block_id z", "%block_id_z = arith.constant 0 : index")),
    ("each part has the steps of all", TWO, "split-k=3", "tile-conv-shift-reuse",
     change_text(r"(scf\.for %\w+ = %c0 to )%c1 ", r"\1%c3 ")),
    ("the halves of a pair are the same", ODD, "cta-group=2", "tile-conv-shift-reuse",
     _first_part),
    ("a copy is for one CTA of a pair", ODD, "cta-group=2", "tile-conv-shift-reuse",
     set_attribute("tc.cp", "cta_group", "1 : i64")),
    ("a product is of one CTA of a pair", ODD, "cta-group=2", "tile-conv-shift-reuse",
     set_attribute("tc.mma", "cta_group", "1 : i64")),
    ("the box is stored before it is written", ODD, "store=tma", "assign-roles",
     erase("tc.fence", kind='"proxy.async"')),
    ("few columns are loaded", ODD, "epilogue-tile=128x32 n-tile=32", "tile-conv-shift-reuse",
     change_text(r"(scf\.for %\w+ = %c0 to %c32 step )%c32 ", r"\1%c64 ")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "conv", "options", "at", "edit"), BREAKS, ids=[each[0] for each in BREAKS]
)
def test_breaks_are_caught(what: str, conv: Conv, options: str, at: str, edit: Edit) -> None:
    passes = tcir.named_pipeline(f"{PIPELINE}{{{options}}}")
    caught = run_broken(conv.text(), passes, at, edit, orders=2)
    assert caught.at == at, caught.text or f"nothing noticed: {what}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ctas": 2}, "take persistent=true"),
        ({"persistent": True, "tiling": "linear"}, "expected persistent=false with tiling=linear"),
        ({"cluster": "1x2"}, "1x1 or 2x1 or 4x1 or 8x1 with taps that shift one tile"),
        ({"cluster": "2x1", "n_tile": 16}, "expected n-tile to be a multiple of 32 "),
        ({"cta_group": 2, "tiling": "linear"}, "lane masks of both CTAs"),
        ({"store": "tma", "tiling": "packed"}, "expected store=direct with tiling=packed"),
        ({"store": "tma", "epilogue_tile": "64x32"}, "take epilogue-tile=32x32"),
        ({"split_k": 2}, "or one of 3 (all parts must have the same number of the 3"),
        ({"n_tiles": 33, "n_tile": 16}, "expected n-tiles of at most 32 with 16 columns each"),
    ],
)
def test_rejected(given: dict[str, OptionValue], message: str) -> None:
    with pytest.raises(tcir.Error) as caught:
        tcir.compile(ODD.text(), PIPELINE, **given)
    assert message in str(caught.value)

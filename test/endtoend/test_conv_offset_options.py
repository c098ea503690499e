"""conv-smem-offset with the schedulers, clusters and pairs of other products: every level, the PTX
beside numpy; breaks; refusals."""

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

PIPELINE = "conv-smem-offset"
CONV = Conv(2, 20, 20, 16, 40, 3, 3, SAME_3x3, out="f16")
"""Several tiles of pixels, three of channels."""
ODD = Conv(1, 17, 14, 48, 32, 3, 3, SAME_3x3)
"""Three tiles of pixels: one short of whole clusters."""
STRIDED = Conv(3, 12, 11, 32, 64, 3, 3, SAME_3x3, strides=(2, 1), element="bf16", out="bf16")
SMALL = Conv(3, 6, 7, 16, 32, 3, 3, SAME_3x3, out="f16")
"""Two tiles of pixels, whose lanes past the last image store nothing."""
TALL = Conv(1, 9, 7, 24, 16, 4, 2, (1, 1, 0, 1), strides=(2, 1))
"""Four filter rows, of two columns; a step has 16 of 24 channels, then 8."""
WIDE = Conv(1, 9, 20, 16, 40, 3, 3, SAME_3x3)
"""Rows of 20, in lines of 32 positions where TMA stores 16 at a time."""
CASES = [
    Case(CONV, "persistent=true ctas=2 n-tile=16"),
    Case(CONV, "persistent=true ctas=2 n-tile=16", target="sm_90a"),
    Case(ODD, "cluster=2x1", CLUSTER),
    Case(ODD, "cluster=2x1 n-tile=32", CLUSTER, "sm_90a"),
    Case(ODD, "cta-group=2", "cta_group::2"),
    Case(ODD, "persistent=true scheduler=clc", TAKEN_OVER),
    Case(STRIDED, "cluster=4x1 persistent=true ctas=4", CLUSTER),
    Case(STRIDED, "cluster=2x1 persistent=true ctas=2 n-tile=64", CLUSTER, "sm_90a"),
    Case(STRIDED, "cta-group=2 persistent=true ctas=2 n-tile=32", "cta_group::2"),
    Case(STRIDED, "cta-group=2 persistent=true scheduler=clc", TAKEN_OVER),
    Case(STRIDED, "epilogue-warps=8 n-tile=32"),
    Case(SMALL, "split-k=3"),
    Case(TALL, "split-k=2 persistent=true ctas=2"),
    Case(SMALL, "split-k=3 cluster=2x1 n-tile=32", CLUSTER),
    Case(SMALL, "split-k=3", target="sm_90a"),
    Case(STRIDED, "store=tma", STORED.replace(".2d", ".4d"), "sm_90a"),
    Case(
        WIDE,
        "store=tma split-k=3 n-tile=32 persistent=true ctas=2",
        STORED.replace(".2d", ".5d"),
        "sm_90a",
    ),
    Case(TALL, "split-k=2 cluster=2x1 n-tile=32 persistent=true ctas=2", CLUSTER, "sm_90a"),
    Case(CONV, "n-tiles=2 n-tile=16"),
    Case(STRIDED, "n-tiles=2 n-tile=32 cta-group=2", "cta_group::2"),
    Case(CONV, "epilogue-tile=128x32 n-tile=32", ".32x32b.x32"),
    Case(STRIDED, "store=tma", STORED.replace(".2d", ".4d")),
    Case(
        SMALL, "store=tma epilogue-tile=128x16 persistent=true ctas=1", STORED.replace(".2d", ".4d")
    ),
    Case(TALL, "store=tma split-k=2 persistent=true ctas=2", STORED.replace(".2d", ".5d")),
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_level(case: Case) -> None:
    pipeline = f"{PIPELINE}{{{case.options}}}"
    kernel = tcir.compile(case.conv.text(), pipeline, target=case.target, validate=True, orders=2)
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]
    assert case.instruction in kernel.ptx
    x, w = operands(case.conv)
    want = convolution(case.conv, x, w)
    out = np.zeros_like(want)
    outcome = kernel(x, w, out, order_seed=1)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_cluster_loads_its_filters_once(target: str) -> None:
    """Of four CTAs along the pixels each loads a quarter of the filters, for all."""
    boxes = []
    for cluster in ("1x1", "4x1"):
        kernel = tcir.compile(STRIDED.text(), PIPELINE, target=target, cluster=cluster, n_tile=64)
        text = kernel.ir["tile-conv-smem-offset"]
        boxes += re.findall(r"make_tensor_map.*box = array<i64: (\d+), 32, 1, 1>", text)
    assert boxes == ["64", "16"]


def _other_part(module: Any) -> None:
    """Every CTA loads the first part of the filters."""
    change_text(r'"tc\.cta_rank"\(\) : \(\) -> index', "arith.constant 0 : index")(module)


def _one_accumulator(module: Any) -> None:
    first, second = (op.results[0] for op in walk(module, "tc.tmem_tile"))
    second.replace_all_uses_with(first)


BREAKS: list[tuple[str, str, str, str, Edit]] = [
    (what, target, options, at, edit)
    for target, options in (
        ("sm_100a", "cluster=2x1 persistent=true ctas=2 stages=1"),
        ("sm_90a", "cluster=2x1 n-tile=32"),
    )
    for what, at, edit in (
        ("both CTAs load the first part", "tile-conv-smem-offset", _other_part),
        ("a part is not sent to the other CTA", "tile-conv-smem-offset",
         change_text("cta_mask = 3", "cta_mask = 1")),
        ("a slot is free when its own CTA has read it", "place-barriers",
         change_text(r"arrivals = (2|8|16) ", "arrivals = 1 ")),
        ("the bytes of the own part are awaited", "assign-roles",
         change_text(r"(expect_tx\".*nbytes = )(\d+)", lambda m: f"{m[1]}{int(m[2]) - 2048}")),
    )
] + [
    ("the halves of a pair are the same", "sm_100a", "cta-group=2", "tile-conv-smem-offset",
     _other_part),
    ("a product of a pair is of one CTA", "sm_100a", "cta-group=2", "tile-conv-smem-offset",
     set_attribute("tc.mma", "cta_group", "1 : i64")),
    ("each part sums the same filter rows", "sm_100a", "split-k=3", "tile-conv-smem-offset",
     change_text(r"%block_id_z = gpu.block_id z", "%block_id_z = arith.constant 0 : index")),
    ("each part has the steps of all", "sm_100a", "split-k=3", "tile-conv-smem-offset",
     change_text(r"(scf\.for %\w+ = %c0 to )%c1 ", r"\1%c3 ")),
    ("each part sums the same filter rows", "sm_90a", "split-k=3", "tile-conv-smem-offset",
     change_text(r"arith\.addi %block_id_z, (%\w+)", r"arith.addi %c0, \1")),
    ("each part is stored as the first", "sm_90a", "split-k=3", "tile-conv-smem-offset",
     change_text(r"(store_fragment.*)%block_id_z", r"\1%c0")),
    ("lines of the walk are longer than those stored", "sm_90a", "store=tma",
     "tile-conv-smem-offset",
     change_text(r"(store_fragment_staged.*walk = array<i64: \d+, )16", r"\g<1>32")),
    ("the kernel ends before its stores", "sm_90a", "store=tma", "place-barriers",
     erase("tc.bulk_wait", -1)),
    ("the response is not awaited", "sm_100a", "persistent=true scheduler=clc",
     "cluster-launch-control", erase("tc.mbarrier_wait", -1)),
    ("both tiles have the same filters", "sm_100a", "n-tiles=2 n-tile=16", "tile-conv-smem-offset",
     change_text(r"(arith\.addi %\w+), %c16 : index", r"\1, %c0 : index")),
    ("both tiles add to one accumulator", "sm_100a", "n-tiles=2 n-tile=16",
     "tile-conv-smem-offset", _one_accumulator),
    ("a box begins between two rows", "sm_100a", "store=tma", "tile-conv-smem-offset",
     change_text(r"(tma_store.*row = )16 ", r"\g<1>24 ")),
    ("boxes are stored before all warps have written", "sm_100a", "store=tma", "assign-roles",
     erase("tc.warps_barrier", 1)),
]  # fmt: skip


@pytest.mark.parametrize(("what", "target", "options", "at", "edit"), BREAKS)
def test_breaks_are_caught(what: str, target: str, options: str, at: str, edit: Edit) -> None:
    passes = tcir.named_pipeline(f"{PIPELINE}{{{options}}}")
    caught = run_broken(ODD.text(), passes, at, edit, orders=2, target=target)
    assert caught.at == at, caught.text or f"nothing noticed: {what}"


@pytest.mark.parametrize(
    ("target", "given", "message"),
    [
        ("sm_100a", {"ctas": 2}, "take persistent=true"),
        ("sm_100a", {"cluster": "1x2"}, "1x1 or 2x1 or 4x1 or 8x1 with taps that read rows of one"),
        ("sm_90a", {"cluster": "2x1", "n_tile": 16}, "expected n-tile to be a multiple of 32 "),
        ("sm_100a", {"split_k": 2}, "or one of 3 (all parts must have the same number of the 3"),
        ("sm_90a", {"split_k": 2}, "or one of 3 (all parts must have the same number of the 3"),
        ("sm_100a", {"store": "tma", "epilogue_tile": "32x16"}, "take epilogue-tile=128x16"),
        ("sm_100a", {"n_tiles": 0}, "n-tiles must be at least 1, got 0"),
        ("sm_90a", {"cta_group": 2}, "only tcgen05 has pairs of CTAs"),
    ],
)  # fmt: skip
def test_rejected(target: str, given: dict[str, OptionValue], message: str) -> None:
    with pytest.raises(tcir.Error) as caught:
        tcir.compile(CONV.text(), PIPELINE, target=target, **given)
    assert message in str(caught.value)

"""conv-shift-reuse with the schedulers and clusters of other products: every level, the PTX beside
numpy; breaks; refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passmanager.options import OptionValue

from .breaking import Edit, change_text, erase, run_broken
from .cases import SAME_3x3
from .linalg_text import Conv
from .oracle import convolution, operands
from .test_conv_compositions import CLUSTER, TAKEN_OVER, Case

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
    ],
)
def test_rejected(given: dict[str, OptionValue], message: str) -> None:
    with pytest.raises(tcir.Error) as caught:
        tcir.compile(ODD.text(), PIPELINE, **given)
    assert message in str(caught.value)

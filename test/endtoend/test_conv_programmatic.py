"""Convolutions by programmatic dependent launch: every level equal, and what misses the wait is a
race."""

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir.passmanager.pipeline import as_pipeline

from .breaking import Edit, PtxCheck, erase, pick, run_broken
from .cases import SAME_3x3
from .linalg_text import Conv
from .oracle import convolution, operands

PASS, WAIT = "programmatic-launch", "tc.grid_wait"
SMALL = Conv(1, 6, 7, 16, 24, 3, 3, SAME_3x3, out="f16")
REPACKED = Conv(1, 5, 5, 3, 16, 3, 3, SAME_3x3)
"""Pixels that TMA cannot encode: a launch of its own in front of the convolution."""
HOPPER, BLACKWELL = "sm_90a", "sm_100a"
QUICK = [("conv-smem-offset", HOPPER, SMALL)]
MORE = [
    ("conv", HOPPER, SMALL),
    ("conv", HOPPER, REPACKED),
    ("conv-smem-offset", HOPPER, REPACKED),
    ("conv", HOPPER, Conv(1, 5, 7, 256, 24, 1, 1, out="f16")),
    ("conv", BLACKWELL, SMALL),
    ("conv-smem-offset", BLACKWELL, SMALL),
    ("conv-shift-reuse", BLACKWELL, SMALL),
    ("conv-shift-reuse", BLACKWELL, REPACKED),
    ("layers", HOPPER, REPACKED),
    ("layers", BLACKWELL, REPACKED),
]


@pytest.mark.parametrize(
    ("pipeline", "target", "conv"),
    [*QUICK, *MORE],
    ids=lambda each: getattr(each, "name", each),
)
def test_every_level(pipeline: str, target: str, conv: Conv) -> None:
    kernel = tcir.compile(
        conv.text(), pipeline, target=target, validate=True, orders=2, programmatic=True
    )
    kernel.report.check()
    x, w = operands(conv)
    want = convolution(conv, x, w)
    out = np.zeros_like(want)
    outcome = kernel(x, w, out)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)
    assert kernel.launches.launches[-1].programmatic


def _late(module: object) -> None:
    """The producer waits behind its loads."""
    wait = pick(module, WAIT)
    wait.move_before(pick(module, "tc.grid_launch_dependents"))


BREAKS = {"no wait before the loads": erase(WAIT), "wait behind the loads": _late}


def _pipeline(name: str) -> tcir.Pipeline:
    whole = as_pipeline(name, programmatic=True)
    return tcir.Pipeline(whole.passes[: whole.index(PASS) + 1])


@pytest.mark.parametrize("edit", BREAKS.values(), ids=BREAKS.keys())
def test_a_break_is_seen(edit: Edit) -> None:
    caught = run_broken(SMALL.text(), _pipeline("conv-smem-offset"), PASS, edit, orders=2)
    assert (caught.at, caught.by) == (PASS, "hazard: race"), caught.text
    assert "a launch before this" in caught.text and "griddepcontrol.wait" in caught.text


def test_the_ptx_without_a_wait() -> None:
    kernel = tcir.compile(SMALL.text(), "conv", target=HOPPER, programmatic=True)
    check = PtxCheck(SMALL.text(), kernel)
    assert not check.run(kernel.ptx, orders=1)
    caught = check.run(check.edit(r"griddepcontrol\.wait;", ""), orders=1)
    assert caught.by == "hazard: race", caught.text


def test_without_the_option_no_launch_is_programmatic() -> None:
    kernel = tcir.compile(SMALL.text(), "conv", target=HOPPER)
    assert not kernel.launch_config.programmatic and "griddep" not in kernel.ptx

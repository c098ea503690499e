"""Faults with a name are reported as `named_faults` says; sound and legal kernels are clean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from endtoend.block_scaled_text import BlockScaled
from endtoend.linalg_text import Conv, Matmul
from endtoend.test_matmul_warp import SMALL, Case

import tcir
from tcir.program.inputs import make_inputs, poison
from tcir.run import RunReport, run_ptx

from .named_faults import FAULTS, LEGAL, UNPROMISED, Named

BLOCKED = "blocked_128x4"
CONV = Conv(1, 9, 9, 8, 16, 3, 3)
MAKERS: dict[str, Callable[[], tcir.Kernel]] = {
    # Five steps of K through a ring of four slots; two CTAs.
    "matmul": lambda: tcir.compile(Matmul(256, 64, 320).text(), "gemm", n_tile=64),
    "block-scaled": lambda: tcir.compile(
        BlockScaled(m=128, n=64, k=512).op(BLOCKED, BLOCKED),
        "gemv-padded-n",
        pad_n=64,
        schedule="single",
    ),
    "conv-linear": lambda: tcir.compile(CONV.text(), "conv-shift-reuse", tiling="linear", stages=2),
    "conv-packed": lambda: tcir.compile(CONV.text(), "conv-shift-reuse", tiling="packed", stages=2),
    "warp-96": lambda: Case(40, 24, 96, "f16", options={**SMALL, "copy": "tma"}).compile(),
    "warp-512": lambda: Case(40, 24, 512, "f16", options={**SMALL, "copy": "tma"}).compile(),
    "warp-cp-async": lambda: Case(
        40, 24, 200, "f16", options={**SMALL, "copy": "cp.async"}
    ).compile(),
}
LATE = (1, 3)
"""Completion orders in which waits matter; the table is of the order of issue."""


@dataclass(frozen=True)
class Sound:
    """A kernel, its inputs, and the results of the unmutated text."""

    kernel: tcir.Kernel
    inputs: list[np.ndarray]
    want: list[np.ndarray]

    def says(self, ptx: str, ordering: str, order: int | None = None) -> set[str]:
        """What is reported of the text."""
        report, outputs = launch(self.kernel, self.inputs, ptx, ordering, order)
        assert not report.incomplete, str(report)
        said = {f"{f.severity} {f.code}" for f in report.findings}
        said |= {f"illegal {e.code}" for e in report.errors}
        same = all(np.array_equal(a, b) for a, b in zip(outputs, self.want, strict=True))
        return said if same else said | {"result"}


def launch(
    kernel: tcir.Kernel, inputs: list[np.ndarray], ptx: str, ordering: str, order: int | None
) -> tuple[RunReport, list[np.ndarray]]:
    config = kernel.launch_config
    outputs = [poison(spec) for spec in kernel.signature.outputs]
    report = run_ptx(
        ptx, entry=config.name, grid=config.grid, block=config.block,
        dynamic_smem=config.dynamic_smem, args=config.arguments(inputs, outputs),
        ordering=ordering, order_seed=order, max_instructions=200_000,
    )  # fmt: skip
    return report, outputs


@cache
def sound(name: str) -> Sound:
    kernel = MAKERS[name]()
    inputs = make_inputs(kernel.signature.inputs, 7, "integers")
    report, outputs = launch(kernel, inputs, kernel.ptx, "silicon", None)
    assert report.ok, str(report)
    return Sound(kernel, inputs, outputs)


def check(fault: Named, ordering: str) -> None:
    kernel = sound(fault.kernel)
    ptx = fault.edit(kernel.kernel.ptx)
    assert ptx != kernel.kernel.ptx
    expected, said = getattr(fault, ordering), kernel.says(ptx, ordering)
    assert expected in said if expected else not said, said


@pytest.mark.parametrize("fault", FAULTS + UNPROMISED + LEGAL, ids=lambda fault: fault.name)
def test_as_issued(fault: Named) -> None:
    check(fault, "silicon")
    check(fault, "isa")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_in_late_orders(fault: Named) -> None:
    kernel = sound(fault.kernel)
    ptx = fault.edit(kernel.kernel.ptx)
    for order in LATE:
        said = kernel.says(ptx, "silicon", order)
        assert fault.silicon in said or any(s.startswith(("error", "illegal")) for s in said), said


@pytest.mark.parametrize("name", MAKERS)
def test_unmutated(name: str) -> None:
    kernel = sound(name)
    for ordering in ("silicon", "isa"):
        assert not kernel.says(kernel.kernel.ptx, ordering)


@pytest.mark.parametrize("name", MAKERS)
def test_unmutated_in_late_orders(name: str) -> None:
    kernel = sound(name)
    for order in LATE:
        assert not kernel.says(kernel.kernel.ptx, "silicon", order)


def test_there_are_forty_four() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) == 44
    assert {fault.kernel for fault in FAULTS} == set(MAKERS)
    assert Counter(fault.silicon.split()[0] for fault in FAULTS)["warning"] == 1

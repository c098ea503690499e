"""Compiled kernels in lockstep: results, findings and counters as those of every CTA on its own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.interp.ptx.lockstep.launch import Lockstep
from tcir.interp.ptx.lockstep.repeat import Repetition
from tcir.machine import MachineError
from tcir.program.execution import run_sequence
from tcir.program.memory_image import to_memory
from tcir.run_options import RunOptions

from .block_scaled_oracle import inputs_of
from .block_scaled_text import BlockScaled
from .linalg_text import Conv, Matmul
from .oracle import integers

SAME = (1, 1, 1, 1)
PRODUCTS: list[tuple[str, Any, dict[str, Any], int]] = [
    ("conv-shift-reuse", Conv(1, 16, 33, 64, 64, 3, 3, SAME), {}, 4),
    ("conv-smem-offset", Conv(1, 40, 30, 32, 32, 3, 3, SAME), {}, 3),
    ("gemm", Matmul(256, 512, 96), {}, 3),
    ("gemm", Matmul(300, 520, 72, out="f16"), {}, 1),
    ("matmul", Matmul(256, 256, 64, element="bf16"), {}, 3),
]
"""Pipeline, case, options, and at least how many CTAs follow a leader."""
SCALED = [
    ("gemv-simt", BlockScaled(m=128, k=128), {}, 3),
    ("gemv-padded-n", BlockScaled(m=640, k=128), {}, 3),
    ("gemm", BlockScaled(m=256, k=128, n=256), {}, 1),
]


def compare(
    kernel: tcir.Kernel, inputs: list[Any], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[int] = []

    def noted(ended: Any) -> Any:
        def both(self: Any, cta: Any) -> int:
            followed.append(ended(self, cta))
            return followed[-1]

        return both

    for kind in Lockstep, Repetition:
        monkeypatch.setattr(kind, "ended", noted(kind.ended))
    known: dict[bytes, Any] = {}
    for options in (
        RunOptions(repeats=known),
        RunOptions(hazards="off"),
        RunOptions(order_seed=1),
        RunOptions(order_seed=2, repeats=known),
    ):
        first, second = (
            run_sequence(kernel.ptx, kernel.launches, inputs, kernel.signature.outputs, one)
            for one in (replace(options, lockstep=False), options)
        )
        for a, b in zip(first.outputs, second.outputs, strict=True):
            np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))
        assert first.findings == second.findings
        if options.order_seed is not None:  # how often it polls is the order's
            second.counters["instructions"] = first.counters["instructions"]
        assert first.counters == second.counters
        for n in first.sites:
            last = tuple(size - 1 for size in first.outputs[n].shape)
            assert first.sites[n](last) == second.sites[n](last)
    assert sum(followed) >= 4 * least


@pytest.mark.parametrize(("pipeline", "case", "options", "least"), PRODUCTS)
def test_products(
    pipeline: str, case: Any, options: dict[str, Any], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tcir.compile(case.text(), pipeline, **options)
    inputs = [integers(shape, case.element, n) for n, shape in enumerate(case.shapes[:2])]
    compare(kernel, inputs, least, monkeypatch)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_numbers_of_all_sizes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that are truncated, infinities and NaN; some CTAs. sums beyond 24 bits."""
    kernel = tcir.compile(Matmul(256, 256, 64).text(), "gemm")
    draw = np.random.default_rng(seed)
    inputs = []
    for spec in kernel.signature.inputs:
        values = draw.integers(0, 1 << 16, spec.shape).astype(np.uint16).view(np.float16)
        if seed == 1:
            values = draw.standard_normal(spec.shape).astype(np.float16)
        elif seed == 2:
            values = draw.integers(1, 2048, spec.shape).astype(np.float16)
            values[: spec.shape[0] // 2] %= 7
            values += 1
        inputs.append(values)
    compare(kernel, inputs, 3, monkeypatch)


@pytest.mark.parametrize(("pipeline", "case", "options", "least"), SCALED)
def test_block_scaled(
    pipeline: str, case: Any, options: dict[str, Any], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tcir.compile(case.linalg(), pipeline, **options)
    compare(kernel, [to_memory(a) for a in inputs_of(case).values()], least, monkeypatch)


WAIT = re.compile(r"(\tnot\.pred \t(%p\d+), %p\d+;)(?=\n\t@%p\d+ bra)")


def without_wait(ptx: str, number: int, cta: int) -> str:
    """The kernel with a wait that one CTA does not keep."""
    found = list(WAIT.finditer(ptx))[number]
    skipped = f"\n\tand.pred \t{found[2]}, {found[2]}, %waits;"
    ptx = ptx[: found.end()] + skipped + ptx[found.end() :]
    start = ".reg .pred %waits; .reg .b32 %here; mov.u32 %here, %ctaid.x; "
    body = ptx.index("{", ptx.index(".entry")) + 1
    return f"{ptx[:body]}\n{start}setp.ne.u32 %waits, %here, {cta};\n{ptx[body:]}"


def told(kernel: tcir.Kernel, ptx: str, inputs: list[Any], options: RunOptions) -> tuple[Any, ...]:
    """What a run says: an error, or findings, and the bytes of the results."""
    try:
        outputs = kernel.signature.outputs
        outcome = run_sequence(ptx, kernel.launches, inputs, outputs, options)
    except MachineError as error:
        return error.code, str(error)
    return "", outcome.findings, *(a.tobytes() for a in outcome.outputs)


@pytest.mark.parametrize(("wait", "cta"), [(0, 4), (1, 0), (3, 4)])
def test_a_wait_that_one_cta_does_not_keep(wait: int, cta: int) -> None:
    """A fault in one CTA of a compiled kernel is found under the same orders."""
    kernel = tcir.compile(Conv(1, 16, 33, 64, 64, 3, 3, SAME).text(), "conv-shift-reuse")
    ptx = without_wait(kernel.ptx, wait, cta)
    inputs = [integers(spec.shape, "f16", 1) for spec in kernel.signature.inputs]
    known: dict[bytes, Any] = {}
    for seed in (None, 3):
        options = RunOptions(order_seed=seed, repeats=known, max_instructions=100_000)
        first = told(kernel, ptx, inputs, replace(options, lockstep=False))
        assert first == told(kernel, ptx, inputs, options)
        assert first[0] or first[1], "a fault that neither finds"


def test_the_report_says_how_many_ctas_drew_an_order_of_their_own() -> None:
    conv = Conv(1, 16, 33, 64, 64, 3, 3, SAME)
    report = tcir.validate(conv.text(), "conv-shift-reuse", orders=3)
    words = r"3 completion orders \((\d+) of (\d+) CTAs drew their own\)"
    (found,) = {match.groups() for line in report.passes if (match := re.search(words, str(line)))}
    ctas, launches = int(found[1]), 2
    assert ctas % launches == 0 and launches <= int(found[0]) < ctas

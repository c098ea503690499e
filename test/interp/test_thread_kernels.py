"""A whole convolution kernel at every step below the tile level, bit for bit against numpy.

The kernel is written by hand with its roles (`role_kernels`), converted to threads, spelled and
executed after every upstream pass, and again as the PTX that LLVM makes of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir import codegen
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import Outcome, OutputSpec, thread
from tcir.interp.thread import spell
from tcir.machine import MachineError
from tcir.passes.nvvm.convert_tc_to_nvvm import ConvertTcToNvvm
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.passmanager.pipeline import Pipeline
from tcir.program.execution import run_kernel
from tcir.program.launch import Launch
from tcir.run_options import RunOptions

sys.path.insert(0, str(Path(__file__).parent.parent / "codegen"))
from role_kernels import ShiftReuse

DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}

KERNELS = [
    ShiftReuse(h=3),
    # tails in C and K_out, another filter layout, several images and K_out tiles
    ShiftReuse(n=2, h=3, w=31, c=72, k=40, n_tile=16, filter="fhwc", element="bf16", out="bf16"),
    # 32B swizzle, odd row pitch, one row of five taps, no ring
    ShiftReuse(
        h=2, w=33, c=16, k=33, n_tile=48, r=1, s=5, pads=(0, 0, 1, 3), stages=1, filter="fhwc"
    ),
    # 64B swizzle, two panels of MN-major B, no shift, three slots
    ShiftReuse(h=4, w=9, c=32, k=80, n_tile=80, s=1, pads=(0, 0, 0, 0), stages=3, out="f16"),
]


def operands(kernel: ShiftReuse, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """Small integers without zeros, and the convolution of them."""
    random = np.random.default_rng(seed)
    choices = [-3, -2, -1, 1, 2, 3]
    shape = (
        (kernel.r, kernel.s, kernel.c, kernel.k)
        if kernel.filter == "hwcf"
        else (kernel.k, kernel.r, kernel.s, kernel.c)
    )
    dtype = DTYPES[kernel.element]
    x = random.choice(choices, (kernel.n, kernel.h, kernel.w, kernel.c)).astype(dtype)
    w = random.choice(choices, shape).astype(dtype)
    padded = np.pad(x.astype(np.float64), ((0, 0), kernel.pads[:2], kernel.pads[2:], (0, 0)))
    taps = w.astype(np.float64)
    if kernel.filter == "fhwc":
        taps = taps.transpose(1, 2, 3, 0)
    total = np.zeros((kernel.n, kernel.p, kernel.q, kernel.k))
    for r in range(kernel.r):
        for s in range(kernel.s):
            window = padded[:, r : r + kernel.p, s : s + kernel.q]
            total += np.einsum("nhwc,ck->nhwk", window, taps[r, s])
    return [x, w], total.astype(np.float32).astype(DTYPES[kernel.out])


def stages(kernel: ShiftReuse, change: Callable[[str], str] = str) -> Iterator[tuple[str, Any]]:
    """The module after the conversion and after each upstream pass; `change` edits the first."""
    with ir.Context() as context, ir.Location.unknown():
        tc.load(context)
        module = ir.Module.parse(kernel.text())
        ConvertTcToNvvm().apply(module)
        module = ir.Module.parse(change(str(module)))
        yield "convert-tc-to-nvvm", module
        for name in LOWER_TO_LLVM:
            Pipeline([name]).run(module)
            yield name, module


def clean(outcome: Outcome) -> np.ndarray:
    assert outcome.incomplete == []
    assert [str(finding) for finding in outcome.findings] == []
    return outcome.outputs[0]


@pytest.mark.parametrize(
    "kernel",
    KERNELS,
    ids=str,
)
def test_every_stage_and_the_ptx_of_llvm(kernel: ShiftReuse) -> None:
    inputs, expected = operands(kernel)
    specs = [OutputSpec(expected.shape, expected.dtype)]
    for name, module in stages(kernel):
        found = clean(thread.run(module, "f", inputs, specs))
        np.testing.assert_array_equal(found, expected, err_msg=name)
        if name == LOWER_TO_LLVM[-1]:
            ptx, launch = codegen.emit_ptx(codegen.translate(module)), Launch.from_module(module)
    for seed in (None, 1, 2):
        found = clean(run_kernel(ptx, launch, inputs, specs, RunOptions(seed)))
        np.testing.assert_array_equal(found, expected, err_msg=f"PTX, order {seed}")


def test_the_spelling_assembles_at_every_stage() -> None:
    for _, module in stages(ShiftReuse()):
        cubin = codegen.assemble(spell(module, "f").ptx)
        counts = codegen.sass_counts(codegen.disassemble(cubin.data))
        assert (counts["UTCHMMA"], counts["UTCHMMA.ASHIFT"], counts["UTCCP"]) == (12, 8, 4)


def test_both_readings_move_the_same_bytes() -> None:
    kernel = KERNELS[0]
    inputs, expected = operands(kernel)
    specs = [OutputSpec(expected.shape, expected.dtype)]
    counted = []
    for name, module in stages(kernel):
        counted.append(thread.run(module, "f", inputs, specs).counters)
        if name == LOWER_TO_LLVM[-1]:
            ptx, launch = codegen.emit_ptx(codegen.translate(module)), Launch.from_module(module)
            counted.append(run_kernel(ptx, launch, inputs, specs).counters)
    moved = ("global_to_shared", "shared_to_tmem", "shared_to_tensor", "global_store", "mma")
    assert counted[0]["global_store"] == expected.nbytes
    for counters in counted[1:]:
        assert {name: counters[name] for name in moved} == {n: counted[0][n] for n in moved}


def _first(pattern: str, replacement: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert pattern in text
        return text.replace(pattern, replacement, 1)

    return change


BREAKS: dict[str, tuple[ShiftReuse, Callable[[str], str], str]] = {
    "an ashift dropped": (ShiftReuse(h=3, drop_ashift=True), str, "different"),
    "a lane more stored": (
        ShiftReuse(h=3),
        lambda text: text.replace("constant 30 : i32", "constant 31 : i32"),
        "different",
    ),
    "the wait for the loaded registers dropped": (
        ShiftReuse(h=3),
        _first("tcgen05.wait::ld.sync.aligned;", "fence.acq_rel.cta;"),
        "race",
    ),
    "stride offset of a descriptor off by 16": (
        ShiftReuse(h=3),
        _first("constant 4611756662049472512 : i64", "constant 4611756666344439808 : i64"),
        "different",
    ),
    "columns of A one off": (
        ShiftReuse(h=3),
        _first("constant 40 : i32", "constant 41 : i32"),
        "out-of-bounds",
    ),
    "expect_tx off by 16": (
        ShiftReuse(h=3),
        _first("constant 40960 : i32", "constant 40944 : i32"),
        "deadlock",
    ),
    "the CTA barrier dropped": (
        ShiftReuse(h=3),
        _first("nvvm.barrier\n", "\n"),
        "mbarrier-not-initialised",
    ),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_a_broken_kernel_is_not_equal(broken: str) -> None:
    kernel, change, verdict = BREAKS[broken]
    inputs, expected = operands(kernel)
    specs = [OutputSpec(expected.shape, expected.dtype)]
    _, module = next(stages(kernel, change))
    verdicts = []
    for seed in (None, *range(1, 4)):
        try:
            outcome = thread.run(module, "f", inputs, specs, RunOptions(seed))
        except MachineError as error:
            verdicts.append(error.code)
            continue
        assert outcome.incomplete == []
        verdicts += [finding.code for finding in outcome.findings]
        if not np.array_equal(outcome.outputs[0], expected):
            verdicts.append("different")
    assert verdict in verdicts

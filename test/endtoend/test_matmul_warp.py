"""matmul-warp through every level: all types, majornesses, tails, tile options and targets."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.debug.banks import BankConflicts
from tcir.program.inputs import make_inputs, poison
from tcir.run import run_ptx

from .product_text import program

TYPES = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8")
MAJORS = (("mk", "kn"), ("mk", "nk"), ("km", "kn"), ("km", "nk"))
TARGETS = ("sm_80", "sm_90", "sm_100a")
SMALL = {"block_m": 32, "block_n": 16, "warps_m": 2, "warps_n": 1}


@dataclass(frozen=True)
class Case:
    """One program with options."""

    m: int
    n: int
    k: int
    element: str
    a: str = "mk"
    b: str = "kn"
    out: str = ""
    batch: int = 0
    other: str = ""
    target: str = "sm_90"
    options: dict[str, Any] = field(default_factory=lambda: dict(SMALL), hash=False)

    def __str__(self) -> str:
        options = "-".join(f"{k}{v}" for k, v in self.options.items() if SMALL.get(k) != v)
        words = [
            f"{self.m}x{self.n}x{self.k}", self.element, self.other, self.a, self.b, self.out,
            f"batch{self.batch}" if self.batch else "", self.target, options,
        ]  # fmt: skip
        return "-".join(word for word in words if word)

    @property
    def text(self) -> str:
        return program(
            self.m, self.n, self.k, self.element, self.a, self.b, self.out, self.batch, self.other
        )

    def compile(self, **how: Any) -> tcir.Kernel:
        return tcir.compile(self.text, "matmul-warp", target=self.target, **self.options, **how)


def product(case: Case, a: Any, b: Any) -> Any:
    """numpy's, exact for integers."""
    wide: Any = np.int64 if case.element == "i8" else np.float64
    left = a.astype(wide) if case.a == "mk" else a.astype(wide).swapaxes(-1, -2)
    right = b.astype(wide) if case.b == "kn" else b.astype(wide).swapaxes(-1, -2)
    return left @ right


def majornesses() -> list[Case]:
    """Every type with every majorness and target, with tails in M, N and K."""
    return [
        Case(20, 20, 44, element, a, b, target=target)
        for element in TYPES
        for number, (a, b) in enumerate(MAJORS)
        for target in TARGETS
        if not (element.startswith("f8") and target == "sm_80")
        # Targets differ in numbers, not in layouts: all of them with two of the majornesses.
        if number in (0, 2) or target == "sm_90"
    ]


def tails() -> list[Case]:
    """One more, one less than tiles; one element; fewer K than a stage."""
    sizes = [(1, 2, 2), (1, 1, 64), (32, 16, 64), (33, 18, 66), (31, 14, 62), (34, 2, 200)]
    return [
        Case(m, n, k, element, "mk", "nk") for m, n, k in sizes for element in ("f16", "bf16")
    ] + [
        Case(8, 12, 20, "f32", "km", "kn"),
        Case(12, 8, 100, "i8", "mk", "kn"),
        Case(36, 44, 4, "f8E5M2", "km", "nk"),
    ]


def tilings() -> list[Case]:
    """Tiles, warps, stages, orders of CTAs, instructions."""
    options: list[dict[str, Any]] = [
        {"block_m": 16, "block_n": 16}, {"block_m": 64, "block_n": 16, "warps_m": 4},
        {"block_m": 16, "block_n": 64, "warps_n": 8}, {"block_m": 64, "block_n": 64},
        {"block_m": 32, "block_n": 32, "block_k": 16},
        {"block_m": 32, "block_n": 32, "block_k": 32},
        {**SMALL, "stages": 2}, {**SMALL, "stages": 3}, {**SMALL, "stages": 6},
        {**SMALL, "group_m": 1}, {**SMALL, "group_m": 2},
        {**SMALL, "atom": "mma.m16n8k8.f16"},
        {"block_m": 64, "block_n": 32, "warps_m": 2, "warps_n": 2, "block_k": 64},
    ]  # fmt: skip
    return [Case(40, 20, 96, "f16", "mk", "kn", options=o) for o in options] + [
        Case(40, 20, 40, "f32", "mk", "nk", options={**SMALL, "atom": "mma.m16n8k4.tf32"}),
        Case(40, 20, 40, "f32", "km", "kn", options={**SMALL, "atom": "mma.m16n8k4.tf32"}),
        Case(20, 24, 40, "f8E4M3FN", other="f8E5M2"),
        Case(20, 24, 40, "f8E5M2", other="f8E4M3FN", target="sm_100a"),
        Case(20, 24, 40, "f16", out="f16"),
        Case(20, 24, 40, "f16", out="bf16"),
        Case(20, 24, 40, "bf16", out="bf16"),
        Case(20, 25, 40, "f16", "mk", "nk", out="f16"),
        Case(20, 24, 40, "f16", batch=3),
        Case(20, 24, 40, "i8", "km", "nk", batch=2),
    ]


def floats() -> list[Case]:
    """Random numbers: within the bound at every level."""
    return [
        Case(20, 20, 72, element, a, b, target=target)
        for element in ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")
        for a, b in (("mk", "nk"), ("km", "kn"))
        for target in TARGETS
        if not (element.startswith("f8") and target == "sm_80")
    ]


QUICK = [
    Case(40, 36, 44, "f16", "mk", "kn"),
    Case(20, 12, 20, "f32", "km", "nk", target="sm_80"),
    Case(20, 12, 36, "i8", "mk", "kn"),
    # Rows of 66 bytes, repacked by a kernel.
    Case(32, 32, 33, "f16", "mk", "nk"),
]
EXACT = [*majornesses(), *tails(), *tilings()]


def check(case: Case, kind: Any, orders: int = 1) -> tcir.Kernel:
    """Compiles with every level executed, asynchronous ones under `orders` completion orders."""
    kernel = case.compile(validate=True, inputs=kind, orders=orders)
    report = kernel.report
    assert report.ok, str(report)
    levels = {line.level for line in report.passes}
    assert {"tensor", "tile", "thread", "ptx"} <= levels
    if kind == "integers":
        assert {line.verdict for line in report.passes[1:]} == {"equal"}
    return kernel


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_equal_at_every_level(case: Case, orders: int) -> None:
    kernel = check(case, "integers", orders)
    a, b = make_inputs(kernel.signature.inputs, 7, "integers")
    (out,) = (poison(spec) for spec in kernel.signature.outputs)
    kernel(a, b, out)
    np.testing.assert_array_equal(out.astype(np.float64), product(case, a, b).astype(np.float64))


def test_there_are_eighty_cases() -> None:
    assert len({str(case) for case in (*EXACT, *floats())}) >= 80


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_integers_are_equal_at_every_level(case: Case) -> None:
    check(case, "integers", orders=2)


@pytest.mark.parametrize("case", floats(), ids=str)
def test_floats_are_within_the_bound_at_every_level(case: Case) -> None:
    check(case, "random")


def test_tile_and_ptx_give_the_same_bits_of_random_floats() -> None:
    report = (
        Case(20, 20, 40, "f16", "mk", "nk", options=dict(SMALL))
        .compile(validate=True, inputs="random")
        .report
    )
    first = report.passes.index(report["tile-matmul-warp"])
    assert all(
        "bit for bit as before" in line.compared or line.verdict == "equal"
        for line in report.passes[first + 1 :]
        if line.level
    )


def run_with_banks(kernel: tcir.Kernel, arrays: list[Any]) -> BankConflicts:
    launch, banks = kernel.launch_config, BankConflicts()
    report = run_ptx(
        kernel.ptx, entry=launch.name, grid=launch.grid, block=launch.block,
        dynamic_smem=launch.dynamic_smem, args=launch.arguments(arrays[:2], arrays[2:]),
        observer=banks, hazards="off",
    )  # fmt: skip
    assert report.ok, str(report)
    return banks


@pytest.mark.parametrize(
    ("element", "a", "b"),
    [
        ("f16", "mk", "kn"),
        *((e, a, b) for e in ("f16", "f32", "f8E4M3FN", "i8") for a, b in MAJORS),
    ],
)
def test_no_bank_conflicts(element: str, a: str, b: str) -> None:
    """Copies and loads of the default tile, counted on PTX; and the result is right."""
    k = 256 if element in ("i8", "f8E4M3FN") else 128
    case = Case(128, 128, k, element, a, b, options={})
    kernel = case.compile()
    inputs = make_inputs(kernel.signature.inputs, 1, "integers")
    outputs = [poison(spec) for spec in kernel.signature.outputs]
    banks = run_with_banks(kernel, [*inputs, *outputs])
    assert banks.accesses.total() > 100
    assert not banks.conflicts
    np.testing.assert_array_equal(outputs[0].astype(np.int64), product(case, *inputs))


def test_conflicts_are_counted_where_there_are_some() -> None:
    """The same kernel with its swizzle taken out of the addresses of ldmatrix and cp.async."""
    from tcir.passes.warp import operands as pass_

    chosen = pass_.choose_swizzle
    pass_.choose_swizzle = lambda *_: ((0, 0, 0), 0)
    try:
        kernel = Case(64, 64, 64, "f16", options={"copy": "cp.async"}).compile()
    finally:
        pass_.choose_swizzle = chosen
    arrays = [*make_inputs(kernel.signature.inputs, 1, "integers")]
    banks = run_with_banks(kernel, [*arrays, *(poison(s) for s in kernel.signature.outputs)])
    assert banks.conflicts.total() > 0


def test_fp8_is_refused_on_sm_80() -> None:
    with pytest.raises(tcir.PassError, match="sm_89 or newer"):
        Case(32, 32, 32, "f8E4M3FN", target="sm_80").compile()


def test_a_kernel_of_another_target_is_refused() -> None:
    text = program(32, 32, 32, "f16")
    message = (
        "expected target sm_100a, for which this kernel was compiled, got sm_90; "
        "pipelines with kernels for sm_90: gemv-simt, matmul-warp"
    )
    with pytest.raises(tcir.InputError, match=message):
        tcir.compile(text, "matmul", target="sm_90")


@pytest.mark.parametrize("element", ["f16", "f8E4M3FN"])
def test_no_spills_at_full_size(element: str) -> None:
    from tcir import codegen

    kernel = Case(8192, 8192, 8192, element, "mk", "nk", options={}).compile()
    cubin = codegen.assemble(kernel.ptx, target="sm_90")
    assert cubin.registers <= 255
    assert cubin.spill_bytes == 0


EXAMPLES = Path(__file__).parent.parent.parent / "examples"
RING = {"block_m": 128, "block_n": 128, "block_k": 16, "stages": 2}


def run_tf32(size: int) -> None:
    """examples/tf32_matmul.mlir, or a smaller one, on integers: exactly numpy's product."""
    text = (EXAMPLES / "tf32_matmul.mlir").read_text().replace("2048", str(size))
    kernel = tcir.compile(text, "matmul-warp", target="sm_80", atom="mma.m16n8k8.tf32", **RING)
    launch = kernel.launch_config
    assert launch.block == (128, 1, 1)
    assert launch.dynamic_smem == 2 * 2 * 128 * 16 * 4
    numbers = np.random.default_rng(0)
    a = numbers.integers(-8, 9, (256, size)).astype(np.float32)
    b = numbers.integers(-8, 9, (size, 256)).astype(np.float32)
    out = np.full((size, size), np.nan, np.float32)
    kernel(a, b, out, hazards="raise")
    np.testing.assert_array_equal(out, a.T.astype(np.float64) @ b.T.astype(np.float64))


def test_double_buffered_tf32_tile() -> None:
    run_tf32(128)


def test_double_buffered_tf32_2048() -> None:
    run_tf32(2048)


def test_example_script() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "warp_matmul.py")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("exact") == 3

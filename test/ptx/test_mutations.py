"""Faults planted in kernels of this compiler, of Triton, and written by hand: all are noticed.

A fault counts as caught if a result changes, or if the machine reports something that it does not
report of the sound kernel: in the order of issue or in one of nine others. Faults that nothing
notices are listed below, each with the reason why the program is still the same. ``pytest -s``
prints the table: class of fault by what caught it.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.machine.order.shadow import Shadow
from tcir.run import PtxSyntaxError, RunReport, Uninitialized, run_ptx

from .conftest import HEADER
from .mutants import FAULTS, Mutant, mutants
from .test_execution import PIPE, REDUCE, TRANSPOSE
from .test_tcgen05 import gemm, operands, shift_rows, shifted

ORDERS = (None, *range(1, 10))
MOST_INSTRUCTIONS = 300_000
ROOT = Path(__file__).parents[2]

Want = list[tuple[np.ndarray, np.ndarray, float]]


@dataclass(frozen=True)
class Subject:
    """A sound kernel; `launch` makes the keywords of `run_ptx`, and the results to expect."""

    name: str
    ptx: str
    launch: Callable[[], tuple[dict[str, Any], Want]]

    def run(self, ptx: str, order: int | None) -> tuple[RunReport, bool]:
        """The report, and whether the results are right."""
        keywords, want = self.launch()
        report = run_ptx(ptx, order_seed=order, max_instructions=MOST_INSTRUCTIONS, **keywords)
        return report, all(_same(got, expected, within) for got, expected, within in want)


def _same(got: np.ndarray, expected: np.ndarray, within: float) -> bool:
    if not within:
        return np.array_equal(got, expected)
    with np.errstate(invalid="ignore"):
        return bool((np.abs(got.astype("f8") - expected.astype("f8")) <= within).all())


# Kernels of this compiler -------------------------------------------------------------------------

CONV = """
func.func @conv(%x: tensor<1x3x37x72xf16>, %w: tensor<2x2x72x40xf16>) -> tensor<1x4x37x40xf16> {
  %zero = arith.constant 0.0 : f32
  %pad = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 0, 0] {
  ^bb0(%n: index, %h: index, %v: index, %c: index):
    tensor.yield %pad : f16
  } : tensor<1x3x37x72xf16> to tensor<1x5x38x72xf16>
  %empty = tensor.empty() : tensor<1x4x37x40xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x37x40xf32>) -> tensor<1x4x37x40xf32>
  %sum = linalg.conv_2d_nhwc_hwcf
      ins(%padded, %w : tensor<1x5x38x72xf16>, tensor<2x2x72x40xf16>)
      outs(%init : tensor<1x4x37x40xf32>) -> tensor<1x4x37x40xf32>
  %narrow = tensor.empty() : tensor<1x4x37x40xf16>
  %out = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>,
                       affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum : tensor<1x4x37x40xf32>) outs(%narrow : tensor<1x4x37x40xf16>) {
  ^bb0(%in: f32, %o: f16):
    %t = arith.truncf %in : f32 to f16
    linalg.yield %t : f16
  } -> tensor<1x4x37x40xf16>
  return %out : tensor<1x4x37x40xf16>
}
"""
MATMUL = """
func.func @matmul(%a: tensor<136x296xf16>, %b: tensor<296x72xf16>) -> tensor<136x72xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<136x72xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<136x72xf32>) -> tensor<136x72xf32>
  %out = linalg.matmul ins(%a, %b : tensor<136x296xf16>, tensor<296x72xf16>)
      outs(%init : tensor<136x72xf32>) -> tensor<136x72xf32>
  return %out : tensor<136x72xf32>
}
"""


def _numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Normal numbers of f16, none 0: sums are not exact, so that roundings show."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return np.where(values == 0, 1, values).astype(np.float16)


def _compiled(name: str, program: str, pipeline: str, **options: Any) -> Subject:
    kernel = tcir.compile(program, pipeline, **options)
    inputs = [_numbers(s.shape, 5 + n) for n, s in enumerate(kernel.signature.inputs)]
    sound = [np.zeros(s.shape, s.dtype) for s in kernel.signature.outputs]
    kernel(*inputs, *sound)  # the sums are not exact: the machine's own bits are the reference
    return Subject(name, kernel.ptx, lambda: _own_launch(kernel, inputs, sound))


def _own_launch(
    kernel: tcir.Kernel, inputs: list[np.ndarray], sound: list[np.ndarray]
) -> tuple[dict[str, Any], Want]:
    launch = kernel.launch_config
    outputs = [np.full_like(s, np.nan) for s in sound]
    keywords = {
        "entry": launch.name, "grid": launch.grid, "block": launch.block,
        "dynamic_smem": launch.dynamic_smem, "args": launch.arguments(inputs, outputs),
    }  # fmt: skip
    return keywords, [(o, s, 0.0) for o, s in zip(outputs, sound, strict=True)]


@cache
def own() -> list[Subject]:
    return [
        _compiled("shift-reuse", CONV, "conv-shift-reuse", stages=2),
        _compiled("implicit-gemm", CONV, "conv-implicit-gemm", stages=3),
        _compiled("matmul", MATMUL, "matmul", stages=2, n_tile=80),
    ]


# Kernels written by hand --------------------------------------------------------------------------


def _gemm() -> tuple[dict[str, Any], Want]:
    a, b, maps, out = operands(64, exact=True)
    want = a.astype(np.float32) @ b.astype(np.float32).T
    keywords = {"grid": 1, "block": 128, "dynamic_smem": 24576, "args": [*maps, Uninitialized(out)]}
    return keywords, [(out, want, 0.0)]


def _shifted() -> tuple[dict[str, Any], Want]:
    a, b, maps, out = operands(192, exact=True)
    f = a.astype(np.float32)
    taps = [b[64 * s : 64 * s + 64].astype(np.float32).T for s in range(3)]
    rest = shift_rows(f) @ taps[1] + shift_rows(shift_rows(f)) @ taps[2]
    rest[[31, 95]] = 0
    keywords = {"grid": 1, "block": 128, "dynamic_smem": 40960, "args": [*maps, Uninitialized(out)]}
    return keywords, [(out, f @ taps[0] + rest, 0.0)]


def _simple(block: int, want: Callable[[np.ndarray], np.ndarray], size: int, out: int) -> Any:
    def launch() -> tuple[dict[str, Any], Want]:
        x = np.random.default_rng(3).integers(1, 1 << 31, size).astype(np.uint32)
        y = np.zeros(out, np.uint32)
        keywords = {"grid": 1, "block": block, "dynamic_smem": 1024, "args": [x, Uninitialized(y)]}
        return keywords, [(y, want(x), 0.0)]

    return launch


@cache
def by_hand() -> list[Subject]:
    mask = shifted(mask="{%r16, %r17, %r16, %r17},")
    return [
        Subject("gemm", gemm(), _gemm),
        Subject("taps", mask, _shifted),
        Subject("pipe", HEADER + PIPE,
                _simple(64, lambda x: x.reshape(5, 32)[:, ::-1].ravel(), 160, 160)),
        Subject("reduce", HEADER + REDUCE,
                _simple(64, lambda x: x.reshape(2, 32).sum(1, dtype=np.uint32), 64, 2)),
        Subject("transpose", HEADER + TRANSPOSE.replace(" st.shared.b32 [pad], %r4;\n", ""),
                _simple(256, lambda x: x.reshape(16, 16).T.ravel(), 256, 256)),
    ]  # fmt: skip


# Kernels of Triton --------------------------------------------------------------------------------

FOREIGN = ("matmul_f16", "matmul_mma_sync", "gemv")


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> list[Subject]:
    """Compiled here and now; skipped where Triton is not installed."""
    sys.path.insert(0, str(ROOT))
    try:
        run, case = importlib.import_module("peers.run"), importlib.import_module("peers.case")
    finally:
        sys.path.remove(str(ROOT))
    folder = tmp_path_factory.mktemp("triton")
    if missing := run.compile_with("triton", folder):
        pytest.skip(missing)
    cases = {c.name: c for c in case.CASES if c.compiler == "triton"}
    return [_triton(cases[name], folder) for name in FOREIGN]


def _triton(case: Any, folder: Path) -> Subject:
    """Right by its oracle, then run on numbers whose sums and products are not exact."""
    meta = json.loads((folder / f"{case.name}.json").read_text())
    ptx = (folder / f"{case.name}.ptx").read_text()

    def launch(exact: bool) -> tuple[dict[str, Any], Want]:
        made = case.build(meta)
        keywords = {
            "entry": meta["entry"], "grid": made.grid, "block": tuple(meta["block"]),
            "dynamic_smem": meta["dynamic_smem"], "args": made.args,
        }  # fmt: skip
        want = [(got, np.asarray(expected), within) for got, expected, within in made.want]
        if not exact:
            outputs = [got for got, _, _ in want]
            for n, arg in enumerate(made.args):
                if isinstance(arg, np.ndarray) and not any(arg is o for o in outputs):
                    arg[...] = _numbers(arg.shape, 7 + n).astype(arg.dtype)
        return keywords, want

    exact = Subject(case.name, ptx, lambda: launch(exact=True))
    report, right = exact.run(ptx, None)
    assert report.ok and right, str(report)
    keywords, want = launch(exact=False)
    assert run_ptx(ptx, **keywords).ok
    sound = [got for got, _, _ in want]

    def inexact() -> tuple[dict[str, Any], Want]:
        keywords, want = launch(exact=False)
        return keywords, [(got, s, 0.0) for (got, _, _), s in zip(want, sound, strict=True)]

    return Subject(f"triton {case.name}", ptx, inexact)


# Who catches what ---------------------------------------------------------------------------------


def _reported(report: RunReport) -> Counter[str]:
    return Counter(f"{f.severity}: {f.code}" for f in report.findings)


def caught_by(subject: Subject, ptx: str, usual: Counter[str]) -> str:
    """What notices the fault, or ""; `usual` is what the machine says of the sound kernel.

    A faulty program that the machine has no rule for ("without a rule") is not caught: `caught`.
    """
    for order in ORDERS:
        try:
            report, right = subject.run(ptx, order)
        except PtxSyntaxError:
            return "refused"
        if report.incomplete:
            return "without a rule"
        if report.errors:
            code = report.errors[0].code
            return code if code in ("deadlock", "instruction-budget") else "illegal"
        new = sorted(_reported(report) - usual)
        if new and new[0].startswith("error"):
            return "hazard"
        if not right:
            return "result"
        if new:
            return "warning"
    return ""


def caught(by: str) -> bool:
    """Whether what `caught_by` says is a verdict on the fault."""
    return by not in ("", "without a rule")


def usual_reports(subject: Subject) -> Counter[str]:
    """What the machine says of the sound kernel, whose results have to be right, in all orders."""
    usual: Counter[str] = Counter()
    for order in ORDERS:
        report, right = subject.run(subject.ptx, order)
        assert report.ok and right, f"{subject.name}, order {order}: {report}"
        usual |= _reported(report)
    return usual


def sweep(subjects: Iterable[Subject], each: int, step: int = 1) -> list[tuple[Mutant, str]]:
    """Plants faults in kernels; what caught each of them."""
    results = []
    for subject in subjects:
        usual = usual_reports(subject)
        chosen = [*mutants(subject.name, subject.ptx, each)][::step]
        results += [(mutant, caught_by(subject, mutant.ptx, usual)) for mutant in chosen]
    return results


QUICK = 19
"""`make test` plants every so-manieth fault."""


def table(results: list[tuple[Mutant, str]]) -> str:
    """Class of fault by what caught it."""
    columns = ["result", "hazard", "warning", "illegal", "deadlock", "instruction-budget",
               "refused", "without a rule", ""]  # fmt: skip
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, by in results:
        rows[mutant.kind][by] += 1
        rows["all"][by] += 1
    heads = ["result", "hazard", "warning", "illegal", "deadlock", "budget", "refused", "no rule",
             "SURVIVED"]  # fmt: skip
    lines = [f"{'class of fault':<24}" + "".join(f"{h:>10}" for h in heads)]
    lines += [
        f"{kind:<24}" + "".join(f"{rows[kind][c] or '-':>10}" for c in columns)
        for kind in sorted(rows, key=lambda k: (k == "all", k))
    ]
    lines += [f"survived: {mutant}" for mutant, by in results if not caught(by)]
    return "\n".join(lines)


#: Faults that leave the program what it was, by (words of) their name, and why.
LBO = (
    "K-major operands with a swizzle, one swizzle span wide, have no second span: the leading byte "
    'offset is not used (PTX ISA 9.7.16.4, "Leading dimension byte offset")'
)
OWN_AFTER = (
    "the mma thread waits there for TMA loads, which mbarrier and proxy order; its own mma are in "
    "the order of the pipe (the epilogue's fence is another: its absence is reported)"
)
OWN_BEFORE = "wait::ld has completed the loads of tensor memory, and the barrier orders the dealloc"
NOTHING_YET = "before this barrier nothing uses tensor memory, and alloc has ended when it returns"
ONE_THREAD = (
    "the thread that initialises the mbarriers issues the copies and the commit itself; who else "
    "waits for them has passed the barrier"
)
EQUIVALENT = {
    **{f"{s}: fence::after deleted": OWN_AFTER for s in ("shift-reuse", "implicit-gemm", "matmul")},
    **{
        f"{s}: fence::before deleted": OWN_BEFORE
        for s in ("shift-reuse", "implicit-gemm", "matmul")
    },
    **{f"{s}: fence.mbarrier_init deleted in line 17": ONE_THREAD for s in ("gemm", "taps")},
    **{
        f"{s}: fence::{kind} deleted in line {line}": why
        for s, first, after in (("gemm", 73, 75), ("taps", 125, 127))
        for kind, line, why in (
            ("before", 19, NOTHING_YET), ("after", 21, NOTHING_YET),
            ("before", first, OWN_BEFORE), ("after", after, OWN_BEFORE),
        )
    },
    **{
        f"{subject}: descriptor of {operand}: LBO": LBO
        for subject, operands_ in {
            "shift-reuse": ("B", "cp"), "implicit-gemm": ("A", "B"), "matmul": ("A",),
            "gemm": ("A", "B"), "taps": ("B", "cp"), "triton matmul_f16": ("A", "B"),
        }.items()
        for operand in operands_
    },
    "pipe: setp: the opposite in line 19": "the two warps exchange their parts",
    "reduce: branch inverted in line 19": "every lane has the sum, and all store it to one place",
    "triton matmul_f16: guard inverted in line 49": (
        "three other warps give up the right to allocate, which is the CTA's and used no more"
    ),
}  # fmt: skip


def unexplained(results: list[tuple[Mutant, str]]) -> list[str]:
    return [
        str(m)
        for m, by in results
        if not caught(by) and not any(str(m).startswith(name) for name in EQUIVALENT)
    ]


def judge(results: list[tuple[Mutant, str]], at_least: int) -> None:
    print("\n" + table(results))
    assert len(results) >= at_least
    assert sum(1 for _, by in results if caught(by)) >= 0.9 * len(results)
    assert not unexplained(results)  # the others change nothing


def test_some_faults() -> None:
    results = sweep([*own(), *by_hand()], each=2, step=QUICK)
    assert not unexplained(results)
    assert len(results) >= 40 and len({m.kind for m, _ in results}) >= 8
    assert {"result", "hazard", "illegal", "deadlock"} <= {by for _, by in results}


def test_a_fault_that_only_the_record_of_writers_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes no number in any order: a machine that does not look at who wrote last is blind.

    So this fails, and not only a test of the machine's parts, when that check is lost.
    """
    subject = next(s for s in by_hand() if s.name == "taps")
    fence = "tcgen05.fence::after_thread_sync;"
    head, tail = subject.ptx.split("tcgen05.ld", 1)
    before, after = head.rsplit(fence, 1)
    ptx = f"{before}{after}tcgen05.ld{tail}"
    usual = usual_reports(subject)
    assert caught_by(subject, ptx, usual) == "warning"
    monkeypatch.setattr(Shadow, "writers_at", lambda self, where: [])
    assert caught_by(subject, ptx, usual) == ""


def test_every_class_is_planted_and_every_fault_changes_the_text() -> None:
    kinds = {kind for kind, _, _ in FAULTS}
    planted = Counter(m.kind for s in [*own(), *by_hand()] for m in mutants(s.name, s.ptx))
    assert kinds == set(planted)
    for subject in by_hand():
        assert all(m.ptx != subject.ptx for m in mutants(subject.name, subject.ptx))


@pytest.mark.timeout(3000)
def test_own_and_hand_written_kernels() -> None:
    judge(sweep([*own(), *by_hand()], each=2), at_least=600)


@pytest.mark.timeout(3000)
def test_kernels_of_triton(foreign: list[Subject]) -> None:
    judge(sweep(foreign, each=1), at_least=60)

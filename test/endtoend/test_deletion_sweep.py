"""Every op of a lowered kernel is needed, and its absence noticed: deleted one at a time.

At the level of roles every ``tc`` op without results is deleted, in PTX every instruction. Each
deletion has to give another result, a hazard (a warning counts where it names what is missing) or
an error, under the order of issue or one of ten others. What survives is listed with its reason.
``pytest -s`` prints the tables. `make test` deletes a fixed part, the slow tier everything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.program.source import load_module, mlir_context
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.validator import begin

from .breaking import NOTHING, ORDERS, Caught, verdict_of
from .linalg_text import Conv
from .oracle import convolution, operands

# Two CTAs by two K_out tiles, four k steps through two slots; tails in C, K_out and Q.
PROGRAM = Conv(1, 3, 37, 72, 72, 2, 3, (1, 1, 1, 1))
MOST_INSTRUCTIONS = 400_000
"""Several times what the whole kernel executes: a run beyond it does not end."""


@cache
def kernel() -> tcir.Kernel:
    return tcir.compile(PROGRAM.text(), "conv-shift-reuse", stages=2, n_tile=48)


# Ops of the role level ----------------------------------------------------------------------------

RELINQUISH = "only other CTAs of the SM, waiting to allocate tensor memory, would miss it"
AFTER = (
    "the mma thread waits there for TMA loads, which mbarrier and proxy order; its own cp and mma "
    "are in the order of the pipe, and those of the iteration before were waited for by commit"
)
BEFORE = "wait::ld has completed the loads of tensor memory, and the barrier orders the dealloc"
SURVIVING_OPS = {
    "tc.tmem_relinquish": (1, RELINQUISH),
    "tc.fence tcgen05.after in mma": (1, AFTER),
    "tc.fence tcgen05.before in epilogue": (1, BEFORE),
}
"""What nothing notices the absence of: how many of them, and why."""
WARNED_OPS = {
    "tc.fence mbarrier_init": "warning: missing-init-fence",
    "tc.fence tcgen05.after in epilogue": "warning: missing-fence-after",
}
"""What only a warning names."""


def _deletable(module: Any) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name.startswith("tc.") and len(op.results) == 0:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _describe(op: Any) -> str:
    kind = f" {op.attributes['kind'].value}" if "kind" in op.attributes else ""
    parent = op.parent
    while parent.name not in ("tc.role", "func.func"):
        parent = parent.parent
    return (
        f"{op.name}{kind} in {parent.attributes['kind'].value}"
        if (parent.name == "tc.role")
        else f"{op.name}{kind}"
    )


def _delete_ops(step: int) -> Iterator[tuple[str, Caught]]:
    """Deletes every `step`-th op; yields what it was and what noticed."""
    text = kernel().ir["assign-roles"]
    with mlir_context() as context:
        validations = {
            count: begin(load_module(PROGRAM.text(), context), Settings(seed=7, orders=count))
            for count in (1, ORDERS)
        }
        total = len(_deletable(ir.Module.parse(text)))
        for number in range(0, total, step):
            caught = NOTHING
            what = ""
            for count, validation in validations.items():
                module = ir.Module.parse(text)
                op = _deletable(module)[number]
                what = _describe(op)
                op.erase()
                assert module.operation.verify()
                line = Line(0, "assign-roles")
                validation.check(module, line)
                if caught := verdict_of(line, count):
                    break
            yield what, caught


def _table(results: list[tuple[str, Caught]]) -> dict[str, Counter[str]]:
    """Prints what was deleted and how it was noticed; returns the counts."""
    table: dict[str, Counter[str]] = {}
    for what, caught in results:
        table.setdefault(what, Counter())[caught.by or "NOT NOTICED"] += 1
    print()
    for what, counts in table.items():
        print(f"{what:<60} " + ", ".join(f"{by} x{n}" for by, n in counts.items()))
    totals = Counter((caught.by or "not noticed").partition(":")[0] for _, caught in results)
    print("in all: " + ", ".join(f"{by} {n}" for by, n in totals.items()))
    return table


def _survivors(table: dict[str, Counter[str]]) -> dict[str, int]:
    return {what: counts["NOT NOTICED"] for what, counts in table.items() if counts["NOT NOTICED"]}


def _warned(table: dict[str, Counter[str]]) -> dict[str, str]:
    return {what: by for what, counts in table.items() for by in counts if by.startswith("warning")}


def _counts(reasons: dict[str, tuple[int, str]]) -> dict[str, int]:
    return {what: count for what, (count, _) in reasons.items()}


def test_deleted_ops_quick() -> None:
    table = _table(list(_delete_ops(step=4)))
    assert _survivors(table).items() <= _counts(SURVIVING_OPS).items()


def test_deleted_ops() -> None:
    table = _table(list(_delete_ops(step=1)))
    assert _survivors(table) == _counts(SURVIVING_OPS)
    assert _warned(table) == WARNED_OPS


# Instructions of the PTX --------------------------------------------------------------------------

SURVIVING_INSTRUCTIONS = {
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;": (1, RELINQUISH),
    "tcgen05.fence::after_thread_sync;": (1, AFTER),
    "tcgen05.fence::before_thread_sync;": (1, BEFORE),
    "mov.b64 %rd, 0;": (1, "LLVM writes the cache policy of TMA loads that carry none"),
    "ret;": (1, "the kernel ends there without it, too"),
}
INITIALISED_AGAIN = "warning: mbarrier-init-again"
WARNED_INSTRUCTIONS = {
    "fence.mbarrier_init.release.cluster;": "warning: missing-init-fence",
    "tcgen05.fence::after_thread_sync;": "warning: missing-fence-after",
    # All lanes of the warp initialise the mbarriers, before anything uses them.
    "@%p bra $L__BB0_2;": INITIALISED_AGAIN,
    "@%p bra $L__BB0_4;": INITIALISED_AGAIN,
    "@%p bra $L__BB0_6;": INITIALISED_AGAIN,
}


def _instructions(ptx: str) -> list[int]:
    """Numbers of the lines that hold an instruction of the kernel's body."""
    lines = ptx.splitlines()
    begin = lines.index("{")
    return [
        number
        for number, line in enumerate(lines)
        if number > begin and line.endswith(";") and not line.strip().startswith(".")
    ]


def _name(instruction: str) -> str:
    """The instruction with its predicate and registers as letters."""
    return re.sub(r"%(rd|r|p)\d+", r"%\1", instruction.strip().replace("\t", ""))


@cache
def _buffers() -> tuple[Any, Any, Any]:
    x, w = operands(PROGRAM, 5)
    return x, w, convolution(PROGRAM, x, w)


def _run(ptx: str) -> Caught:
    """What is noticed of a kernel in issue order, or under one of the other orders."""
    x, w, want = _buffers()
    launch = kernel().launch_config
    for order in (None, *range(1, ORDERS)):
        out = np.full_like(want, np.nan)
        report = tcir.run_ptx(
            ptx, entry=launch.name, grid=launch.grid, block=launch.block,
            dynamic_smem=launch.dynamic_smem, args=launch.arguments([x.copy(), w.copy()], [out]),
            order_seed=order, max_instructions=MOST_INSTRUCTIONS,
        )  # fmt: skip
        assert not report.incomplete, str(report)
        hazards = [f.code for f in report.findings if f.severity == "error"]
        warnings = [f.code for f in report.findings if f.severity == "warning"]
        by = ""
        if report.errors:
            code = report.errors[0].code
            by = code if code == "deadlock" else f"illegal: {code}"
        elif hazards:
            by = f"hazard: {hazards[0]}"
        elif out.tobytes() != want.tobytes():
            by = "difference"
        elif warnings:
            by = f"warning: {warnings[0]}"
        if by:
            return Caught("llvm-to-ptx", by, 1 if order is None else ORDERS, str(report))
    return NOTHING


def _delete_instructions(step: int, effects_only: bool) -> Iterator[tuple[str, Caught]]:
    ptx = kernel().ptx
    lines = ptx.splitlines()
    numbers = _instructions(ptx)
    if effects_only:
        numbers = [n for n in numbers if _has_effect(lines[n])]
    for number in numbers[::step]:
        edited = "\n".join(lines[:number] + lines[number + 1 :]) + "\n"
        try:
            caught = _run(edited)
        except tcir.run.PtxSyntaxError as error:
            caught = Caught("llvm-to-ptx", "refused", 1, str(error))
        yield _name(lines[number]), caught


_PURE = (
    "add", "and", "bfe", "cvt", "cvta", "elect", "ld.param", "ld.shared", "mad", "mov", "mul",
    "not", "or", "setp", "shl", "shr", "sub", "xor",
)  # fmt: skip


def _has_effect(line: str) -> bool:
    """Whether an instruction does more than write registers."""
    return not line.strip().startswith(tuple(f"{name}." for name in _PURE))


def test_unbroken() -> None:
    assert not _run(kernel().ptx)


def test_deleted_instructions_quick() -> None:
    table = _table(list(_delete_instructions(step=8, effects_only=True)))
    assert _survivors(table).items() <= _counts(SURVIVING_INSTRUCTIONS).items()


@pytest.mark.timeout(1800)
def test_deleted_instructions() -> None:
    table = _table(list(_delete_instructions(step=1, effects_only=False)))
    assert _survivors(table) == _counts(SURVIVING_INSTRUCTIONS)
    assert _warned(table) == WARNED_INSTRUCTIONS

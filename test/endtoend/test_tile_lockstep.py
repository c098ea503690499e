"""Tile programs in lockstep: results, findings and counters as those of every CTA on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tcir._mlir import ir
from tcir.dialect.walk import nested
from tcir.interp import Outcome, tile
from tcir.interp.tile.lockstep.launch import Lockstep
from tcir.interp.tile.lockstep.repeat import Repetition
from tcir.machine import MachineError
from tcir.passmanager.pipeline import as_pipeline
from tcir.program.inputs import make_inputs
from tcir.program.programs import find_programs
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.run_options import RunOptions

from .linalg_text import Conv, Matmul

SAME = (1, 1, 1, 1)
CASES: list[tuple[str, Any]] = [
    ("conv-shift-reuse", Conv(1, 16, 33, 64, 64, 3, 3, SAME)),
    ("conv-implicit-gemm", Conv(1, 16, 30, 32, 32, 3, 3, SAME, out="f16")),
    ("gemm", Matmul(300, 520, 72, out="f16")),
]


def states(pipeline: str, case: Any, *names: str) -> Iterator[tuple[str, ir.Module]]:
    """The program after each pass (or those named) that leaves one tile-level kernel."""
    with mlir_context() as context:
        module = load_module(case.text(), context)
        for item in as_pipeline(pipeline):
            item.apply(module)
            programs = find_programs(module)
            if any(program.level == "thread" for program in programs):
                return
            if [p.level for p in programs] == ["tile"] and (not names or item.name in names):
                yield item.name, module


def execute(module: ir.Module, lockstep: bool, **options: Any) -> tuple[str, Outcome | None]:
    """What the machine raised, or the outcome."""
    (program,) = find_programs(module)
    signature = signature_of(module)
    inputs = make_inputs(signature.inputs, 1, "integers", None, 8)
    try:
        found = tile.run(
            module,
            program.name,
            inputs,
            signature.outputs,
            RunOptions(lockstep=lockstep, **options),
        )
    except MachineError as error:
        return str([str(error), *map(str, error.findings)]), None
    return "", found


def compare(module: ir.Module, **options: Any) -> tuple[str, Outcome | None]:
    """Both ways, which have to be equal."""
    (error, a), (other, b) = execute(module, True, **options), execute(module, False, **options)
    assert error == other
    if a is not None and b is not None:
        for first, second in zip(a.outputs, b.outputs, strict=True):
            np.testing.assert_array_equal(first.view(np.uint8), second.view(np.uint8))
        assert [str(f) for f in a.findings] == [str(f) for f in b.findings]
        assert a.counters == b.counters
        for n, output in enumerate(a.outputs):
            for index in ((0,) * output.ndim, tuple(size - 1 for size in output.shape)):
                assert a.sites[n](index) == b.sites[n](index)
    return error, a


@pytest.mark.parametrize(
    ("pipeline", "case", "names"),
    [
        *(pytest.param(*case, (), id=case[0]) for case in CASES),
        pytest.param(*CASES[-1], ("tile-gemm", "assign-roles"), id="gemm, two states"),
    ],
)
def test_every_state(
    pipeline: str, case: Any, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[int] = []

    def noted(ended: Any) -> Any:
        def both(self: Any, cta: Any) -> int:
            followed.append(ended(self, cta))
            return followed[-1]

        return both

    for kind in Lockstep, Repetition:
        monkeypatch.setattr(kind, "ended", noted(kind.ended))
    for name, module in states(pipeline, case, *names):
        known: dict[bytes, Any] = {}
        for options in ({"repeats": known}, {"order_seed": 1}, {"order_seed": 2, "repeats": known}):
            followed.clear()
            _, outcome = compare(module, **options)
            assert outcome is not None and not outcome.findings, name
            assert sum(followed) >= outcome.counters["ctas"] // 2, name


def only_in(module: ir.Module, name: str, last: bool, more: int | None = None) -> None:
    """Leaves out the ops of a name in one CTA, the last or the second; more: they announce so many
    bytes more there."""
    (program,) = find_programs(module)
    grid = list(ir.DenseI64ArrayAttr(program.op.operation.attributes["tc.grid"]))
    at = grid[0] - 1 if last else 1
    for op in [o.operation for o in nested(program.op) if o.operation.name == name]:
        if more is not None:
            size = ir.IntegerAttr(op.attributes["nbytes"])
            wrong = op.clone(ir.InsertionPoint(op)).operation
            wrong.attributes["nbytes"] = ir.IntegerAttr.get(size.type, size.value + more)
            _guard(wrong, "eq", at)
        _guard(op, "ne", at)


def _guard(op: ir.Operation, test: str, at: int) -> None:
    """Puts an op into an scf.if on the CTA's number."""
    text = ir.Module.parse(
        "func.func @f() {"
        " %x = gpu.block_id x"
        f" %at = arith.constant {at} : index"
        f" %chosen = arith.cmpi {test}, %x, %at : index"
        " scf.if %chosen { } return }"
    )
    function = text.body.operations[0]
    *new, _ = function.regions[0].blocks[0].operations
    for each in new:
        each.operation.move_before(op)
    op.move_before(new[-1].operation.regions[0].blocks[0].operations[0].operation)


@pytest.mark.parametrize("last", [True, False], ids=["last", "second"])
@pytest.mark.parametrize("name", ["tc.tmem_wait", "tc.fence", "tc.mbarrier_expect_tx"])
def test_a_fault_of_one_cta_is_found(name: str, last: bool) -> None:
    pipeline, case = CASES[0]
    for _, module in states(pipeline, case, "assign-roles"):
        only_in(module, name, last)
        for seed in (None, 1):
            error, outcome = compare(module, order_seed=seed)
            assert error or outcome is not None and outcome.findings
        break  # no pass has to bear with it


@pytest.mark.parametrize("last", [True, False], ids=["last", "second"])
def test_an_operand_of_one_cta_is_found(last: bool) -> None:
    """The CTA asks for the same operations, one of them with another number of bytes."""
    pipeline, case = CASES[0]
    for _, module in states(pipeline, case, "assign-roles"):
        only_in(module, "tc.mbarrier_expect_tx", last, more=16)
        for seed in (None, 1):
            error, _ = compare(module, order_seed=seed)
            assert "deadlock" in error
        break

"""Each kind of launch is executed once: what is found nevertheless, and what is named."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect.walk import walk
from tcir.passes.emit.builders import i64
from tcir.passmanager.pipeline import Pipeline, as_pipeline
from tcir.program.programs import find_programs
from tcir.program.repeats import REPEATS
from tcir.validation.budget import StatesBudget
from tcir.validation.estimate import Estimate
from tcir.validation.kinds import Kinds
from tcir.validation.report import Line, Report
from tcir.validation.settings import Settings

from .breaking import Broken, Edit
from .test_estimate import tc_opt
from .test_share_kernels import SUMS, of_other_buffers

PIPELINE = "simt-elementwise"


def validated(edit: Edit | None = None, at: str = "convert-to-simt", **options: object) -> Report:
    """The report of `SUMS`, with a pass broken."""
    pipeline: Pipeline = as_pipeline(PIPELINE)
    if edit is not None:
        pipeline = pipeline.replace(at, Broken(pipeline.passes[pipeline.index(at)], edit))
    return tcir.validate(SUMS, pipeline, kinds=True, **options)  # type: ignore[arg-type]


def test_one_launch_of_each_kind() -> None:
    report, every = validated(), tcir.validate(SUMS, PIPELINE)
    assert report.verdict == every.verdict == "held"
    assert report.notes == ["same kind as @f_0_reduce, computed by tensor rules: @f_1_reduce"]
    assert {line.name for line in report.passes} == {line.name for line in every.passes}
    for line, whole in zip(report.passes, every.passes, strict=True):
        on_machine = line.level in ("thread", "ptx")
        assert on_machine == line.compared.endswith("; 2 of 3 launches, one of each kind")
        if on_machine:
            assert line.counters["ctas"] == 2 and whole.counters["ctas"] == 3
    assert report.passes[-1].level == "ptx"


@pytest.mark.parametrize("at", ["share-kernels", "convert-to-simt"])
@pytest.mark.parametrize(("name", "place", "number"), [("args", 0, 0), ("args", 1, 4)])
def test_a_launch_of_another_buffer_is_found(at: str, name: str, place: int, number: int) -> None:
    """The second launch, which is not executed, reads or writes a buffer of another one."""
    report = validated(of_other_buffers(name, place, number), at)
    assert report.verdict == "different" and report.first_failure().name == at  # type: ignore


def sums_from_one(module: ir.Module, order: int) -> None:
    """Makes a kernel's sums begin with 1."""
    (program,) = (p for p in find_programs(module) if p.order == order and p.repeat is None)
    for op in walk(program.op):
        value = op.operation.attributes.get("value")
        if isinstance(value, ir.FloatAttr):
            op.operation.attributes["value"] = ir.FloatAttr.get_f32(1.0)


def apart(module: ir.Module) -> None:
    """Gives the second launch a kernel of its own, as it was."""
    (entry,) = module.operation.attributes[REPEATS]
    buffers = dict(zip(entry["of"], entry["args"], strict=True))
    function = find_programs(module)[0].op.operation
    made = function.clone(ip=ir.InsertionPoint(function))
    params = [
        ir.DictAttr.get(
            {each.name: each.attr for each in param} | {"arg": i64(buffers[param["arg"].value])}
        )
        for param in made.attributes["tc.params"]
    ]
    made.attributes["tc.params"] = ir.ArrayAttr.get(params)
    made.attributes["tc.order"] = entry["order"]
    made.attributes["sym_name"] = entry["name"]
    del module.operation.attributes[REPEATS]


@pytest.mark.parametrize("order", [0, 2])
def test_a_broken_kernel_is_found(order: int) -> None:
    report = validated(lambda module: sums_from_one(module, order))
    assert report.verdict == "different"


def test_a_launch_that_a_pass_gave_a_kernel_of_its_own() -> None:
    """It is no longer of the kind, so it is executed."""

    def both(module: ir.Module) -> None:
        apart(module)
        sums_from_one(module, 1)

    assert validated(apart).verdict == "held"
    assert validated(both).verdict == "different"


def test_kinds_beyond_the_budget_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in one of them is not found, and the program has not held."""
    monkeypatch.setattr(Estimate, "once", staticmethod(lambda *_: 1000.0))
    seconds = dict(of_sums().seconds)
    first = next(iter(seconds.values()))
    for edit in (None, lambda module: sums_from_one(module, 2)):
        report = validated(edit, budget=first * 1.5)
        assert report.verdict == "incomplete" and report.exit_code == 2 and not report.ok
        assert "not executed: @f_2_reduce (budget)" in report.summary()
        assert report.notes[-1] == "not executed on the machine, beyond the budget: @f_2_reduce"
        assert {line.left for line in report.passes[-3:]} == {"@f_2_reduce"}
    assert validated(lambda m: sums_from_one(m, 0), budget=first * 1.5).verdict == "different"
    nothing = validated(budget=first / 2)
    assert "@f_0_reduce (@f_1_reduce)" in nothing.notes[-2]
    assert nothing.verdict == "incomplete" and nothing.passes[-1].counters.get("ctas", 0) == 0


def of_sums(**options: float) -> Kinds:
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(tcir.compile(SUMS, PIPELINE).ir["share-kernels"])
        return Kinds.of(module, find_programs, Settings(kinds=True, **options))  # type: ignore


def test_the_estimate() -> None:
    kinds = of_sums()
    assert set(kinds.seconds) == {"f_0_reduce", "f_2_reduce"}
    assert re.fullmatch(
        r"estimate: about 0 s to execute 2 of 3 launches, one of each .*", str(kinds)
    )
    assert "the budget of 1e-09 s leaves out @f_0_reduce, @f_2_reduce" in str(of_sums(budget=1e-9))
    words = (f"--pipeline={PIPELINE}", "--validate-each", "--kinds", "--budget=1e-9", "--emit=ptx")
    result = tc_opt(*words, text=SUMS)
    assert result.returncode == 2
    told = result.stderr
    assert told.index("s of the budget of 1e-09 s are over") < told.index("incomplete:")


def test_states_beyond_the_budget_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The PTX is executed as long as there is time at all, and states before it as long as there
    is time for both, if they take as long as the last one."""
    now = 0.0
    monkeypatch.setattr("tcir.validation.budget.time.perf_counter", lambda: now)
    budget, line = StatesBudget(100.0, now), Line(7, "plan-memory")
    budget.executed(Line(6, "tile-gemm", execute_seconds=30.0))
    now = 40.0
    assert not budget.leaves_out(line) and not line.left
    now = 50.0
    assert budget.leaves_out(line) and line.verdict == "-"
    assert "50 s of the budget of 100 s are over, and the state before took 30 s" in line.compared
    assert not budget.leaves_out(line, last=True)
    line = Line(7, "plan-memory")
    budget.executed(Line(7, "plan-memory", execute_seconds=5.0))
    now = 90.0
    assert not budget.leaves_out(line)
    now = 91.0
    assert budget.leaves_out(line)
    now = 100.0
    assert not budget.leaves_out(line, last=True)
    now = 101.0
    assert budget.leaves_out(line, last=True) and line.left == "the state after plan-memory"
    assert not StatesBudget(None).leaves_out(line)


def test_a_validation_without_time_executes_the_input_alone() -> None:
    report = validated(budget=1e-9)
    assert report.verdict == "incomplete" and report.exit_code == 2
    assert {line.verdict for line in report.passes} == {"reference", "-"}
    for line in report.passes[1:]:
        assert f"the state after {line.name}" in report.summary()


def test_launches_of_ptx_that_are_of_no_kind() -> None:
    """Another grid, or a buffer twice: the machine executes them."""
    kinds = of_sums()
    launches = tcir.compile(SUMS, PIPELINE).launches.launches
    first, second, third = launches
    options = Settings().options()
    assert kinds.of_launch(second, launches, options) is not None
    assert kinds.of_launch(first, launches, options) is None
    assert kinds.of_launch(third, launches, options) is None
    wider = replace(second, grid=(2, 1, 1))
    assert kinds.of_launch(wider, (first, wider, third), options) is None
    unknown = replace(second, symbol="other")
    assert kinds.of_launch(unknown, (first, unknown, third), options) is None

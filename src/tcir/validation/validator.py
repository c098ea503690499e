"""Executes a program after every pass and compares the results.

Every result is compared bit for bit with the result before the pass and with the result of the
input program. If it differs from the latter, and the inputs are random floats or a function such as
exp is approximated, a bound decides (`tcir.validation.bounds`, `tcir.validation.propagation`). A
hazard of severity "error" makes a pass "different" regardless of the numbers. A pass that does not
change the module, or does not change the instructions of its thread-level kernels, has the outcome
of the state before it, and is not executed.

A `Plan` has the estimated cost of a validation. `Validation.start` executes the input program
according to a plan, and the validation then checks one state after the other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tcir.dialect.walk import walk
from tcir.interp import Outcome
from tcir.interp.types import Array, is_float
from tcir.machine.events import EventStream, Recording
from tcir.passes.emit.calls import inlined
from tcir.program.boundary.gradients import following
from tcir.program.boundary.single_products import with_single_products
from tcir.program.launch import LaunchSequence
from tcir.program.programs import Program, find_programs
from tcir.program.slices import times_filling
from tcir.validation.against_f64 import has_numbers
from tcir.validation.budget import StatesBudget
from tcir.validation.coverage import FULL_RANGE, SPECIAL_VALUES, Coverage
from tcir.validation.draw_bounds import DrawBounds
from tcir.validation.draws import Draw, Draws
from tcir.validation.executed import ExecutedState, Threads, digest
from tcir.validation.execution import Executions
from tcir.validation.faults import blamed_on_the_pass, guarded, rules_of
from tcir.validation.functions import OWN
from tcir.validation.judgement import Judge
from tcir.validation.kinds import Kinds
from tcir.validation.plan import Plan
from tcir.validation.raised import attentions, copied, with_attention_raised
from tcir.validation.ranged import Ranged
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.state_check import Baseline, Execute, StateCheck
from tcir.validation.widened import judged
from tcir.validation.work import Algorithm, Work

if TYPE_CHECKING:
    from tcir._mlir import ir


class Validation:
    """Executes the states of one program and fills in a report line for each.

    draws:    all sets of inputs, with the results of the input program on each
    input:    the line of the input program, the reference for all states
    coverage: the kinds of input that were covered
    """

    @property
    def kinds(self) -> Kinds | None:
        """The kinds of launch, of which one launch each is executed; None until they are known."""
        return self.runs.kinds

    def __init__(
        self,
        runs: Executions,
        draws: Draws,
        line: Line,
        coverage: Coverage,
        baseline: Baseline,
        executed: ExecutedState | None = None,
        bounds: DrawBounds | None = None,
    ) -> None:
        self.runs, self.draws, self.input, self.coverage = runs, draws, line, coverage
        self._baseline, self._executed, self._bounds = baseline, executed, bounds
        self.on_kinds: Callable[[Kinds], None] = lambda _: None
        self._told: Kinds | None = None
        settings = runs.plan.settings
        self.budget = StatesBudget(settings.budget if settings.kinds else None)

    @staticmethod
    def start(plan: Plan, module: ir.Module) -> Validation:
        """Executes the input program of `plan`, with calls inlined."""
        from tcir.machine.numerics.products import Products

        started, module = time.perf_counter(), inlined(module)
        runs = Executions(plan, Products()).of_one_state()
        validation = _start(runs, module, find_programs(module))
        validation.budget.started = started
        return validation

    @property
    def main(self) -> Draw:
        """The inputs that are executed in every order."""
        return self.draws.main

    def check(self, module: ir.Module, line: Line, known_as: bytes = b"") -> Line:
        """Executes `module` in every completion order and fills in the verdict of `line`. known_as:
        digest of the module, if the caller has it (`tcir.program.source.digest_of`)
        """
        if self.budget.leaves_out(line):
            return line
        with blamed_on_the_pass(line):
            given, module = module, inlined(module)
            programs = find_programs(module)
            self._widen(module)
            self._sort(module, programs)
            written = digest(module, programs, known_as if module is given else b"")
            known = self._executed
            if known and written is not None and known.module == written:
                self._repeat(line, known, f"unchanged since {known.line.name}")
                return line
            threads = Threads.of(module, programs) if programs else None
            if known and threads is not None and known.threads == threads:
                self._repeat(line, known, f"the instructions executed after {known.line.name}")
                return line
            spelled = threads.spelled if threads else {}

            def execute(
                runs: Executions, draw: Draw, order: int | None, line: Line
            ) -> Outcome | None:
                return guarded(line, lambda: runs.module(module, programs, draw, order, spelled))

            orders = self.runs.plan.settings.orders if any(map(_asynchronous, programs)) else 1
            state = StateCheck(self.runs, self.draws, self._baseline, execute, line)
            outcome = state.compare_orders(orders, _levels(programs))
            self.budget.executed(line)
            self._baseline, self._executed = state.baseline, None
            if outcome is not None and not line.findings:
                self._executed = ExecutedState(written, threads, line, outcome)
            self._name_kinds(line)
        return line

    def _sort(self, module: ir.Module, programs: Sequence[Program]) -> None:
        """Sorts the launches of functions on tensors by kind; `on_kinds` receives the kinds before
        the first of them is executed on the machine."""
        settings = self.runs.plan.settings
        if all(program.level == "tensor" for program in programs):
            if settings.kinds and len(programs) > 1:
                self.runs = replace(self.runs, kinds=Kinds.of(module, find_programs, settings))
        elif self.kinds is not None and self._told is not self.kinds:
            self._told = self.kinds
            self.on_kinds(self.kinds)

    def _name_kinds(self, line: Line) -> None:
        """Says how many launches were executed, and which kinds were not."""
        kinds = self.runs.kinds
        if kinds is None or not line.held or line.level == "tensor":
            return
        executed = len(kinds.seconds) - len(kinds.left)
        line.compared += f"; {executed} of {len(kinds.launches)} launches, one of each kind"
        line.left = kinds.left_words

    def _widen(self, module: ir.Module) -> None:
        """Replaces the bounds if this state's differ from those of the state before."""
        if self._bounds is None:
            return
        bounds = self._bounds.of_state(module)
        if bounds is self._bounds:
            return
        self._bounds = bounds
        for draw in (*self.draws.more, self.draws.main):
            if not draw.exact:
                bounds.carry(draw)

    def _repeat(self, line: Line, executed: ExecutedState, why: str) -> None:
        """Fills the line of a state that executes the same instructions as the state before, which
        had no finding."""
        line.level, line.counters = executed.line.level, executed.line.counters
        before = self._baseline
        judge = Judge(self.runs.plan.settings, self.main, before.outputs, before.sites)
        judge.fill(line, executed.outcome)
        line.compared += f"; {why}"

    def check_ptx(
        self, ptx: str, launches: LaunchSequence, line: Line
    ) -> tuple[Line, Sequence[EventStream]]:
        """Executes PTX text in every completion order and fills in the verdict of `line`. Also
        returns the events of each launch, in the order of issue.
        """
        settings = self.runs.plan.settings
        events = settings.events
        if events is None and (settings.jobs == 1 or settings.orders > 1):
            events = Recording()  # of one process, which runs the order of issue
        recorded: Sequence[EventStream] = events.streams if events is not None else ()

        def executing(variables: dict[str, Array] | None = None) -> Execute:
            def execute(
                runs: Executions, draw: Draw, order: int | None, line: Line
            ) -> Outcome | None:
                nonlocal events
                first, events = events, None  # of the first run, which is in the order of issue
                return guarded(line, lambda: runs.ptx(ptx, launches, draw, order, first, variables))

            return execute

        if self.budget.leaves_out(line, last=True):
            return line, recorded
        with blamed_on_the_pass(line):
            state = StateCheck(self.runs, self.draws, self._baseline, executing(), line)
            levels = ("thread",) * len(launches.launches)
            outcome = state.compare_orders(settings.orders, levels)
            self._baseline = state.baseline
            # Of launches that leave other bytes in the module's variables, these alone may carry
            # something to the next: the rest is inputs, or written before it is read.
            if outcome is not None and outcome.left:
                state.again(executing({}))
            self._name_kinds(line)
        return line, recorded


def begin(module: ir.Module, settings: Settings | None = None) -> Validation:
    """Plans and starts the validation of an input program."""
    return Validation.start(Plan.of(module, settings), module)


def _start(runs: Executions, module: ir.Module, programs: Sequence[Program]) -> Validation:
    plan = runs.plan
    signature, settings = plan.signature, plan.settings
    draws = Draws.of(module, signature, settings)
    line = Line(0, "(input)")
    for draw in (*draws.more, draws.main):
        outcome = guarded(line, partial(runs.module, module, programs, draw))
        if outcome is None:
            return Validation(runs, draws, line, Coverage(), Baseline([], runs.before))
        draw.reference = outcome.outputs
    line.verdict = "reference"
    tensors = signature.level == "tensor"
    algorithm = Algorithm.of(draws.contraction, signature.outputs) if tensors else None
    work = Work(_levels(programs), line.counters)
    runs = runs.after(work)
    approximate = any(op.operation.name in OWN for op in walk(module.operation))
    raised = with_attention_raised(module) if tensors and approximate else None
    # passes change the module, but bounds of attention are carried through it again later
    kept = copied(module) if raised is not None or attentions(module) else module
    bounds = DrawBounds(runs, kept, find_programs(kept), draws.known, raised)
    rounded = approximate or settings.inputs == "random"
    if tensors and (rounded or not draws.known):
        bounds.prepare_all(draws)
        draws = judged(runs, module, programs, draws, rounded=rounded)
        if not has_numbers(draws.main.reference):
            line.verdict, line.incomplete = "incomplete", [draws.main.no_bound]
    line.compared = f"{rules_of(line.level)}, {draws.main.words}"
    baseline = Baseline(draws.main.reference, work, algorithm)
    deep = draws.main.precise is not None
    ranged = None if deep else _draw_more(bounds, draws, line)
    coverage, executed = _covered(plan, draws, ranged), None
    one_order = not any(map(_asynchronous, programs))  # later states are tried in others as well
    if outcome is not None and one_order and not line.findings:
        outcome = replace(outcome, outputs=draws.main.reference)
        executed = ExecutedState(digest(module, programs), None, line, outcome)
    return Validation(runs, draws, line, coverage, baseline, executed, None if deep else bounds)


def _draw_more(bounds: DrawBounds, draws: Draws, line: Line) -> Ranged | None:
    """Adds further inputs if the exact ones do not span their formats; returns their source."""
    whole = draws.spans and (draws.special or not _has_floats(bounds.runs.plan))
    if not whole:
        ranged = _ranged(bounds, spans=draws.spans)
        made = ranged.draws() if ranged else []
        draws.more.extend(made)
        words = dict.fromkeys(draw.words for draw in made)
        line.compared += f"; and on {', '.join(words)}" if words else ""
        return ranged
    if draws.few and (wider := _ranged(bounds, spans=False)):
        draws.more.extend(wider.ranges())
    return None


def _ranged(bounds: DrawBounds, *, spans: bool) -> Ranged | None:
    """Further inputs for a program on tensors whose exact inputs do not span their formats."""
    plan, module, programs = bounds.runs.plan, bounds.module, bounds.programs
    signature, settings = plan.signature, plan.settings
    if signature.level != "tensor" or settings.inputs != "integers":
        return None

    def run(inputs: list[Array]) -> list[Array] | None:
        return bounds.runs.on_tensors(module, programs, inputs, Line(0, "(range)"))

    def bounded(draw: Draw) -> bool:
        bounds.carry(draw)
        return draw.bound is not None

    specs = (*signature.inputs, *signature.outputs)
    work = plan.points + sum(math.prod(spec.shape) for spec in specs)
    block = programs[0].op.operation.regions[0].blocks[0]

    def single(drawn: list[Array]) -> list[Array] | None:
        return with_single_products(block, signature.inputs, drawn, settings.seed)

    filtered = times_filling(block)
    follow = following(module, signature)
    return Ranged(
        signature.inputs, settings.seed, run, bounded, work, filtered, single, follow, spans
    )


def _covered(plan: Plan, draws: Draws, ranged: Ranged | None) -> Coverage:
    if ranged is not None:
        return ranged.coverage
    if draws.main.precise is not None:
        return Coverage(small=f"numbers around 1 only, as {draws.main.no_bound}")
    if draws.spans:
        return Coverage([FULL_RANGE, *[SPECIAL_VALUES] * _has_floats(plan)])
    if plan.settings.inputs == "random":
        return Coverage(small="standard normal numbers only")
    return Coverage(small=f"no bound is known at the {plan.signature.level} level")


def _has_floats(plan: Plan) -> bool:
    return any(is_float(spec.dtype) for spec in plan.signature.inputs)


def _levels(programs: Sequence[Program]) -> tuple[str, ...]:
    return tuple(program.level for program in programs)


def _asynchronous(program: Program) -> bool:
    """Whether completion orders matter."""
    sequential = program.level == "tile" and "tc.async" not in program.op.operation.attributes
    return program.level != "tensor" and not sequential

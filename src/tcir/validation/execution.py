"""Executes the states of one program, on given inputs and in a given order."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcir.errors import IncompleteError
from tcir.interp import Outcome, OutputSpec, executor_for
from tcir.program.constants import constant_arrays
from tcir.program.execution import (
    KernelStep,
    RunStep,
    as_view,
    back_from_views,
    run_in_order,
    run_sequence,
    viewed,
)
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.memory_image import from_memory, images, in_memory
from tcir.program.programs import Program
from tcir.program.signature import views_of
from tcir.program.workspaces import NONE, Workspaces
from tcir.validation.draws import Draw
from tcir.validation.faults import guarded
from tcir.validation.plan import Plan
from tcir.validation.report import Line
from tcir.validation.work import Work

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.interp.thread import Spelling
    from tcir.interp.types import Array
    from tcir.machine.events import Recording
    from tcir.machine.numerics.products import Products
    from tcir.run_options import RunOptions
    from tcir.validation.kinds import Kinds


@dataclass(frozen=True)
class Executions:
    """How the states of one program are executed.

    products: results of products that states share
    before:   work of the previous state, which limits the number of instructions; initially that of
              the program on tensors
    kinds:    computes launches of the same kind as a launch that is executed; None: the machine
              executes every launch
    repeats:  data that the completion orders of one state share
              (`tcir.run_options.RunOptions.repeats`)
    """

    plan: Plan
    products: Products
    before: Work = field(default_factory=lambda: Work(("tensor",)))
    repeats: dict[bytes, Any] | None = None
    kinds: Kinds | None = None

    def after(self, work: Work) -> Executions:
        """Returns a copy in which `work` is the work of the previous state."""
        return dataclasses.replace(self, before=work)

    def of_one_state(self) -> Executions:
        """Returns a copy for the next state, whose orders share no data with those of this
        state.
        """
        repeats: dict[bytes, Any] | None = {} if self.plan.settings.orders > 1 else None
        return dataclasses.replace(self, repeats=repeats)

    def on(self, draw: Draw) -> Executions:
        """Returns a copy that executes the state on the inputs of another draw."""
        if self.kinds is None or not draw.exponentials:
            return self
        return dataclasses.replace(self, kinds=self.kinds.with_exponentials())

    def options(self, order: int | None, level: str) -> RunOptions:
        """Options of one execution at `level`."""
        plan = self.plan
        budget = plan.instructions(level, self.before)
        return plan.settings.options(order, budget, self.products, self.repeats, plan.sample)

    def ptx(
        self,
        ptx: str,
        launches: LaunchSequence,
        draw: Draw,
        order: int | None,
        events: Recording | None = None,
        variables: dict[str, Array] | None = None,
    ) -> Outcome:
        """Executes PTX text.

        events:    if given, receives the events of the recorded CTAs
        variables: the module's variables, which the run updates
        """
        options = dataclasses.replace(self.options(order, "thread"), events=events)
        outputs, kinds = self.plan.signature.outputs, self.kinds

        def instead(launch: Launch) -> RunStep | None:
            return None if kinds is None else kinds.of_launch(launch, launches.launches, options)

        return run_sequence(
            ptx, launches, draw.images, outputs, options, variables, instead=instead
        )

    def on_tensors(
        self, module: ir.Module, programs: Sequence[Program], inputs: list[Array], line: Line
    ) -> list[Array] | None:
        """Results of the program on other inputs. If it has no results, returns None and puts the
        reason into `line`.
        """
        outcome = guarded(line, lambda: self.module(module, programs, Draw(inputs)))
        return None if outcome is None else outcome.outputs

    def module(
        self,
        module: ir.Module,
        programs: Sequence[Program],
        draw: Draw,
        order: int | None = None,
        spelled: Mapping[str, Spelling] | None = None,
    ) -> Outcome:
        """Executes the program of `module`, or its kernels one after the other.

        spelled: for thread-level kernels: their PTX, by name
        """
        outputs = self.plan.signature.outputs
        if not programs:
            return in_memory(outputs, lambda specs: run_in_order([], draw.images, specs, NONE))
        program = programs[0]
        views = views_of(program)
        plain = program.level == "tensor" and not views
        constants = constant_arrays(module)
        buffers = [*draw.inputs, *constants] if plain else [*draw.images, *images(constants)]
        given = {name: {"spelled": each} for name, each in (spelled or {}).items()}

        partly = program.level == "tile" and program.attribute("tc.args") is not None
        if len(programs) == 1 and not partly and (plain or program.level != "tensor"):
            run, options = _executor(program.level), self.options(order, program.level)
            known = given.get(program.name, {})
            arrays = [as_view(a, views.get(n)) for n, a in enumerate(buffers)]
            if plain:
                unread = self.plan.signature.unread
                return run(module, program.name, arrays, outputs, options, unread)

            def alone(specs: Sequence[OutputSpec]) -> Outcome:
                seen = [viewed(s, views.get(len(buffers) + n)) for n, s in enumerate(specs)]
                outcome: Outcome = run(module, program.name, arrays, seen, options, **known)
                back_from_views(outcome, dict(enumerate(specs)))
                return outcome

            return in_memory(outputs, alone)

        def step(program: Program) -> KernelStep:
            views = views_of(program)

            def run(numbers: Any, arrays: Any, wanted: Any) -> Outcome:
                if program.level == "tensor":
                    arrays = [from_memory(a, views[n]) for n, a in zip(numbers, arrays)]
                    wanted = [views[n] for n in numbers[len(arrays) :]]
                named: dict[str, Any] = {**given.get(program.name, {})}
                if program.level == "thread":
                    written = numbers[len(arrays) :]
                    whole = [place for place, n in enumerate(written) if n >= first]
                    own = program.repeat.there(numbers) if program.repeat else numbers
                    named |= {"buffers": own, "whole": whole}
                execute = _executor(program.level)
                options = self.options(order, program.level)
                if program.level == "tile" and any(n >= first for n in numbers[len(arrays) :]):
                    options = dataclasses.replace(options, sample=None)
                outcome = execute(module, program.name, arrays, wanted, options, **named)
                if program.level == "tensor":
                    outcome.outputs = images(outcome.outputs)
                return outcome

            found = None
            if self.kinds is not None and program.level != "tensor":
                found = self.kinds.of_program(program, self.options(order, "tensor"))
            return KernelStep(program.title, program.buffers, found or run, views)

        first = len(buffers) + len(outputs)
        spaces = Workspaces.of(module)
        steps = [step(program) for program in programs]
        return in_memory(outputs, lambda specs: run_in_order(steps, buffers, specs, spaces))


def _executor(level: str) -> Any:
    try:
        return executor_for(level)
    except (KeyError, AttributeError) as error:
        raise IncompleteError(f"no executor for the level '{level}'") from error

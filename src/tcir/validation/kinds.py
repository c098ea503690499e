"""Executes only one launch of each kind on the simulated machine; tensor rules compute the other
launches.

A kind is a function that several launches share (pass share-kernels): they do the same computation
on buffers of the same shapes, each with its own weights and constants. Tensor rules compute the
other launches from the buffers that the state assigns to them, so a launch to which a wrong buffer
is assigned has a wrong result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcir.dialect import tc
from tcir.dialect.upstream import names
from tcir.dialect.walk import nested
from tcir.errors import InputError
from tcir.interp import Outcome, OutputSpec, executor_for
from tcir.program.execution import RunStep, as_view
from tcir.program.flops import flops_of
from tcir.program.launch import Launch
from tcir.program.memory_image import from_memory, images
from tcir.program.programs import Program
from tcir.program.signature import views_of
from tcir.validation.estimate import Estimate, duration
from tcir.validation.raised import copied

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.interp.types import Array
    from tcir.run_options import RunOptions
    from tcir.validation.settings import Settings


_EXPONENTIALS = names("math.exp", "math.exp2", "linalg.softmax", tc.AttentionOp)


@dataclass(frozen=True)
class Kinds:
    """The launches of a program on tensors, by name; each has the function of its kind.

    module:  the program, which later passes do not change
    seconds: estimated seconds of each kind, by its function's name
    left:    kinds whose launches are not executed, because of the budget
    """

    module: ir.Module
    launches: Mapping[str, Program]
    seconds: Mapping[str, float]
    left: frozenset[str]
    budget: float | None

    @staticmethod
    def of(
        module: ir.Module, find: Callable[[ir.Module], Sequence[Program]], by: Settings
    ) -> Kinds:
        """Finds the kinds of a module of functions on tensors. The budget is given to kinds in the
        order of their first launches; a kind that exceeds the remaining budget is left out.
        """
        kept = copied(module)
        launches = {program.title: program for program in find(kept)}
        seconds, left, spent = dict[str, float](), set[str](), 0.0
        for program in launches.values():
            if program.name in seconds:
                continue
            elements = sum(math.prod(spec.shape) for spec in views_of(program).values())
            points = sum(count for _, count in flops_of(program)) // 2
            seconds[program.name] = once = Estimate.once(points, elements, by.orders)
            if by.budget is not None and spent + once > by.budget:
                left.add(program.name)
            else:
                spent += once
        return Kinds(kept, launches, seconds, frozenset(left), by.budget)

    def with_exponentials(self) -> Kinds:
        """Returns a copy in which the kinds without exponentials are left out as well."""
        of = {program.name: program.op for program in self.launches.values()}
        others = {
            kind
            for kind in self.seconds
            if not any(each.operation.name in _EXPONENTIALS for each in nested(of[kind]))
        }
        return replace(self, left=self.left | others)

    @property
    def long(self) -> bool:
        """Whether the estimate is printed, which is always so because whole networks take long."""
        return True

    def __str__(self) -> str:
        executed = [name for name in self.seconds if name not in self.left]
        words = (
            f"estimate: {duration(sum(self.seconds[name] for name in executed))} to execute "
            f"{len(executed)} of {len(self.launches)} launches, one of each kind"
        )
        if not self.left:
            return words
        return f"{words}; the budget of {self.budget:g} s leaves out {self.left_words}"

    @property
    def left_words(self) -> str:
        """Names of the kinds that are left out, for messages."""
        return ", ".join(f"@{name}" for name in self.seconds if name in self.left)

    def notes(self) -> list[str]:
        """Notes for the report that name the launches which tensor rules compute, by kind."""
        notes = []
        for kind in self.seconds:
            others = [f"@{t}" for t, p in self.launches.items() if p.name == kind and t != kind]
            if kind in self.left:
                alike = f" ({', '.join(others)})" if others else ""
                notes.append(f"not executed on the machine, beyond the budget: @{kind}{alike}")
            elif others:
                notes.append(f"same kind as @{kind}, computed by tensor rules: {', '.join(others)}")
        return notes

    def step(
        self, level: str, title: str, here: Mapping[int, int], options: RunOptions
    ) -> RunStep | None:
        """Returns a function that computes a launch of a state by tensor rules; None if the machine
        executes the launch.

        here: for each buffer of the kind's own launch, the number of the corresponding buffer in
        the state's launch
        """
        known = self.launches.get(title)
        if known is None or not (known.repeat or known.name in self.left):
            return None
        specs = list(views_of(known).values())
        order = [here.get(number, number) for number in self.launches[known.name].buffers]
        count = len(known.op.operation.regions[0].blocks[0].arguments)

        def run(
            numbers: Sequence[int], arrays: Sequence[Array], wanted: Sequence[OutputSpec]
        ) -> Outcome:
            given = dict(zip(numbers, arrays, strict=False))
            written = [*numbers[len(arrays) :]]
            if sorted(order[count:]) != sorted(written) or not {*order[:count]} <= {*given}:
                raise InputError(
                    f"@{title}: expected a launch that reads buffers {order[:count]} and writes "
                    f"{order[count:]}, as @{known.name} does with its own, got {list(numbers)}, "
                    f"of which {written} were not written before"
                )
            inputs = [
                from_memory(as_view(given[number], spec), spec)
                for number, spec in zip(order[:count], specs, strict=False)
            ]
            run = executor_for("tensor")
            outcome: Outcome = run(self.module, known.name, inputs, specs[count:], options)
            outcome.level, made = level, dict(zip(order[count:], images(outcome.outputs)))
            seen = zip(written, wanted, strict=True)
            outcome.outputs = [as_view(made[number], spec) for number, spec in seen]
            return outcome

        return run

    def of_program(self, program: Program, options: RunOptions) -> RunStep | None:
        """Returns the `step` for a program of a state on tiles or threads."""
        own = self.launches.get(program.name)
        known = self.launches.get(program.title)
        if own is None or known is None:
            return None
        repeat, before = program.repeat, known.repeat
        if (repeat and repeat.kernel) != (before and before.kernel):
            return None  # a pass gave it a kernel of its own
        here = dict(zip(own.buffers, repeat.here(own.buffers), strict=True)) if repeat else {}
        return self.step(program.level, program.title, here, options)

    def of_launch(
        self, launch: Launch, launches: Sequence[Launch], options: RunOptions
    ) -> RunStep | None:
        """Returns the `step` for a launch of a PTX kernel."""
        known = self.launches.get(launch.title)
        own = next((each for each in launches if known and each.title == known.name), None)
        if own is None or _without_buffers(own) != _without_buffers(launch):
            return None
        pairs = {
            (mine["arg"], its["arg"])
            for mine, its in zip(own.params, launch.params, strict=True)
            if "arg" in mine
        }
        if len(pairs) != len({a for a, _ in pairs}):
            return None
        return self.step("ptx", launch.title, dict(pairs), options)


def _without_buffers(launch: Launch) -> Launch:
    """What two launches of one kind have in common."""
    params = tuple({key: v for key, v in each.items() if key != "arg"} for each in launch.params)
    return replace(launch, symbol="", params=params)

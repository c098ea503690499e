"""Executing the program after every pass and comparing the results.

Every result is compared bit for bit with the result before the pass and with that of the input
program. If it differs from the latter and the inputs are random floats, or a function such as exp
is approximated, a bound decides (`tcir.validation.bounds`, `tcir.validation.propagation`). A hazard
of severity "error" makes a pass "different" regardless of the numbers. A pass that leaves the
module, or the instructions of its thread-level kernels, as they were has the outcome of the state
before it, which is not executed a second time.
"""

from __future__ import annotations

import dataclasses
import math
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir.errors import Error, IncompleteError
from tcir.interp import Outcome, OutputSpec, executor_for
from tcir.interp.types import Array, is_float
from tcir.machine.events import EventStream, Recording
from tcir.machine.sample import Sample
from tcir.passes.emit.calls import inlined
from tcir.program.access import product_of, reduction_points
from tcir.program.boundary.single_products import with_single_products
from tcir.program.constants import constant_arrays
from tcir.program.execution import (
    KernelStep,
    as_view,
    back_from_views,
    run_in_order,
    run_sequence,
    viewed,
)
from tcir.program.launch import LaunchSequence
from tcir.program.memory_image import PACKED_BITS, from_memory, images, in_memory
from tcir.program.programs import Program, find_program, find_programs
from tcir.program.signature import Signature, signature_of, views_of
from tcir.program.slices import times_filling
from tcir.program.workspaces import NONE, Workspaces
from tcir.run_options import RunOptions
from tcir.target import DEFAULT_TARGET
from tcir.validation import bounds, compare, propagation
from tcir.validation.coverage import FULL_RANGE, SPECIAL_VALUES, Coverage
from tcir.validation.draws import OPEN, Bound, Draw, Draws
from tcir.validation.estimate import Estimate
from tcir.validation.executed import Executed, Threads, digest
from tcir.validation.functions import OWN
from tcir.validation.orders import Tried, tried
from tcir.validation.raised import with_quantisation_raised
from tcir.validation.ranged import Ranged
from tcir.validation.report import Line
from tcir.validation.rules import Known
from tcir.validation.settings import Settings
from tcir.validation.work import Algorithm, Work

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.interp.thread import Spelling

# Programs made of these have no other arithmetic than sums of products (and one rounding), so that
# running them on magnitudes and on ones gives the sums and counts that the bound needs.
_SUM_OF_PRODUCTS = {
    "arith.addf", "arith.constant", "arith.extf", "arith.mulf", "arith.truncf", "builtin.module",
    "func.func", "func.return", "linalg.batch_matmul", "linalg.batch_matmul_transpose_a",
    "linalg.batch_matmul_transpose_b", "linalg.conv_2d_nhwc_fhwc", "linalg.conv_2d_nhwc_hwcf",
    "linalg.fill", "linalg.generic", "linalg.matmul", "linalg.matmul_transpose_a",
    "linalg.matmul_transpose_b", "linalg.transpose",
    "linalg.yield", "arith.scaling_extf", "tc.block_scaled_matmul",
    "tc.conv2d", "tc.grouped_matmul", "tc.matmul", "tensor.collapse_shape", "tensor.empty",
    "tensor.pad", "tensor.yield",
}  # fmt: skip


Execute = Callable[[Draw, int | None, Line], Outcome | None]
"""Executes a state on inputs, in an order (None: that of issue), and notes in the line what went
wrong."""


class Validator:
    """Executes the states of one program and fills in a report line for each.

    streams:  the events of each launch of PTX, in the order of issue
    coverage: what the inputs covered
    """

    def __init__(self, settings: Settings | None = None) -> None:
        from tcir.machine.numerics.products import Products

        self.settings = settings or Settings()
        self.signature: Signature | None = None
        self._draws: Draws | None = None
        self._previous: list[Array] = []
        self._sites: dict[int, Any] = {}
        self._before: Work | None = None
        self._products = Products()
        self._repeats: dict[bytes, Any] = {}
        self._algorithm: Algorithm | None = None
        self._points = 0
        self._sample: Sample | None = None
        self._stored: tuple[int, dict[int, Array]] = 0, {}
        self._executed: Executed | None = None
        self.streams: Sequence[EventStream] = ()
        self.coverage = Coverage()

    def foresee(self, module: ir.Module) -> Estimate:
        """What validating this input program will take; IncompleteError if it is too much."""
        module = inlined(module)
        self.signature = signature = signature_of(module)
        if signature.level == "tensor":
            self._points = reduction_points(module)
        settings, packed = self.settings, any(s.dtype in PACKED_BITS for s in signature.outputs)
        budget = None if packed else settings.budget  # CTAs may share bytes of packed results
        estimate = Estimate.of(signature, self._points, settings.orders, budget)
        estimate.check(signature)
        if estimate.share < 1:
            self._sample = Sample(estimate.share, settings.seed)
        return estimate

    def start(self, module: ir.Module) -> Line:
        """Executes the input program, calls inlined: the reference for all later states."""
        module = inlined(module)
        if self.signature is None:
            self.foresee(module)
        assert self.signature is not None
        self._draws = draws = Draws.of(module, self.signature, self.settings)
        if self.signature.level == "tensor":
            self._algorithm = Algorithm.of(draws.contraction, self.signature.outputs)
        line = Line(0, "(input)")
        programs = find_programs(module)
        for draw in (*draws.more, draws.main):
            outcome = self._execute(module, programs, draw, None, line)
            if line.verdict in ("incomplete", "different"):
                return line
            assert outcome is not None
            draw.reference = outcome.outputs
        self._previous = draws.main.reference
        self._before = Work(_levels(programs), line.counters)
        line.verdict = "reference"
        line.compared = f"{_rules(line.level)}, {draws.main.words}"
        approximate = bool(_op_names(module) & OWN.keys())
        rounded = approximate or self.settings.inputs == "random" or not draws.known
        if self.signature.level == "tensor" and rounded:
            for draw in (*draws.more, draws.main):
                if not draw.exact:
                    self._prepare_bound(module, programs, draw)
            draws.more[:] = [
                d for d in draws.more if d.exact or d.bound is not None or not d.rounded
            ]
        whole = draws.spans and (draws.special or not self._floats)
        ranged = None if whole else self._range(module, programs, spans=draws.spans)
        if whole and draws.few and (wider := self._range(module, programs, spans=False)):
            draws.more.extend(wider.ranges())
        if ranged:
            draws.more.extend(made := ranged.draws())
            words = dict.fromkeys(draw.words for draw in made)
            line.compared += f"; and on {', '.join(words)}" if words else ""
        self.coverage = self._covered(draws, ranged)
        one_order = not any(map(_asynchronous, programs))  # later states are tried in others, too
        if outcome is not None and one_order and not line.findings:
            self._executed = Executed(digest(module, programs), None, line, outcome)
        return line

    @property
    def _floats(self) -> bool:
        """Whether an input is made of floats."""
        inputs = self.signature.inputs if self.signature else ()
        return any(is_float(spec.dtype) for spec in inputs)

    def _range(
        self, module: ir.Module, programs: Sequence[Program], *, spans: bool
    ) -> Ranged | None:
        """Further inputs for a program on tensors whose exact inputs do not span their formats."""
        signature, settings = self.signature, self.settings
        if signature is None or signature.level != "tensor" or settings.inputs != "integers":
            return None

        def run(inputs: list[Array]) -> list[Array] | None:
            outcome = self._execute(module, programs, Draw(inputs), None, Line(0, "(range)"))
            return None if outcome is None else outcome.outputs

        def bounded(draw: Draw) -> bool:
            self._carry_bound(module, programs, draw, sorted(_op_names(module) - _SUM_OF_PRODUCTS))
            return draw.bound is not None

        specs = (*signature.inputs, *signature.outputs)
        work = self._points + sum(math.prod(spec.shape) for spec in specs)
        block = programs[0].op.operation.regions[0].blocks[0]

        def single(drawn: list[Array]) -> list[Array] | None:
            return with_single_products(block, signature.inputs, drawn, settings.seed)

        filtered = times_filling(block)
        return Ranged(signature.inputs, settings.seed, run, bounded, work, filtered, single, spans)

    def _covered(self, draws: Draws, ranged: Ranged | None) -> Coverage:
        assert self.signature is not None
        if ranged is not None:
            return ranged.coverage
        if draws.spans:
            return Coverage([FULL_RANGE, *[SPECIAL_VALUES] * self._floats])
        if self.settings.inputs == "random":
            return Coverage(small="standard normal numbers only")
        return Coverage(small=f"no bound is known at the {self.signature.level} level")

    def check(self, module: ir.Module, line: Line) -> Line:
        """Executes `module` under every order and fills in the verdict of `line`."""
        with _laid_to_the_pass(line):
            module = inlined(module)
            programs = find_programs(module)
            known, written = self._executed, digest(module, programs)
            if known and written is not None and known.module == written:
                self._repeat(line, known, f"unchanged since {known.line.name}")
                return line
            threads = Threads.of(module, programs) if programs else None
            if known and threads is not None and known.threads == threads:
                self._repeat(line, known, f"the instructions executed after {known.line.name}")
                return line
            orders = self.settings.orders if any(map(_asynchronous, programs)) else 1
            outcome = self._compare_orders(
                line,
                orders,
                lambda draw, order, line: self._execute(
                    module, programs, draw, order, line, threads
                ),
                _levels(programs),
            )
            self._executed = None
            if outcome is not None and not line.findings:
                self._executed = Executed(written, threads, line, outcome)
        return line

    def _repeat(self, line: Line, executed: Executed, why: str) -> None:
        """The line of a state that executes what the one before did, cleanly."""
        line.level, line.counters = executed.line.level, executed.line.counters
        self._judge(line, executed.outcome)
        line.compared += f"; {why}"

    def check_ptx(self, ptx: str, launches: LaunchSequence, line: Line) -> Line:
        """Executes PTX text under every order and fills in the verdict of `line`."""

        events = self.settings.events
        if events is None and (self.settings.jobs == 1 or self.settings.orders > 1):
            events = Recording()  # of one process, which runs the order of issue
        self.streams = events.streams if events is not None else ()

        def execute(
            draw: Draw, order: int | None, line: Line, variables: dict[str, Array] | None = None
        ) -> Outcome | None:
            nonlocal events
            assert self.signature is not None
            options = dataclasses.replace(self._options(order, "thread"), events=events)
            events = None  # of the first run, which is in the order of issue
            return _guard(
                line,
                lambda: run_sequence(
                    ptx,
                    launches,
                    draw.images,
                    self.signature.outputs if self.signature else (),
                    options,
                    variables,
                ),
            )

        levels = ("thread",) * len(launches.launches)
        with _laid_to_the_pass(line):
            outcome = self._compare_orders(line, self.settings.orders, execute, levels)
            if outcome is not None and outcome.left:
                self._launch_again(line, execute)
        return line

    def _launch_again(self, line: Line, execute: Callable[..., Outcome | None]) -> None:
        """Executes launches twice that leave other bytes in the module's variables, where alone
        something of the first may reach the second: the rest is inputs, or written before it is
        read."""
        variables: dict[str, Array] = {}
        for _ in range(2):
            again = Line(line.index, line.name)
            self._attempt(lambda *run: execute(*run, variables), None, again)
        if not again.held:
            again.compared += ", the second time on the same memory"
        line.take(again)

    def _options(self, order: int | None, level: str) -> RunOptions:
        """Options of one execution at `level`."""
        repeats = self._repeats if self.settings.orders > 1 else None
        budget = self._budget(level)
        return self.settings.options(order, budget, self._products, repeats, self._sample)

    def _budget(self, level: str) -> int:
        """Instructions that a kernel at `level` may take; an endless loop ends there."""
        if self.settings.max_instructions is not None:
            return self.settings.max_instructions
        assert self.signature is not None
        specs = (*self.signature.inputs, *self.signature.outputs)
        nbytes = sum(math.prod(spec.shape) * spec.dtype.itemsize for spec in specs)
        before = self._before or Work(("tensor",))  # the input, too, works on its arrays only
        return before.budget(level, nbytes, self._points)

    def _compare_orders(
        self, line: Line, orders: int, execute: Execute, levels: tuple[str, ...]
    ) -> Outcome | None:
        """Fills in `line`; returns the outcome in the order of issue if every order's holds."""
        draws = self._draws
        if draws is None or not draws.main.reference:
            line.verdict = "incomplete"
            line.compared = "the program as it came in gave no reference"
            return None
        started = time.perf_counter()
        self._repeats = {}  # of this state, under its orders
        last, outcome = self._attempt(execute, None, line)
        if outcome is not None and line.held:
            # In the order of issue the first CTA does all that CTAs may take from each other.
            orders = max(orders, 2) if outcome.meets else orders
            last = self._try_others(line, orders, execute, last)
        held = outcome is not None and line.held
        if outcome is not None and held:
            line.compared += line.in_orders()
            self._previous = outcome.outputs
            work = Work(levels, last.work)
            if self._before is not None:
                line.remarks = [f"same result, more work: {j}" for j in self._before.jumps(work)]
            if self._algorithm is not None and "tensor" not in levels:
                more = self._algorithm.exceeded(work)
                line.remarks += [f"same result, more work than the input: {j}" for j in more]
                self._algorithm = None
            line.remarks += [f"all CTAs: {outcome.whole}"] * bool(outcome.whole)
            if outcome.together and orders == 1:  # else the processes are for the orders
                line.remarks.append(f"one process: {outcome.together}")
            self._before = work
            self._sites = dict(outcome.sites) or self._sites
            held = self._hold_alone(line, execute, draws.more)
        line.execute_seconds = time.perf_counter() - started
        return outcome if held else None

    def _try_others(self, line: Line, orders: int, execute: Execute, issued: Tried) -> Tried:
        """Adds the orders after that of issue to `line`; the last one tried."""
        first = self.settings.seed + self.settings.skip + 1
        last, name = issued, (line.index, line.name)

        def attempt(order: int) -> Tried:
            return self._attempt(execute, order, Line(*name))[0]

        seeds = range(first, first + orders - 1)
        with closing(tried(seeds, self.settings.jobs, attempt)) as others:
            for last in others:
                line.take(last.line)
                if not line.held:
                    break
                line.orders += 1
                line.drawn += last.ctas - last.followers
                line.drawn_of += last.ctas
        return last

    def _attempt(
        self, execute: Execute, order: int | None, line: Line
    ) -> tuple[Tried, Outcome | None]:
        """Executes and judges one order; fills in `line`."""
        outcome = execute(self.main, order, line)
        if outcome is None:
            return Tried(line, {}), None
        if outcome.executed:
            stored = self._complete(outcome, self.main.reference, self._stored)
            self._stored = stored if order is None else self._stored
        self._judge(line, outcome)
        if line.verdict == "different" and order is not None:
            line.compared += f", completion order {order}"
        ctas = outcome.counters.get("ctas", 0)
        return Tried(line, dict(_of_all(outcome)), ctas, outcome.followers), outcome

    def _hold_alone(self, line: Line, execute: Execute, draws: list[Draw]) -> bool:
        """Whether the results on each of `draws` are those of the input program."""
        counters = line.counters
        for draw in draws:
            outcome = execute(draw, None, line)
            line.counters = counters
            if outcome is None:
                line.compared += f"; inputs with {draw.words}"
                return False
            if outcome.executed:
                self._complete(outcome, draw.reference, self._stored)
            known, why = self._bound(draw)
            bound = known.errors if known else None
            difference = compare.first_difference(draw.reference, outcome.outputs, bound)
            if difference is not None:
                line.verdict = "different"
                line.compared = f"{_rules(outcome.level)}, {why}; inputs with {draw.words}"
                site = outcome.sites.get(difference.output)
                words = str(site(difference.index)) if site else ""
                line.difference = dataclasses.replace(difference, site=words)
                return False
        return True

    def _execute(
        self,
        module: ir.Module,
        programs: Sequence[Program],
        draw: Draw,
        order: int | None,
        line: Line,
        threads: Threads | None = None,
    ) -> Outcome | None:
        spelled = threads.spelled if threads else {}
        return _guard(line, lambda: self._run(module, programs, draw, order, spelled))

    def _run(
        self,
        module: ir.Module,
        programs: Sequence[Program],
        draw: Draw,
        order: int | None,
        spelled: Mapping[str, Spelling],
    ) -> Outcome:
        """Runs the program of `module`, or its kernels one after the other.

        spelled: PTX of thread-level kernels, by name
        """
        assert self.signature is not None
        outputs = self.signature.outputs
        if not programs:
            return in_memory(outputs, lambda specs: run_in_order([], draw.images, specs, NONE))
        program = programs[0]
        views = views_of(program)
        plain = program.level == "tensor" and not views
        constants = constant_arrays(module)
        buffers = [*draw.inputs, *constants] if plain else [*draw.images, *images(constants)]
        given = {name: {"spelled": each} for name, each in spelled.items()}

        partly = program.level == "tile" and program.attribute("tc.args") is not None
        if len(programs) == 1 and not partly and (plain or program.level != "tensor"):
            run, options = _executor(program.level), self._options(order, program.level)
            known = given.get(program.name, {})
            arrays = [as_view(a, views.get(n)) for n, a in enumerate(buffers)]
            if plain:
                unread = self.signature.unread
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
                options = self._options(order, program.level)
                if program.level == "tile" and any(n >= first for n in numbers[len(arrays) :]):
                    options = dataclasses.replace(options, sample=None)
                outcome = execute(module, program.name, arrays, wanted, options, **named)
                if program.level == "tensor":
                    outcome.outputs = images(outcome.outputs)
                return outcome

            return KernelStep(program.title, program.buffers, run, views)

        first = len(buffers) + len(outputs)
        spaces = Workspaces.of(module)
        steps = [step(program) for program in programs]
        return in_memory(outputs, lambda specs: run_in_order(steps, buffers, specs, spaces))

    @property
    def draws(self) -> Draws:
        """All inputs."""
        assert self._draws is not None
        return self._draws

    @property
    def main(self) -> Draw:
        """The inputs that are executed in every order."""
        return self.draws.main

    def _complete(
        self, outcome: Outcome, reference: list[Array], before: tuple[int, dict[int, Array]]
    ) -> tuple[int, dict[int, Array]]:
        """Completes a sample: gives elements that no CTA of it stores the values of the
        reference, unless the same CTAs did in the state before. Returns the number of CTAs, and
        their stores."""
        stored = dict(outcome.stored)
        for number, mask in stored.items():
            known = before[1].get(number) if before[0] == outcome.executed else None
            compared = mask if known is None else mask | known
            got, expected = outcome.outputs[number], reference[number]
            outcome.outputs[number] = np.where(compared.reshape(got.shape), got, expected)
        return outcome.executed, stored

    def _judge(self, line: Line, outcome: Outcome) -> None:
        """Compares the results of one execution; findings were recorded by `_guard`."""
        self._compare(line, outcome)
        if outcome.executed and line.verdict in ("equal", "within bound"):
            how = "" if line.verdict == "equal" else "within bound, "
            line.verdict = "sampled"
            total = outcome.counters.get("ctas", 0)
            line.compared = f"{how}{outcome.executed} of {total} CTAs: {line.compared}"

    def _compare(self, line: Line, outcome: Outcome) -> None:
        got, rules = outcome.outputs, _rules(outcome.level)
        as_before = compare.same_bits(self._previous, got)
        if compare.same_bits(self.main.reference, got):
            line.verdict = "equal"
            line.compared = f"{rules}, bit for bit with the input" + (
                "" if as_before else "; the result before was within bound only"
            )
            return
        bound, why = self._bound(self.main)
        errors = bound.errors if bound else None
        difference = compare.first_difference(self.main.reference, got, errors)
        before = "bit for bit as before the pass" if as_before else "not bit for bit as before"
        if bound is not None:
            error, ratio = compare.largest_ratio(self.main.reference, got, bound.errors)
            line.max_error, line.max_error_over_bound = error, ratio
            if difference is None and (excess := self._excess(line, got, bound)):
                why, difference = excess, compare.first_difference(self.main.reference, got)
        if difference is None:
            line.verdict = "within bound"
            line.compared = (
                f"{rules}, error <= {line.max_error:.3g}, "
                f"{line.max_error_over_bound:.3g} of its bound, "
                f"rms {line.rms_error_over_bound:.3g} of its; {before}"
            )
            return
        line.verdict = "different"
        line.compared = f"{rules}, {why}; {before}"
        line.difference = self._with_site(difference, outcome.sites)

    def _excess(self, line: Line, got: Sequence[Array], bound: Bound) -> str:
        """How far the rms error is beyond its bound, or nothing; fills in the line's ratio."""
        means = compare.mean_squares(self.main.reference, got, bound.squares)
        ratios = [math.sqrt(mean / limit) for mean, limit in zip(means, bound.limits, strict=True)]
        line.rms_error_over_bound = max(ratios, default=0.0)
        if line.rms_error_over_bound <= 1:
            return ""
        return f"rms error {line.rms_error_over_bound:.3g} times its bound"

    def _with_site(
        self, difference: compare.Difference, sites: Mapping[int, Any]
    ) -> compare.Difference:
        """Adds the writer of the element at this level, and its value at the level before."""
        index, output = difference.index, difference.output
        words = [str(sites[output](index))] if output in sites else []
        if output in self._sites:
            value = str(self._previous[output][index])
            words.append(f"before the pass {value}, {self._sites[output](index)}")
        return dataclasses.replace(difference, site="; ".join(words))

    def _bound(self, draw: Draw) -> tuple[Bound | None, str]:
        if draw.bound is not None:
            return draw.bound, "beyond the bound"
        if self.settings.inputs == "integers":
            return None, draw.no_bound or "exact inputs must agree bit for bit"
        return None, draw.no_bound or "no bound is known for a program of this level"

    def _prepare_bound(self, module: ir.Module, programs: Sequence[Program], draw: Draw) -> None:
        """Runs the program on magnitudes and on ones: sums of |a * b|, and numbers of products."""
        foreign = sorted(_op_names(module) - _SUM_OF_PRODUCTS)
        assert self._draws is not None
        if foreign or _has_several_products(programs[0]) or not self._draws.known:
            self._carry_bound(module, programs, draw, foreign)
            return
        sizes = [np.abs(a) for a in draw.inputs]
        magnitudes = self._plain(module, programs, sizes)
        assert self.signature is not None
        numbers_ = [not spec.says_where for spec in self.signature.inputs]
        ones = [np.ones_like(a) if n else a for a, n in zip(draw.inputs, numbers_, strict=True)]
        counts = self._plain(module, programs, ones)
        exponents = [bounds.encoded(a, a.dtype) if n else a for a, n in zip(sizes, numbers_)]
        largest = self._plain(module, programs, exponents)
        factors = [a for a, n in zip(draw.inputs, numbers_, strict=True) if n]
        how, spread = self._sums(module, draw), bounds.spread_of(factors)
        numbers = list(zip(magnitudes, largest, counts, draw.reference, strict=True))
        draw.bound = Bound.of(
            [
                bounds.fused_sum_bound(bounds.upper(s), bounds.upper(e), bounds.upper(k), r, how)
                for s, e, k, r in numbers
            ],
            [bounds.expected_squares(s, e, k, r, how, spread) for s, e, k, r in numbers],
            draw.reference,
        )
        if draw.bound is None:
            draw.no_bound = "the sums of magnitudes overflow the output type: no bound"

    def _carry_bound(
        self, module: ir.Module, programs: Sequence[Program], draw: Draw, foreign: Sequence[str]
    ) -> None:
        """Sets the bound of a program that continues after its sums, element by element."""
        raised = with_quantisation_raised(module)
        known = self._carried(find_program(raised, programs[0].name), module, draw)
        if known is None:
            what = ", ".join(foreign) or "several products"
            draw.no_bound = f"no bound is known for programs with {what}"
            return
        errors, squares = [each.error for each in known], [each.square for each in known]
        share = 1.0 if draw.partly else OPEN if self.settings.inputs == "integers" else 0.0
        draw.bound = Bound.of(errors, squares, draw.reference, open_share=share)
        if draw.bound is None:
            draw.no_bound = "too many elements may be off by any amount: no bound"

    def _carried(self, program: Program, module: ir.Module, draw: Draw) -> list[Known] | None:
        """The results of `program`, which computes what `module` does; None without a bound."""
        function, sums = program.op.operation, propagation.EXACT
        if self.settings.inputs == "random":
            sums = propagation.ROUNDED
        elif draw.partly or self._draws is None or not self._draws.known:
            sums = propagation.UNKNOWN
        try:
            inputs = [*draw.inputs, *constant_arrays(module)]
            how = self._sums(module, draw)
            tf32 = bounds.sums_of("float32", _target(module))
            return propagation.carried(function, inputs, how, sums, tf32)
        except (propagation.NoBoundError, IncompleteError):
            return None

    def _sums(self, module: ir.Module, draw: Draw) -> bounds.Sums:
        """How the factors are summed; those of two types are multiplied as f32, but for fp8."""
        contraction = self._draws.contraction if self._draws else None
        factors = contraction.factors if contraction else ()
        types = {factor.dtype for factor in factors if not factor.scale}
        mixed = len(types) > 1 and any(each.itemsize > 1 for each in types)
        first = draw.inputs[0].dtype.name if draw.inputs else "float32"
        return bounds.sums_of("float32" if mixed else first, _target(module))

    def _plain(
        self, module: ir.Module, programs: Sequence[Program], inputs: list[Array]
    ) -> list[Array]:
        line = Line(0, "(bound)")
        outcome = self._execute(module, programs, Draw(inputs), None, line)
        if outcome is None:
            raise IncompleteError(f"cannot compute the bound: {line}")
        return outcome.outputs


def _target(module: ir.Module) -> str:
    """What a module is compiled for."""
    attributes = module.operation.attributes
    return str(attributes["tc.target"].value if "tc.target" in attributes else DEFAULT_TARGET.name)


def _guard(line: Line, run: Callable[[], Outcome]) -> Outcome | None:
    """Runs an execution; an illegal or unsupported operation becomes the line's verdict.

    None unless there are results to compare.
    """
    try:
        outcome = run()
    except Exception as error:
        _note(line, getattr(error, "findings", []))  # what was found before it ended
        site = getattr(error, "site", None)
        where = "" if site is None or str(site) in str(error) else f" at {site}"
        if _is_not_modelled(error):
            line.verdict, line.incomplete = "incomplete", [f"{error}{where}"]
            return None
        if not _is_program_error(error):
            raise
        line.verdict = "different"
        line.compared = f"illegal use of the machine: {error}{where}"
        return None
    line.level = outcome.level
    line.counters = dict(outcome.counters)
    _note(line, outcome.findings)
    if outcome.incomplete:
        line.verdict, line.incomplete = "incomplete", list(outcome.incomplete)
        return None
    if outcome.errors:
        line.verdict = "different"
        line.compared = f"{_rules(outcome.level)}, {len(outcome.errors)} error(s) of the program"
        return None
    return outcome


@contextmanager
def _laid_to_the_pass(line: Line) -> Iterator[None]:
    """Makes every exception of an execution after a pass that pass's verdict.

    The program before the pass was executed, so the pass's result is at fault. An exception that is
    none of ours may be a bug in the interpreter: it is reported as such.
    """
    try:
        yield
    except IncompleteError as error:
        line.verdict, line.incomplete = "incomplete", [str(error)]
    except MemoryError as error:
        line.verdict, line.incomplete = "incomplete", [f"out of memory: {error}"]
    except Error as error:
        line.verdict = "different"
        line.compared = f"the pass left a program that has no meaning: {error}"
    except Exception as error:
        if os.environ.get("TCIR_TRACEBACK"):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        line.verdict = "different"
        line.compared = (
            "the interpreter failed on what the pass left (TCIR_TRACEBACK=1 shows where)"
        )
        what = f"{type(error).__name__}: {error}, at {frame.filename}:{frame.lineno}"
        line.findings.append({"severity": "error", "code": "interpreter-failed", "text": what})


def _note(line: Line, findings: Iterable[Any]) -> None:
    """Adds hazards to a line, keeping those of other completion orders."""
    for f in findings:
        finding = {"severity": f.severity, "code": f.code, "text": _words(f)}
        if finding not in line.findings:
            line.findings.append(finding)


def _is_not_modelled(error: Exception) -> bool:
    """Whether `error` means a missing rule: the program may be legal."""
    from tcir.machine.errors import NotModelled

    return isinstance(error, NotModelled | IncompleteError)


def _is_program_error(error: Exception) -> bool:
    """Whether the machine raised `error` because the program is wrong."""
    from tcir.machine import MachineError
    from tcir.machine.refusal import Refusal
    from tcir.run import LaunchError, PtxSyntaxError

    return isinstance(error, MachineError | Refusal | LaunchError | PtxSyntaxError)


def _words(finding: Any) -> str:
    """Both operations of a finding or its undefined read, the missing edge, and the CTA."""
    place = "" if finding.kind else finding.place
    parts = [str(p) for p in (finding.first, finding.second, place, finding.missing) if p]
    cta = "" if finding.cta is None else f" (CTA {finding.cta})"
    return "; ".join(parts) + cta


def _of_all(outcome: Outcome) -> Mapping[str, int]:
    """The counters; of a sample, about those of all CTAs."""
    if not outcome.executed:
        return outcome.counters
    total = outcome.counters.get("ctas", outcome.executed)
    scaled = {n: count * total // outcome.executed for n, count in outcome.counters.items()}
    return scaled | {"ctas": total}


def _rules(level: str) -> str:
    return {"none": "no launch", "tensor": "tensor rules"}.get(level, f"machine, {level} level")


def _executor(level: str) -> Any:
    try:
        return executor_for(level)
    except (KeyError, AttributeError) as error:
        raise IncompleteError(f"no executor for the level '{level}'") from error


def _levels(programs: Sequence[Program]) -> tuple[str, ...]:
    return tuple(program.level for program in programs)


def _has_several_products(program: Program) -> bool:
    if program.level != "tensor":
        return False
    block = program.op.operation.regions[0].blocks[0]
    return sum(product_of(each.operation) is not None for each in block) > 1


def _asynchronous(program: Program) -> bool:
    """Whether completion orders matter."""
    sequential = program.level == "tile" and "tc.async" not in program.op.operation.attributes
    return program.level != "tensor" and not sequential


def _op_names(module: Any) -> set[str]:
    from tcir._mlir import ir

    names: set[str] = set()

    def visit(operation: Any) -> Any:
        names.add(operation.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return names

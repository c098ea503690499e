"""Stops of a run: at a line, at the first hazard, or at a write to watched bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from tcir.debug.places import check_numbers
from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.launch import LaunchState
from tcir.interp.ptx.op import Blocking, Op
from tcir.interp.ptx.program import DecodedEntry
from tcir.machine import Machine
from tcir.machine.findings import Finding, Findings
from tcir.machine.memory.protocols import CtaProtocol
from tcir.machine.order.clocks import Access
from tcir.run import RunReport


class Stopped(Exception):
    """Raised to end a run at a breakpoint; not an error of the program."""


@dataclass(frozen=True)
class LaneGroup:
    """Lanes of a warp that are at the same instruction, `next`; it is None once the code has
    ended.
    """

    lanes: int
    next: Op | None


@dataclass(frozen=True)
class Breakpoint:
    """A breakpoint at a line of the text (from 1), at "FILE:LINE" of its source, or at a label.

    line:      a line without an instruction stands for the next line that has one
    hit:       stop when a lane arrives at the line for the `hit`-th time
    warp, cta: stop only in this warp or CTA; None: in any warp or CTA
    """

    line: int | str
    hit: int = 1
    warp: int | None = None
    cta: tuple[int, int, int] | None = None


class _Trap(Findings):
    """Findings that stop the run at the first error, or at an mma whose operands race: that race
    is reported only where the result is used, possibly at the end of the launch."""

    def append(self, finding: Finding) -> None:
        super().append(finding)
        if finding.severity == "error" or finding.code == "operand-race":
            raise Stopped(f"first hazard: {finding}")


class Follower:
    """Base class of observers that follow the warps of a launch, for `run_ptx`; subclasses decide
    when to stop.

    warps: warps of each running CTA
    at:    the warp at which the run stopped
    """

    machine: Machine
    launch: LaunchState
    passive = False
    """Whether it inspects the machine only after the run, and follows no warp."""

    def __init__(self) -> None:
        self.report = RunReport()
        self.warps: dict[CtaProtocol, list[WarpInterpreter]] = {}
        self.at: WarpInterpreter | None = None

    def attach(self, machine: Machine, launch: LaunchState, report: RunReport) -> None:
        """Called before the first CTA starts."""
        self.machine, self.launch, self.report = machine, launch, report

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        """Called for each warp; returns the generator that runs it."""
        ended = [c for c, ws in self.warps.items() if all(i.warp.agent.ended for i in ws)]
        for cta in ended:  # memory goes with the CTAs in flight, not with the grid
            del self.warps[cta]
        self.warps.setdefault(interpreter.warp.agent.cta, []).append(interpreter)
        return self._follow(interpreter)

    def _follow(self, interpreter: WarpInterpreter) -> Blocking:
        try:
            yield from interpreter.run()
        except Exception:
            self.at = interpreter
            raise


def groups(interpreter: WarpInterpreter) -> list[LaneGroup]:
    """Groups of lanes by their position in the program, the running group first; empty if the warp
    has ended.
    """
    code = interpreter.program.code
    return [
        LaneGroup(g.mask, code[g.pc] if g.pc < len(code) else None)
        for g in interpreter.divergence.groups()
    ]


class AtLine(Follower):
    """Stops before the instructions of a breakpoint. lines: lines of these instructions in the text
    (`tcir.debug.places`).
    """

    def __init__(self, breakpoint: Breakpoint, lines: Collection[int]) -> None:
        super().__init__()
        self.breakpoint, self.lines = breakpoint, lines
        self.hits = 0

    def attach(self, machine: Machine, launch: LaunchState, report: RunReport) -> None:
        super().attach(machine, launch, report)
        want = self.breakpoint
        check_numbers(want.hit, want.warp, want.cta, machine.grid, launch.sizes.warps)

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        want, warp = self.breakpoint, interpreter.warp
        here = want.warp in (None, warp.index) and want.cta in (None, warp.agent.cta.index)
        first = starts(interpreter.program, self.lines)

        def fetched() -> None:
            if interpreter.divergence.pc in first and interpreter.active(interpreter.next_op()):
                self.hits += 1
                if self.hits == want.hit:
                    times = f", hit {want.hit}" if want.hit > 1 else ""
                    raise Stopped(f"breakpoint at {place_words(want.line, self.lines)}{times}")

        if here and first:
            interpreter.trace(fetched)
        return super().follow(interpreter)


def starts(program: DecodedEntry, lines: Collection[int]) -> set[int]:
    """First instruction of each contiguous range of these lines."""
    code = program.code
    return {
        n
        for n, op in enumerate(code[:-1])
        if op.site.line in lines and (n == 0 or code[n - 1].site.line not in lines)
    }


def place_words(place: int | str, lines: Collection[int]) -> str:
    """Describes the place of a breakpoint, and the line of the text for which it stands."""
    line = f"line {min(lines)}"
    return line if place == min(lines) else f"{place}, {line}"


class AtHazard(Follower):
    """Stops at the first finding of severity "error"."""

    def attach(self, machine: Machine, launch: LaunchState, report: RunReport) -> None:
        super().attach(machine, launch, report)
        machine.findings = _Trap()


class AtWrite(Follower):
    """Counts the writes to an element of a global buffer; stops right after write number `last`.

    find: returns the shadow memory's last write to the element, given the machine.
    """

    def __init__(
        self, find: Callable[[Machine], Access | None], last: int = 0, why: str = ""
    ) -> None:
        super().__init__()
        self.find, self.last, self.why = find, last, why
        self.count = 0
        self._known: Access | None = None

    def reason(self) -> str:
        """Reason of the stop."""
        return self.why

    def poll(self) -> None:
        """Counts a write if one has happened since the last call."""
        access = self.find(self.machine)
        if access is not None and access is not self._known:  # None: its CTA is not there
            self._known = access
            self.count += 1

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        def fetched() -> None:
            self.poll()
            if self.last and self.count == self.last:
                raise Stopped(self.reason())

        interpreter.trace(fetched)
        return super().follow(interpreter)

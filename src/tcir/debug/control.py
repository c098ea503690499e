"""Where a run is stopped: at a line, at the first hazard, at a write to watched bytes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tcir.interp.ptx.decode import FULL, Op
from tcir.interp.ptx.warp import Warp
from tcir.machine.order.hazards import Access, Finding, Findings
from tcir.run import RunReport

Fetch = Callable[[Warp, int, FrameType], None]


class Stopped(Exception):
    """Ends a run at a breakpoint; not an error of the program."""


@dataclass(frozen=True)
class Group:
    """Lanes of a warp that stand at one instruction; `next` is None once the code has ended."""

    lanes: int
    next: Op | None


@dataclass(frozen=True)
class Breakpoint:
    """A line of the text; counted from 1, the `hit`-th time that a lane gets there.

    warp, cta: only there; None is everywhere.
    """

    line: int
    hit: int = 1
    warp: int | None = None
    cta: tuple[int, int, int] | None = None


class _Fetched(list[Op]):
    """The code of one warp, which tells of every instruction fetched."""

    def __init__(self, code: list[Op], warp: Warp, fetch: Fetch) -> None:
        super().__init__(code)
        self.warp, self.fetch = warp, fetch

    def __getitem__(self, pc: Any) -> Any:
        frame = sys._getframe(1)
        if frame.f_code is Warp.main.__code__ and frame.f_locals.get("pc") == pc:
            self.fetch(self.warp, pc, frame)
        return super().__getitem__(pc)


class _Trap(Findings):
    """Findings that stop the run at the first error."""

    def append(self, finding: Finding) -> None:
        super().append(finding)
        if finding.severity == "error":
            raise Stopped(f"first hazard: {finding}")


class Follower:
    """Follows the warps of a launch, for `run_ptx`; subclasses say when to stop.

    warps: of each CTA under way, with the generators that run them.
    """

    def __init__(self) -> None:
        self.machine: Any = None
        self.run: Any = None
        self.report = RunReport()
        self.warps: dict[Any, list[tuple[Warp, Any]]] = {}
        self.at: tuple[Warp | None, list[Group]] = (None, [])
        """The warp at which the run stopped, and where it stood."""

    def attach(self, machine: Any, run: Any, report: RunReport) -> None:
        """Called before the first CTA starts."""
        self.machine, self.run, self.report = machine, run, report

    def follow(self, warp: Warp) -> Generator[Any, Any, None]:
        """Called for each warp: the generator that runs it."""
        return self._follow(warp, self._remember(warp))

    def _remember(self, warp: Warp) -> Any:
        ended = [c for c, warps in self.warps.items() if all(w.agent.ended for w, _ in warps)]
        for cta in ended:  # memory goes with the CTAs in flight, not with the grid
            del self.warps[cta]
        generator = warp.main()
        self.warps.setdefault(warp.agent.cta, []).append((warp, generator))
        return generator

    def _follow(self, warp: Warp, generator: Any) -> Generator[Any, Any, None]:
        try:
            yield from generator
        except Exception as error:
            trace = error.__traceback__
            while trace is not None:
                if trace.tb_frame.f_code is Warp.main.__code__:
                    self.at = (warp, groups(warp, trace.tb_frame.f_locals))
                trace = trace.tb_next
            raise

    def where(self, warp: Warp, generator: Any) -> list[Group]:
        """Where a warp stands; empty when it has ended."""
        if warp is self.at[0]:
            return self.at[1]
        if inspect.getgeneratorstate(generator) == inspect.GEN_CREATED:
            return [Group(warp.live, warp.program.code[0])]
        return groups(warp, inspect.getgeneratorlocals(generator))


def groups(warp: Warp, found: dict[str, Any]) -> list[Group]:
    """Program counters of a warp from the variables of its loop, the running group first."""
    if "pc" not in found:
        return []
    code = warp.program.code

    def at(pc: int) -> Op | None:
        return list.__getitem__(code, pc) if pc < len(code) else None

    # A group that has stepped aside is among the others before the loop chooses the next one.
    running = found["mask"]
    for group in found["others"]:
        running &= ~group.mask
    out = [Group(running, at(found["pc"]))] if running else []
    return out + [Group(g.mask, at(g.pc)) for g in found["others"]]


class AtLine(Follower):
    """Stops before an instruction of a line."""

    def __init__(self, breakpoint: Breakpoint) -> None:
        super().__init__()
        self.breakpoint = breakpoint
        self.hits = 0

    def follow(self, warp: Warp) -> Generator[Any, Any, None]:
        want = self.breakpoint
        here = want.warp in (None, warp.index) and want.cta in (None, warp.agent.cta.index)
        first = [
            n for n, op in enumerate(warp.program.code[:-1])
            if op.site.line == want.line
            and (n == 0 or warp.program.code[n - 1].site.line != want.line)
        ]  # fmt: skip
        if here and first:
            pcs = frozenset(first)

            def fetch(warp: Warp, pc: int, frame: FrameType) -> None:
                if pc in pcs and active(warp, frame):
                    self.hits += 1
                    if self.hits == want.hit:
                        times = f", hit {want.hit}" if want.hit > 1 else ""
                        raise Stopped(f"breakpoint at line {want.line}{times}")

            warp.code = _Fetched(warp.program.code, warp, fetch)
        return super().follow(warp)


def active(warp: Warp, frame: FrameType) -> int:
    """Lanes that will execute the instruction that a warp is fetching."""
    op: Op = list.__getitem__(warp.code, frame.f_locals["pc"])
    mask: int = frame.f_locals["mask"]
    if op.guard < 0:
        return mask
    guard = warp.p[op.guard]
    return mask & (~guard & FULL if op.negate else guard)


class AtHazard(Follower):
    """Stops at the first finding of severity "error"."""

    def attach(self, machine: Any, run: Any, report: RunReport) -> None:
        super().attach(machine, run, report)
        machine.findings = _Trap()


class AtWrite(Follower):
    """Counts the writes to an element of a global buffer; stops right after the `last`-th.

    find: the shadow's record of who wrote the element last, given the machine.
    """

    def __init__(self, find: Callable[[Any], Access | None], last: int = 0, why: str = "") -> None:
        super().__init__()
        self.find, self.last, self.why = find, last, why
        self.count = 0
        self._known: Access | None = None

    def poll(self) -> None:
        """Notes a write that was not there before."""
        access = self.find(self.machine)
        if access is not self._known:
            self._known = access
            self.count += 1

    def follow(self, warp: Warp) -> Generator[Any, Any, None]:
        def fetch(warp: Warp, pc: int, frame: FrameType) -> None:
            self.poll()
            if self.last and self.count == self.last:
                raise Stopped(self.why)

        warp.code = _Fetched(warp.program.code, warp, fetch)
        return super().follow(warp)

"""`run`: a launch that stops at a breakpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tcir.debug.control import (
    AtHazard,
    AtLine,
    AtWrite,
    Breakpoint,
    Follower,
    Stopped,
    place_words,
)
from tcir.debug.difference import FirstDifference, array_of
from tcir.debug.places import lines_at
from tcir.debug.stop import Stop
from tcir.debug.watching import AtWatch, Watched
from tcir.debug.writers import LastWriters, last_writer, locate, words
from tcir.interp.ptx.registers import S64
from tcir.interp.ptx.syntax import Address, Reg
from tcir.machine.order.clocks import Access
from tcir.run import LaunchError, Uninitialized, parsed, run_ptx


def run(
    ptx: str | Path,
    *,
    break_at: int | str | Breakpoint | FirstDifference | Watched,
    args: Any = (),
    **launch: Any,
) -> Stop:
    """Runs a kernel as `tcir.run_ptx` does, up to a breakpoint; the kernel writes into `args`.

    break_at: a line of the text, "FILE:LINE" of its source or a label (or a `Breakpoint`);
        "first-hazard"; a `Watch`; or a `FirstDifference`, for which the kernel runs up to three
        times from the same arguments
    args, launch: as in `tcir.run_ptx`

    An illegal operation or a deadlock always stops the run. If the run reaches its end, the
    returned `Stop` states this as its reason.
    """
    if isinstance(break_at, FirstDifference):
        return _first_difference(ptx, break_at, list(args), launch)
    records = launch.get("hazards", "report") != "off"
    if break_at == "first-hazard":
        if not records:
            raise LaunchError("break_at: first-hazard needs hazards='report'")
        return _stop(ptx, AtHazard(), args, launch, "the end; no hazard")
    if isinstance(break_at, Watched):
        if not records:
            raise LaunchError("watch: needs hazards='report', which records the writers")
        break_at.check(args)
        watching = AtWatch(break_at, args)
        missed = f"the end; fewer than {break_at.hit} write(s) to {break_at}"
        return _stop(ptx, watching, args, launch, missed)
    if isinstance(break_at, int | str):
        break_at = Breakpoint(break_at)
    if not isinstance(break_at, Breakpoint):
        raise LaunchError(
            "break_at: expected a line, FILE:LINE, a label, 'first-hazard', a Watch or a "
            f"FirstDifference, got {break_at!r}"
        )
    lines = lines_at(break_at.line, parsed(ptx))
    where = place_words(break_at.line, lines)
    missed = f"the end; no lane reached {where} {break_at.hit} time(s)"
    return _stop(ptx, AtLine(break_at, lines), args, launch, missed)


def _stop(
    ptx: str | Path,
    follower: Follower,
    args: Any,
    launch: dict[str, Any],
    missed: str,
    site: Any = None,
) -> Stop:
    reason = missed
    try:
        report = run_ptx(ptx, args=args, observer=follower, **launch)
    except Stopped as stopped:
        reason, report = str(stopped), follower.report
        report.stopped = reason
        report.findings = follower.machine.findings.counted()
        report.counters = follower.machine.counters.as_dict()
        report.instructions = follower.launch.instructions
    else:
        if report.errors:
            reason = f"illegal: {report.errors[0]}"
        elif report.incomplete:
            reason = f"incomplete: {report.incomplete[0]}"
    return Stop(reason, report, follower, site)


def _first_difference(
    ptx: str | Path, wanted: FirstDifference, args: list[Any], launch: dict[str, Any]
) -> Stop:
    if launch.get("hazards", "report") == "off":
        raise LaunchError("first-difference: needs hazards='report', which records the writers")
    number, output = wanted.output(args)
    buffers = [(a, a.copy()) for a in (array_of(arg) for arg in args) if a is not None]

    def again() -> None:
        for array, before in buffers:
            array[...] = before

    ended = LastWriters()
    stop = _stop(ptx, ended, args, launch, "the end; every element is as expected")
    if stop.report.errors or stop.report.incomplete:
        return stop
    index = wanted.find(output)
    if index is None:
        return stop
    place = f"argument {number} at [{', '.join(map(str, index))}]"

    def find(machine: Any) -> Access | None:
        return last_writer(machine, output, index)

    access = find(ended.machine)
    poison = access is None and isinstance(args[number], Uninitialized)
    got = "poison" if poison else str(output[index])
    why = f"first difference: {place}: expected {wanted.expected[index]}, got {got}"
    if access is None:
        stop.report.different = True
        return Stop(f"{why}; nothing wrote it", stop.report, ended)
    why += f"; written at {words(access)}"
    counting = AtWrite(find)
    again()
    _stop(ptx, counting, args, launch, "")
    counting.poll()
    watching = AtWrite(find, counting.count, why)
    again()
    stop = _stop(ptx, watching, args, launch, why, access.site)
    stop.report.different = True
    lane = _lane(stop, output, index, access)
    if lane is not None:
        stop.reason += f", lane {lane}"
    return stop


def _lane(stop: Stop, output: np.ndarray, index: tuple[int, ...], access: Access) -> int | None:
    """Lane of a store whose address is nearest to, and not above, the element's last byte."""
    warp = stop.warp
    if warp is None or access.cta is None or warp.agent.me != access.component:
        return None
    found = stop.instruction()
    if found is None or not found.mnemonic.startswith(("st.", "red.", "atom.")):
        return None
    target = next((o for o in found.operands if isinstance(o, Address)), None)
    if target is None or not isinstance(target.base, Reg) or target.base.type.size != 8:
        return None
    buffer, place = locate(warp.agent.machine, output, index)
    address = buffer.base + place + output.itemsize - 1
    at = warp.v[S64][target.base.index].astype(np.int64) + target.offset
    gaps = np.where(at <= address, address - at, 1 << 62)
    lane = int(np.argmin(gaps))
    return lane if gaps[lane] < 64 else None

"""Recursive calls: what an activation holds is saved, and restored when it returns.

Not instructions of PTX: `calls.inline_calls` puts them where a function calls itself, directly or
through others, and behind the body of such a function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir.interp.ptx.decode import INDEXED, VIEWS, Decode, Op, rule
from tcir.interp.ptx.syntax import TYPES, Because, Frame, Resume, Variable
from tcir.interp.ptx.warp import LANES, Warp

#: Calls inside each other of one thread: far above what its stack holds on a GPU.
MAX_CALLS = 1000
_VIEW = {n: VIEWS[f"u{8 * n}"] for n in (1, 2, 4, 8)} | {16: VIEWS["b128"]}


def _places(d: Decode, variables: list[Variable]) -> Any:
    """Bytes of local memory that the variables occupy."""
    ranges = [np.arange(d.slots.local[v.key], d.slots.local[v.key] + v.size) for v in variables]
    return np.concatenate([np.empty(0, np.int64), *ranges])


class _Saver:
    """Takes what one lane's activation holds, and puts it back."""

    def __init__(self, d: Decode, frame: Frame) -> None:
        self.bytes = _places(d, frame.variables)
        sizes = d.slots.sizes
        self.predicates = [slot for slot in frame.registers if not sizes[slot]]
        self.registers = [(slot, _VIEW[sizes[slot]]) for slot in frame.registers if sizes[slot]]

    def save(self, w: Warp, lane: int) -> tuple[Any, ...]:
        bit = 1 << lane
        return (
            w.local[lane, self.bytes],
            w.local_defined[lane, self.bytes],
            [w.p[slot] & bit for slot in self.predicates],
            [w.undef[slot] & bit for slot in self.predicates],
            [w.v[n][slot][lane] for slot, n in self.registers],
            [w.undef[slot] & bit for slot, _ in self.registers],
        )

    def restore(self, w: Warp, lane: int, saved: tuple[Any, ...]) -> None:
        keep = ~(1 << lane)
        data, defined, predicates, unknown, values, undefined = saved
        w.local[lane, self.bytes], w.local_defined[lane, self.bytes] = data, defined
        for slot, value, lost in zip(self.predicates, predicates, unknown, strict=True):
            w.p[slot] = w.p[slot] & keep | value
            w.undef[slot] = w.undef[slot] & keep | lost
        for (slot, n), value, lost in zip(self.registers, values, undefined, strict=True):
            w.v[n][slot][lane] = value
            w.undef[slot] = w.undef[slot] & keep | lost


def _copy(w: Warp, lane: int, target: Any, source: Any) -> None:
    w.local[lane, target] = w.local[lane, source]
    w.local_defined[lane, target] = w.local_defined[lane, source]


@rule("call-again")
def again(d: Decode) -> Op:
    """Saves the activation, hands over the arguments and goes to the start of the function."""
    (resume,) = d.operands
    assert isinstance(resume, Resume)
    saver, start, site = _Saver(d, resume.frame), resume.frame.start, d.site
    formals = _places(d, [formal for formal, _ in resume.arguments])
    actuals = _places(d, [actual for _, actual in resume.arguments])

    def run(w: Warp, m: int) -> list[tuple[int, int]]:
        stacks = w.frames.setdefault(resume.frame, [[] for _ in range(32)])
        for lane in LANES[m]:
            if len(stacks[lane]) >= MAX_CALLS:
                raise w.error(
                    "call-depth",
                    f"expected at most {MAX_CALLS} calls of {resume.frame.name} inside each other, "
                    "got more",
                    site,
                )
            stacks[lane].append((resume, saver.save(w, lane)))
            _copy(w, lane, formals, actuals)
        return [(start, m)]

    return d.op(INDEXED, run, targets=(start,))


@rule("call-return")
def leave(d: Decode) -> Op:
    """Ends the activation of each lane: on behind its call, or behind the first one of all."""
    (frame,) = d.operands
    assert isinstance(frame, Frame)
    saver, behind = _Saver(d, frame), frame.end + 1
    results = {
        resume: (
            _places(d, [formal for formal, _ in resume.results]),
            _places(d, [actual for _, actual in resume.results]),
        )
        for resume in frame.resumes
    }

    def run(w: Warp, m: int) -> list[tuple[int, int]]:
        groups: dict[int, int] = {}
        stacks = w.frames.get(frame)
        for lane in LANES[m]:
            at = behind
            if stacks and stacks[lane]:
                resume, saved = stacks[lane].pop()
                formals, actuals = results[resume]
                data, defined = w.local[lane, formals], w.local_defined[lane, formals]
                saver.restore(w, lane, saved)
                w.local[lane, actuals], w.local_defined[lane, actuals] = data, defined
                at = resume.at
            groups[at] = groups.get(at, 0) | 1 << int(lane)
        return sorted(groups.items())

    return d.op(INDEXED, run, targets=(behind, *(resume.at for resume in frame.resumes)))


@rule("call-nowhere")
def nowhere(d: Decode) -> Op:
    """An address that is of none of the functions that an indirect call may reach."""
    register, names = d.operands
    assert isinstance(names, Because)
    slot, site = d.src(register, TYPES["u64"]), d.site

    def run(w: Warp, m: int) -> None:
        if w.undef[slot] & m:
            w.read_undefined(site, (slot,), m)
        got = int(w.v[VIEWS["u64"]][slot][LANES[m][0]])
        raise w.error("call-target", f"expected the address of {names.text}, got {got:#x}", site)

    return d.plain(run)

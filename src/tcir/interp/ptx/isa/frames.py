"""Recursive calls: the state of an activation is saved at the call, and restored when the call
returns.

The instructions of this file are not PTX: `calls.inline_calls` inserts them where a function calls
itself, directly or indirectly, and after the body of such a function.
"""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import INDEXED, Op
from tcir.interp.ptx.registers import U64, unsigned_view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Activation, Because, Resume, Variable
from tcir.interp.ptx.warp import Warp

#: Calls inside each other of one thread: far above what its stack holds on a GPU.
MAX_CALLS = 1000


def _places(d: Decode, variables: list[Variable]) -> np.ndarray:
    """Bytes of local memory that the variables occupy."""
    ranges = [np.arange(d.slots.local[v.key], d.slots.local[v.key] + v.size) for v in variables]
    return np.concatenate([np.empty(0, np.int64), *ranges])


_Saved = tuple[np.ndarray, np.ndarray, list[int], list[int], list[np.generic], list[int]]
"""Local memory and which bytes are defined, predicates, registers, and what they lack."""


class _Saver:
    """Saves one lane's activation, and restores it."""

    def __init__(self, d: Decode, frame: Activation) -> None:
        self.bytes = _places(d, frame.variables)
        sizes = d.slots.sizes
        self.predicates = [slot for slot in frame.registers if not sizes[slot]]
        self.registers = [
            (slot, unsigned_view(sizes[slot])) for slot in frame.registers if sizes[slot]
        ]

    def save(self, w: Warp, lane: int) -> _Saved:
        bit = 1 << lane
        return (
            w.local.data[lane, self.bytes],
            w.local.defined[lane, self.bytes],
            [w.p[slot] & bit for slot in self.predicates],
            [w.undef[slot] & bit for slot in self.predicates],
            [w.v[n][slot][lane] for slot, n in self.registers],
            [w.undef[slot] & bit for slot, _ in self.registers],
        )

    def restore(self, w: Warp, lane: int, saved: _Saved) -> None:
        keep = ~(1 << lane)
        data, defined, predicates, unknown, values, undefined = saved
        w.local.data[lane, self.bytes], w.local.defined[lane, self.bytes] = data, defined
        for slot, bit, lost in zip(self.predicates, predicates, unknown, strict=True):
            w.p[slot] = w.p[slot] & keep | bit
            w.undef[slot] = w.undef[slot] & keep | lost
        for (slot, n), value, lost in zip(self.registers, values, undefined, strict=True):
            w.v[n][slot][lane] = value
            w.undef[slot] = w.undef[slot] & keep | lost
            if lost and slot in w.unknown:
                w.unknown[slot].bits[lane] = 0xFF  # which bits they were is not saved


def _copy(w: Warp, lane: int, target: np.ndarray, source: np.ndarray) -> None:
    w.local.data[lane, target] = w.local.data[lane, source]
    w.local.moved((lane, target), (lane, source))


@instruction("call-again")
def again(d: Decode) -> Op:
    """Saves the current activation, passes the arguments, and branches to the start of the
    function.
    """
    (resume,) = d.operands
    assert isinstance(resume, Resume)
    saver, start, site = _Saver(d, resume.frame), resume.frame.start, d.site
    formals = _places(d, [formal for formal, _ in resume.arguments])
    actuals = _places(d, [actual for _, actual in resume.arguments])

    def run(w: Warp, m: int) -> list[tuple[int, int]]:
        stacks = w.frames.setdefault(resume.frame, [[] for _ in range(32)])
        for lane in LANE_INDICES[m]:
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

    return d.jump(INDEXED, (start,), run)


@instruction("call-return")
def leave(d: Decode) -> Op:
    """Ends the innermost activation of each lane. The lane continues after the recursive call of
    that activation, or after the outermost call.
    """
    (frame,) = d.operands
    assert isinstance(frame, Activation)
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
        for lane in LANE_INDICES[m]:
            at = behind
            if stacks and stacks[lane]:
                resume, saved = stacks[lane].pop()
                formals, actuals = results[resume]
                data, defined = w.local.data[lane, formals], w.local.defined[lane, formals]
                saver.restore(w, lane, saved)
                w.local.data[lane, actuals], w.local.defined[lane, actuals] = data, defined
                at = resume.at
            groups[at] = groups.get(at, 0) | 1 << int(lane)
        return sorted(groups.items())

    return d.jump(INDEXED, (behind, *(resume.at for resume in frame.resumes)), run)


@instruction("call-nowhere")
def nowhere(d: Decode) -> Op:
    """Reports that the called address belongs to no function that the indirect call may reach."""
    register, names = d.operands
    assert isinstance(names, Because)
    slot, site = d.src(register, TYPES["u64"]), d.site

    def run(w: Warp, m: int) -> None:
        if w.undef[slot] & m:
            w.read_undefined(site, (slot,), m)
        got = int(w.v[U64][slot][LANE_INDICES[m][0]])
        raise w.error("call-target", f"expected the address of {names.text}, got {got:#x}", site)

    return d.plain(run)

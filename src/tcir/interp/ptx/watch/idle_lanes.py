"""Finds loads whose value only a guarded store uses: lanes in which the guard is false do not need
the value.

Triton lets all threads load a tensor with fewer elements than threads, and only some of the threads
store. If the operation is in place, an idle thread reads an element that another thread overwrites.
That is a race, but no result depends on it, so the machine receives the lanes whose loaded value is
unused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, starmap

from tcir.interp.ptx.op import BRANCH, EXIT, INDEXED, PLAIN, Op, Run
from tcir.interp.ptx.warp import Warp

_LOAD, _STORE = "ld.global", "st.global"


def watch_idle_lanes(code: list[Op]) -> None:
    """Wraps loads whose value only a guarded store uses, so that the machine receives the lanes in
    which the guard is false. The instructions that compute the guard are moved before the load.
    """
    if not any(_weak(op, _STORE) for op in code):
        return
    writers: dict[int, list[int]] = {}
    readers: dict[int, list[int]] = {}
    for at, op in enumerate(code):
        for slot in op.writes:
            writers.setdefault(slot, []).append(at)
        for slot in (*op.reads, op.guard):
            readers.setdefault(slot, []).append(at)
    for block in _blocks(code):
        moved: dict[int, list[int]] = {}
        for at in block:
            if not _weak(code[at], _LOAD):
                continue
            guard = _only_guard(code, at, block, readers)
            before = None if guard is None else _to_move(code, at, guard[0], block, writers)
            if guard is not None and before is not None:
                moved[at] = before
                code[at].run = partial(_load, code[at].run, *guard)
        _move(code, block, moved)


def _weak(op: Op, spelling: str) -> bool:
    """Whether it is a load or store of global memory that no other thread's timing decides."""
    plain = op.kind == PLAIN and not op.idle and op.update is None
    return plain and op.spelling.startswith(spelling)


def _blocks(code: Sequence[Op]) -> Iterator[range]:
    """Runs of instructions that are executed one after another."""
    starts = {0} | {t for op in code for t in (op.target, *op.targets) if t >= 0}
    starts |= {at + 1 for at, op in enumerate(code) if op.kind in (BRANCH, EXIT, INDEXED)}
    edges = sorted({*(at for at in starts if at < len(code)), len(code)})
    return starmap(range, pairwise(edges))


def _only_guard(
    code: Sequence[Op], load: int, block: range, readers: dict[int, list[int]]
) -> tuple[int, bool] | None:
    """The guard (slot, negated) shared by all stores that depend on the loaded value, if nothing
    else uses it."""
    slots, work = set(code[load].writes), list(code[load].writes)
    guards: set[tuple[int, bool]] = set()
    while work:
        slot = work.pop()
        for at in readers.get(slot, ()):
            op = code[at]
            if at not in block or at <= load or op.guard == slot:
                return None
            if _weak(op, _STORE) and op.guard >= 0:
                guards.add((op.guard, op.negate))
            elif op.results is None:
                return None
            else:
                work += set(op.writes) - slots
                slots |= set(op.writes)
    return guards.pop() if len(guards) == 1 else None


def _to_move(
    code: Sequence[Op], load: int, guard: int, block: range, writers: dict[int, list[int]]
) -> list[int] | None:
    """The instructions behind the load that compute its guard; None: they cannot move."""
    needed, work = set[int](), [guard]
    while work:
        slot = work.pop()
        all_written = writers.get(slot, ())
        written = [at for at in all_written if at in block and at >= load]
        if len(written) > 1 or (slot == guard and len(all_written) != 1):
            return None
        for at in written:
            op = code[at]
            if at == load or op.results is None or op.guard >= 0:
                return None
            if at not in needed:
                needed.add(at)
                work += op.reads
    return sorted(needed)


def _move(code: list[Op], block: range, moved: dict[int, list[int]]) -> None:
    order: list[int] = []
    for at in block:
        order += [before for before in moved.get(at, ()) if before not in order]
        order += [at] * (at not in order)
    code[block.start : block.stop] = [code[at] for at in order]


def _load(run: Run, guard: int, negate: bool, w: Warp, m: int) -> object:
    used = m & (~w.p[guard] if negate else w.p[guard])
    result = run(w, used) if used else None
    if idle := m & ~used:
        w.agent.memory.idle = True
        try:
            run(w, idle)
        finally:
            w.agent.memory.idle = False
    return result

"""Records the instructions that are events of a trace, by wrappers around them: see
`tcir.machine.events`.

The warps of recorded CTAs run their own copy of the program, in which these instructions are
wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.isa.memory import Load, Store
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import BLOCKING, TRY_WAIT, WAIT, Blocking, Op, PendingGroups, Run
from tcir.interp.ptx.program import DecodedEntry
from tcir.interp.ptx.registers import unsigned_view
from tcir.interp.ptx.warp import Warp
from tcir.machine import Agent
from tcir.machine.events import SECTOR
from tcir.machine.order.distinct import distinct
from tcir.machine.recorder import Recorder, WarpEvents

_SFU = frozenset(("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"))
_COUNTED = {
    "tcgen05.cp": "shared_to_tmem",
    "tcgen05.ld": "tmem_load",
    "tcgen05.st": "tmem_store",
    "ldmatrix": "shared_load",
    "stmatrix": "shared_store",
    "cp.async": "shared_store",
}
"""The counter of the bytes that each moves."""
_COLUMN = 128
"""Bytes of a column of tensor memory that one warp reaches."""
_ELSEWHERE = ("param", "local")
"""State spaces whose accesses count as plain instructions."""
_MMA = re.compile(r"mma\.\S*?\.m(\d+)n(\d+)k(\d+)\S*?\.(\w+)\.\w+\.\w+(?=\s)")
_WGMMA = re.compile(r"wgmma\.mma_async(\.sp)?\.\S*?m(\d+)n(\d+)k(\d+)\.\w+\.(\w+)")

After = Callable[[WarpEvents], None]
"""Reports an instruction's details once its event has begun."""


def recorded(program: DecodedEntry) -> DecodedEntry:
    """Returns the program of warps that record `WarpEvents`."""
    code = [_wrapped(op) for op in program.code]
    straight = list(range(len(code)))
    for at in reversed(range(len(code) - 1)):
        if program.straight[at] != at and code[at] is program.code[at]:
            straight[at] = straight[at + 1]
    return replace(program, code=code, straight=straight)


def record(recorder: Recorder, interpreter: WarpInterpreter) -> None:
    """Attaches a recorder of events to a warp's agent."""
    agent = interpreter.warp.agent
    index = agent.cta.index
    recorder.begin(index)
    agent.events = WarpEvents(recorder, index, interpreter.warp.index, lambda: interpreter.count)


def until_exit(agent: Agent, run: Blocking) -> Blocking:
    """Runs a recorded warp, and adds its last event."""
    yield from run
    if agent.events is not None:
        agent.events.exit()


def _wrapped(op: Op) -> Op:
    """Wraps the op to record its event; returns it unchanged if it is none."""
    if ".commit_group" in op.name:
        which = op.name.partition(".commit_group")[0].removeprefix("cp.async.")
        return replace(op, run=_closing(op.run, which))
    kind = _class(op)
    if not kind:
        return op
    if op.kind in (TRY_WAIT, WAIT):
        return replace(op, run=_trying(op, kind))
    if op.kind == BLOCKING:
        return replace(op, run=_blocking(op, kind))
    if kind in ("ld", "st"):
        return replace(op, run=_access(op, kind))
    return replace(op, run=_plain(op, kind))


def _class(op: Op) -> str:
    """The event that an instruction is; "ld" or "st": of the memory it finds; "": none."""
    name = op.name
    words = name.split(".")
    if isinstance(op.form, Load | Store) and op.form.place.space in _ELSEWHERE:
        return ""
    if words[0] in ("ld", "ldu", "atom"):
        return "ld"
    if words[0] in ("st", "red"):
        return "st"
    if words[0] in _SFU:
        return "sfu"
    if words[0] in ("ldmatrix", "stmatrix"):
        return words[0]
    if words[0] == "mma":
        return "mma.sync"
    if words[0] == "wgmma":
        return _WGMMA_CLASSES[words[1]]
    if words[0] in ("fence", "membar") or name.startswith("tcgen05.fence"):
        return "fence"
    if name.startswith("tcgen05."):
        kind = name.partition("::")[0]
        return "" if "alloc" in kind else kind
    if words[0] in ("bar", "barrier"):
        return "" if name == "bar.warp.sync" else "bar.sync"
    if name.startswith("mbarrier."):
        kind = "mbarrier.wait" if op.kind == TRY_WAIT else "mbarrier.arrive"
        return kind if kind == "mbarrier.wait" or words[1] in _ARRIVALS else ""
    return _copy_class(op)


_WGMMA_CLASSES = {"mma_async": "wgmma", "wait_group": "wgmma.wait", "fence": "fence"}
_ARRIVALS = ("arrive", "arrive_drop", "complete_tx")


def _copy_class(op: Op) -> str:
    name = op.name
    if not name.startswith(("cp.async", "cp.reduce.async")) or "prefetch" in name:
        return "bulk.load" if name.startswith("clusterlaunchcontrol.try_cancel") else ""
    bulk = ".bulk" in name
    if "wait" in name:
        return "bulk.wait" if bulk else "cp.async.wait"
    if not bulk:
        return "mbarrier.arrive" if "mbarrier" in name else "cp.async"
    engine = "tma" if ".tensor" in name else "bulk"
    return f"{engine}.{'store' if 'bulk_group' in op.site.text else 'load'}"


# --- by kind of the op --------------------------------------------------------------------------


def _plain(op: Op, kind: str) -> Run:
    inner, line, counter = op.run, op.site.line, _COUNTED.get(kind)
    told, details = _told(op, kind), _details(op, kind)

    def run(w: Warp, m: int) -> object:
        events = w.agent.events
        if events is None:
            return inner(w, m)
        events.begin(kind, line, details)
        if told is not None:
            told(events)
        if counter is None:
            return inner(w, m)
        counters = w.launch.machine.counters
        before = getattr(counters, counter)
        result = inner(w, m)
        nbytes = getattr(counters, counter) - before
        if kind in ("tcgen05.ld", "tcgen05.st"):
            events.note(columns=max(1, nbytes // _COLUMN))
        events.note(bytes=nbytes)
        return result

    return run


def _access(op: Op, kind: str) -> Run:
    """Records an access whose address alone determines its memory."""
    inner, line, form = op.run, op.site.line, op.form
    place = form.place if isinstance(form, Load | Store) else None
    way = "load" if kind == "ld" else "store"
    shared, anywhere = f"shared_{way}", f"global_{way}"

    def run(w: Warp, m: int) -> object:
        events, counters = w.agent.events, w.launch.machine.counters
        if events is None:
            return inner(w, m)
        before, others = getattr(counters, shared), getattr(counters, anywhere)
        events.begin(f"{kind}.shared", line)
        # Read before a load may overwrite its own address.
        at = None
        if place is not None:
            value = w.v[unsigned_view(place.size)][place.slot]
            at = place.effective(value[LANE_INDICES[m]])
        result = inner(w, m)
        nbytes = getattr(counters, shared) - before
        beyond = getattr(counters, anywhere) - others
        if beyond:
            events.recorder.drafts[events.last].op = f"{kind}.global"
            if at is not None:
                at = w.launch.machine.memory.unshifted(at)
                events.note(sectors=len(distinct(at // SECTOR)))
        events.note(bytes=beyond or nbytes, lanes=m.bit_count())
        return result

    return run


def _blocking(op: Op, kind: str) -> Run:
    inner, line, told = op.run, op.site.line, _told(op, kind)

    def run(w: Warp, m: int) -> Blocking:
        events = w.agent.events
        if events is not None:
            events.begin(kind, line)
            if told is not None:
                told(events)
        yield from inner(w, m)

    return run


def _trying(op: Op, kind: str) -> Run:
    inner, line, test = op.run, op.site.line, op.kind == TRY_WAIT

    def run(w: Warp, m: int) -> object:
        result = inner(w, m)
        events = w.agent.events
        if events is not None:
            events.waited(kind, line, over=not result if test else bool(result))
        return result

    return run


def _closing(inner: Run, which: str) -> Run:
    def run(w: Warp, m: int) -> object:
        if w.agent.events is not None:
            w.agent.events.close(which)
        return inner(w, m)

    return run


# --- by class -----------------------------------------------------------------------------------


def _told(op: Op, kind: str) -> After | None:
    """Function that returns the events that an event waits for, or that wait for it."""
    match kind:
        case "tcgen05.mma" | "tcgen05.cp" | "tcgen05.shift":
            return WarpEvents.issued
        case "tcgen05.commit":
            return WarpEvents.commit
        case "tcgen05.ld" | "tcgen05.st":
            which = kind[-2:]
            return lambda events: events.access(which)
        case "tcgen05.wait":
            waits = op.name[-2:]
            return lambda events: events.wait_tmem(waits)
        case "cp.async":
            return lambda events: events.copy("cp.async")
        case "tma.store" | "bulk.store":
            return lambda events: events.copy("bulk")
        case "wgmma":
            return lambda events: events.copy("wgmma")
        case "mbarrier.arrive" if op.name.startswith("cp.async"):
            return lambda events: events.wait_for(events.copies("cp.async"))
        case "cp.async.wait" | "bulk.wait" | "wgmma.wait" if isinstance(op.form, PendingGroups):
            groups, pending = kind.removesuffix(".wait"), op.form.pending
            return lambda events: events.wait_groups(groups, pending)
    return None


def _details(op: Op, kind: str) -> dict[str, int | str]:
    """Properties of an instruction that its text states, such as the shape of an mma."""
    text = op.site.text
    if kind == "mma.sync" and (found := _MMA.search(text)):
        m, n, k = map(int, found.groups()[:3])
        return {"m": m, "n": n, "k": k, "kind": found[4]}
    if kind == "wgmma" and (found := _WGMMA.search(text)):
        m, n, k = map(int, found.groups()[1:4])
        a_in = "registers" if text.count("{") > 1 else "smem"
        sparse = {"sparse": 1} if found[1] else {}
        return {"m": m, "n": n, "k": k, "kind": found[5], "a_in": a_in, **sparse}
    if op.name.startswith("clusterlaunchcontrol"):
        return {"bytes": 16}
    if kind == "fence":
        return {"kind": _fence(op.name, text)}
    return {}


def _fence(name: str, text: str) -> str:
    if name.startswith(("tcgen05", "wgmma")):
        return name.partition(".")[0]
    if "proxy" in name or "mbarrier_init" in name:
        return name.removeprefix("fence.")
    scopes = {"gl": "gpu"}
    words = text.split()[0].rstrip(";").split(".")
    return next(
        (scopes.get(w, w) for w in words if w in ("cta", "cluster", "gpu", "gl", "sys")), ""
    )

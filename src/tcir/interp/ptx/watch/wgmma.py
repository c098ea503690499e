"""In kernels with wgmma, reports the registers that other instructions touch to
`WgmmaRegisters`.
"""

from __future__ import annotations

from tcir.interp.ptx.isa.warpgroup.wgmma import WgmmaOperands
from tcir.interp.ptx.op import BLOCKING, BRANCH, Blocking, Op, PendingGroups, Run
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.warp import Warp


def watch_wgmma(code: list[Op]) -> None:
    """Wraps every op that touches a register of a wgmma, so that the access is reported."""
    forms = [op.form for op in code if isinstance(op.form, WgmmaOperands)]
    watched = {slot for form in forms for slot in (*form.d, *form.a)}
    results = {slot for form in forms for slot in form.d}
    if not watched:
        return
    flying = False  # a wgmma since the last wait or branch
    for op in code:
        slots = tuple(sorted(watched & {*op.reads, *op.writes}))
        if isinstance(op.form, WgmmaOperands):
            flying = True
        elif op.kind == BRANCH or isinstance(op.form, PendingGroups):
            flying = False
        elif op.name == "mov" and flying and results & {*op.reads}:
            op.run, op.kind, op.aligned = _copying(op, slots), BLOCKING, True
        elif op.name == "mov" and slots:
            op.run = _moving(op, slots)
        elif slots:
            op.touches, op.run = slots, _telling(op, slots)
            op.own = op.run


def _telling(op: Op, slots: tuple[int, ...]) -> Run:
    run, site = op.run, op.site

    def told(w: Warp, m: int) -> object:
        w.wgmma.touch(w, slots, site)
        return run(w, m)

    return told


def _moving(op: Op, slots: tuple[int, ...]) -> Run:
    """Wraps a mov likewise, which may copy such a register or write zeros."""
    run, site, copies, written = op.run, op.site, not {*slots}.isdisjoint(op.reads), op.writes

    def told(w: Warp, m: int) -> None:
        w.wgmma.touch(w, slots, site)
        run(w, m)
        if m == w.live and (copies or not any(w.v[U32][slot].any() for slot in written)):
            w.wgmma.move(slots)

    return told


def _copying(op: Op, slots: tuple[int, ...]) -> Run:
    """Wraps a mov that may copy a result in flight. ptxas serialises such wgmma: each is fenced,
    and awaited before the copy."""
    run, site, read = _moving(op, slots), op.site, op.reads

    def told(w: Warp, m: int) -> Blocking:
        if w.wgmma.copies(w, read, site):
            w.agent.wgmma.commit(site=site)
            yield from w.agent.wgmma.wait(0, site=site)
            w.wgmma.land(w.agent.wgmma.complete)
            w.wgmma.fence()
        run(w, m)

    return told

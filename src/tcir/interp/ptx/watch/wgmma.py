"""Reports to `WgmmaRegisters` the registers that other instructions of a kernel with wgmma
touch."""

from __future__ import annotations

from tcir.interp.ptx.isa.warpgroup.wgmma import WgmmaOperands
from tcir.interp.ptx.op import Op, Run
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.warp import Warp


def watch_wgmma(code: list[Op]) -> None:
    """Wraps every op that touches registers of wgmma, to report them."""
    forms = [op.form for op in code if isinstance(op.form, WgmmaOperands)]
    watched = {slot for form in forms for slot in (*form.d, *form.a)}
    if not watched:
        return
    for op in code:
        slots = tuple(sorted(watched & {*op.reads, *op.writes}))
        if slots and not isinstance(op.form, WgmmaOperands):
            op.run = _clearing(op, slots) if op.name == "mov" else _telling(op, slots)


def _telling(op: Op, slots: tuple[int, ...]) -> Run:
    run, site = op.run, op.site

    def told(w: Warp, m: int) -> object:
        w.wgmma.touch(w, slots, site)
        return run(w, m)

    return told


def _clearing(op: Op, slots: tuple[int, ...]) -> Run:
    """Wraps a mov likewise; it may write zeros."""
    run, site, written = op.run, op.site, op.writes

    def told(w: Warp, m: int) -> None:
        w.wgmma.touch(w, slots, site)
        run(w, m)
        if m == w.live and not any(w.v[U32][slot].any() for slot in written):
            w.wgmma.clear(slots)

    return told

"""Reports to `WgmmaRegisters` the registers that other instructions of a kernel with wgmma
touch."""

from __future__ import annotations

from tcir.interp.ptx.isa.warpgroup.wgmma import WgmmaOperands
from tcir.interp.ptx.op import Op, Run
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
            op.run = _telling(op, slots)


def _telling(op: Op, slots: tuple[int, ...]) -> Run:
    run, site = op.run, op.site

    def told(w: Warp, m: int) -> object:
        w.wgmma.touch(w, slots, site)
        return run(w, m)

    return told

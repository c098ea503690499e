"""Checks writes to registers of a tcgen05.ld that is not yet covered by tcgen05.wait::ld (PTX ISA
9.7.16.8).
"""

from __future__ import annotations

from functools import partial

from tcir.interp.ptx.isa.tcgen05.access import TmemAccess
from tcir.interp.ptx.op import Op, Run
from tcir.interp.ptx.syntax import Site
from tcir.interp.ptx.warp import Warp


def watch_tmem_loads(code: list[Op]) -> None:
    """Wraps the ops that write registers of a tcgen05.ld, to check whether the load is in flight
    when they execute.
    """
    forms = [op.form for op in code if isinstance(op.form, TmemAccess) and op.form.load]
    loaded = {slot for form in forms for slot in form.slots}
    for op in code if loaded else ():
        slots = tuple(sorted(loaded & {*op.writes}))
        if slots:
            op.run = partial(_write, op.run, slots, op.site)


def _write(run: Run, slots: tuple[int, ...], site: Site, w: Warp, m: int) -> object:
    for slot in slots:
        if slot in w.pending and w.undef[slot] & m:
            w.agent.cta.report(
                "error",
                "register-overwritten",
                w.pending[slot],
                site,
                f"tcgen05.wait::ld between the load and another write of {w.names[slot]}: the load "
                "may come later, and the other value is lost (PTX ISA 9.7.16.8)",
            )
    return run(w, m)

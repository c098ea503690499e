"""Instructions that control launches: cluster launch control (PTX ISA 9.7.13.17), griddepcontrol
(9.7.13).
"""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Unknown
from tcir.interp.ptx.isa.mbarrier import shared_operand
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Op, no_effect
from tcir.interp.ptx.registers import U32, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Sink, Site
from tcir.interp.ptx.threads import one_by_one
from tcir.interp.ptx.warp import Warp
from tcir.machine.engine.launch_control import granted
from tcir.machine.memory.undefined import Origin

_B128, _U32 = TYPES["b128"], TYPES["u32"]


@instruction("clusterlaunchcontrol.try_cancel.async")
def cancel(d: Decode) -> Op:
    """`[answer], [mbar]`: requests a cluster. The answer is 16 bytes that complete on the
    mbarrier.
    """
    spaced = d.take("shared::cta") is not None
    d.require("mbarrier::complete_tx::bytes")
    multicast = d.take("multicast::cluster::all") is not None
    d.require("b128")
    d.done(2)
    answer, barrier = (shared_operand(d, o, spaced) for o in d.operands)
    site = d.site

    def run(w: Warp, m: int) -> None:
        for at, mbar in one_by_one(w, m, zip(answer(w, m), barrier(w, m), strict=True)):
            w.agent.launch_control.try_cancel(at, mbar, multicast, site=site)

    return d.plain(run)


def _answers(w: Warp, slot: int, m: int, site: Site) -> list[tuple[int, int, int] | None]:
    if w.undef[slot] & m:
        w.read_undefined(site, (slot,), m)
    values = w.v[view(_B128)][slot]
    return [granted(values[lane].tobytes(), site) for lane in LANE_INDICES[m]]


@instruction("clusterlaunchcontrol.query_cancel.is_canceled")
def is_canceled(d: Decode) -> Op:
    """Whether the request for a cluster was granted. After a request that was not granted, no
    further request is allowed.
    """
    d.require("pred")
    d.require("b128")
    d.done(2)
    dst, source = d.pred_dst(d.operands[0]), d.src(d.operands[1], _B128)
    site = d.site

    def run(w: Warp, m: int) -> None:
        found = 0
        for lane, first in zip(LANE_INDICES[m], _answers(w, source, m, site), strict=True):
            if first is None:
                w.agent.cta.cluster.declined = site
            else:
                found |= 1 << int(lane)
        w.p[dst] = w.p[dst] & ~m | found
        w.undef[dst] &= ~m

    return d.plain(run)


@instruction(
    "clusterlaunchcontrol.query_cancel.get_first_ctaid",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::x",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::y",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::z",
)
def first_ctaid(d: Decode) -> Op:
    """Coordinates of the first CTA of the cluster that was granted."""
    whole = d.name.endswith("ctaid")
    if whole:
        d.require("v4")
    d.require("b32")
    d.require("b128")
    d.done(2)
    items = d.vector(d.operands[0], 4 if whole else 1)
    axes = [0, 1, 2] if whole else ["xyz".index(d.name[-1])]
    wanted = [
        (d.dst(item, _U32), axis) for item, axis in zip(items, axes) if not isinstance(item, Sink)
    ]
    rest = [d.dst(item, _U32) for item in items[3:] if not isinstance(item, Sink)]
    source, site = d.src(d.operands[1], _B128), d.site

    def run(w: Warp, m: int) -> None:
        lanes = LANE_INDICES[m]
        answers = _answers(w, source, m, site)
        refused, index = np.zeros((32, 4), np.uint8), w.agent.cta.index
        refused[lanes[[first is None for first in answers]]] = 0xFF
        lost = Unknown(refused, Origin(
            "launch-control-refused", site, "the answer of a request that was refused",
            "is_canceled before: the coordinates are undefined (PTX ISA 9.7.13.17.4)", index,
        ))  # fmt: skip
        for dst, axis in wanted:
            w.v[U32][dst][lanes] = np.array([(a or (0, 0, 0))[axis] for a in answers], np.uint32)
            w.define(dst, m, lost)
        for dst in rest:
            fourth = Origin(
                "undefined-register",
                site,
                "the fourth element of get_first_ctaid",
                "a value: it is unspecified (PTX ISA 9.7.13.17.4)",
                index,
            )
            w.define(dst, m, Unknown(np.full((32, 4), 0xFF, np.uint8), fourth))

    return d.plain(run)


@instruction("griddepcontrol.wait")
def grid_wait(d: Decode) -> Op:
    """griddepcontrol.wait: in a programmatic dependent launch, orders later accesses after those of
    the earlier launches; in other launches it has no effect.
    """
    d.done(0)
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.grid_control.wait(site=site)

    return d.plain(run)


@instruction("griddepcontrol.launch_dependents")
def grid_launch_dependents(d: Decode) -> Op:
    """Has no effect: the simulated machine always executes the next launch after this one."""
    d.done(0)
    return d.plain(no_effect)

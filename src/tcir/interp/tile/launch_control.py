"""Rules of cluster launch control."""

from __future__ import annotations

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.limits import LAUNCH_RESPONSE_BYTES
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.values import LaunchResponses, Site
from tcir.machine.engine.launch_control import granted


@execute(tc.LaunchResponsesOp)
def launch_responses(compiler: Compiler, op: tc.LaunchResponsesOp) -> Step:
    base, count = compiler.places.shared[op.operation], integer(op, "count")
    return compiler.assigns(op, lambda frame: LaunchResponses(frame.cta.shared + base, count))


def _slot(frame: Frame, responses: LaunchResponses, slot: int, site: Site) -> int:
    """Address of a response."""
    number = frame.cta_run.below("a slot", slot, responses.count, site)
    return responses.base + LAUNCH_RESPONSE_BYTES * number


@execute(tc.LaunchRequestOp)
def launch_request(compiler: Compiler, op: tc.LaunchRequestOp) -> Step:
    responses_, slot_, signal_ = compiler.operands(op)
    site, pair = compiler.site(op), cta_group_of(op) == PAIR

    def request(frame: Frame) -> None:
        v = frame.values
        target = _slot(frame, v[responses_], v[slot_], site)
        control = frame.agent.launch_control
        control.try_cancel(target, v[signal_].address, multicast=pair, site=site)

    return request


@execute(tc.LaunchQueryOp)
def launch_query(compiler: Compiler, op: tc.LaunchQueryOp) -> Step:
    responses_, slot_ = compiler.operands(op)
    granted_, cta_ = compiler.slots_of(op.operation.results)
    site = compiler.site(op)

    def query(frame: Frame) -> None:
        v = frame.values
        place = np.array([_slot(frame, v[responses_], v[slot_], site)], np.int64)
        raw = frame.agent.memory.load("shared", place, LAUNCH_RESPONSE_BYTES, site=site)
        first = granted(raw.tobytes(), site)
        if first is None:
            frame.cta.cluster.declined = site
        v[granted_], v[cta_] = first is not None, first[0] if first else 0

    return query

"""Rules of synchronisation."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tcir.interp.tile.compiler import Compiler, Frame, Step, rule
from tcir.interp.tile.movement import text
from tcir.interp.tile.places import integer

WARP = 32
"""Threads of a warp."""


@rule("tc.mbarrier_wait")
def mbarrier_wait(compiler: Compiler, op: Any) -> Step:
    bar, parity = compiler.operands(op)
    site = compiler.site(op)

    def wait(frame: Frame) -> Generator[Any, Any, None]:
        v = frame.values
        if v[parity] not in (0, 1):
            raise frame.launch.error("bad-parity", f"expected 0 or 1, got {v[parity]}", site)
        yield from frame.agent.mbarrier_wait(v[bar].address, v[parity], site=site)

    return wait


@rule("tc.mbarrier_expect_tx")
def mbarrier_expect_tx(compiler: Compiler, op: Any) -> Step:
    (bar,) = compiler.operands(op)
    site, nbytes = compiler.site(op), integer(op, "nbytes")

    def expect(frame: Frame) -> None:
        if frame.elected():
            frame.agent.mbarrier_arrive(frame.values[bar].address, expect_tx=nbytes, site=site)

    return expect


@rule("tc.mbarrier_arrive")
def mbarrier_arrive(compiler: Compiler, op: Any) -> Step:
    (bar,) = compiler.operands(op)
    site = compiler.site(op)

    def arrive(frame: Frame) -> None:
        frame.agent.mbarrier_arrive(frame.values[bar].address, WARP, site=site)

    return arrive


@rule("tc.commit")
def commit(compiler: Compiler, op: Any) -> Step:
    (bar,) = compiler.operands(op)
    site = compiler.site(op)

    def commit(frame: Frame) -> None:
        if frame.elected():
            frame.agent.commit(frame.values[bar].address, site=site)

    return commit


@rule("tc.fence")
def fence(compiler: Compiler, op: Any) -> Step:
    kind, site = text(op, "kind"), compiler.site(op)

    def fence(frame: Frame) -> None:
        frame.agent.fence(kind, site=site)

    return fence


@rule("tc.cta_barrier")
def cta_barrier(compiler: Compiler, op: Any) -> Step:
    site = compiler.site(op)

    def barrier(frame: Frame) -> Generator[Any, Any, None]:
        yield from frame.agent.barrier(0, None, site=site)

    return barrier

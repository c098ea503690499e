"""Rules of roles: each warp runs the whole kernel and enters the roles that list it; one thread."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tcir.interp.tile.compiler import Compiler, Frame, Step, may_block, rule
from tcir.interp.types import integers


@rule("tc.role")
def role(compiler: Compiler, op: Any) -> Step:
    warps = integers(op.operation.attributes["warps"])
    block = op.operation.regions[0].blocks[0]
    position = compiler.slot(block.arguments[0])
    body = compiler.block(block)

    def enter(frame: Frame) -> Generator[Any, Any, None]:
        if frame.warp not in warps:
            return
        frame.values[position] = warps.index(frame.warp)
        frame.in_role = True
        if may_block(body):
            yield from body(frame)
        else:
            body(frame)
        frame.in_role = False

    return enter


@rule("tc.one_thread")
def one_thread(compiler: Compiler, op: Any) -> Step:
    body = compiler.block(op.operation.regions[0].blocks[0])

    def enter(frame: Frame) -> Generator[Any, Any, None]:
        if not frame.elected():
            return
        if may_block(body):
            yield from body(frame)
        else:
            body(frame)

    return enter

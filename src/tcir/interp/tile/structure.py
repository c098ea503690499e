"""Rules of roles and of regions that one thread executes. With roles, each warp runs the whole
kernel and enters the roles that list it.
"""

from __future__ import annotations

from tcir.dialect import tc
from tcir.dialect.attributes import integers, string
from tcir.dialect.limits import WARP
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, blocking, execute


@execute(tc.RoleOp)
def role(compiler: Compiler, op: tc.RoleOp) -> Step:
    warps = integers(op, "warps")
    block = op.operation.regions[0].blocks[0]
    position = compiler.slot(block.arguments[0])
    body = blocking(compiler.block(block))
    threads = 1 if string(op, "threads") == "one" else WARP

    def enter(frame: Frame) -> Blocking:
        if frame.warp not in warps:
            return
        frame.values[position] = warps.index(frame.warp)
        frame.in_role, frame.threads = True, threads
        yield from body(frame)
        frame.in_role, frame.threads = False, WARP

    return enter


@execute(tc.OneThreadOp)
def one_thread(compiler: Compiler, op: tc.OneThreadOp) -> Step:
    body = blocking(compiler.block(op.operation.regions[0].blocks[0]))

    def enter(frame: Frame) -> Blocking:
        if frame.elected():
            yield from body(frame)

    return enter

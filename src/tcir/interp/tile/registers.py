"""Rules of registers, which are unlimited here."""

from __future__ import annotations

from tcir.dialect import tc
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute


@execute(tc.WarpgroupRegistersOp)
def warpgroup_registers(compiler: Compiler, op: tc.WarpgroupRegistersOp) -> Step:
    def nothing(frame: Frame) -> None:
        pass

    return nothing

"""Register shares of warpgroups."""

from __future__ import annotations

from tcir._mlir import arith, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integers
from tcir.dialect.limits import WARP, WARPGROUP, launch_registers

from .converter import Converter, lower
from .structure import is_equal, only_if


@lower(tc.WarpgroupRegistersOp)
def convert_warpgroup_registers(converter: Converter, op: tc.WarpgroupRegistersOp) -> None:
    """A branch on the warpgroup for each share that differs from the launch's."""
    shares = integers(op, "registers")
    launched = launch_registers(WARPGROUP * len(shares))
    four = converter.constant(WARPGROUP // WARP)
    warpgroup = arith.DivUIOp(converter.warp, four).result
    for number, count in enumerate(shares):
        if count == launched:
            continue
        with only_if(is_equal(converter, warpgroup, number)):
            nvvm.setmaxregister("increase" if count > launched else "decrease", count)

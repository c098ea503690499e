"""Rules of ops on registers. At this level registers are unlimited, except for the pool that
warpgroups redistribute.
"""

from __future__ import annotations

from tcir.dialect import tc
from tcir.dialect.attributes import integers
from tcir.dialect.limits import WARPGROUP, launch_registers
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute


@execute(tc.WarpgroupRegistersOp)
def warpgroup_registers(compiler: Compiler, op: tc.WarpgroupRegistersOp) -> Step:
    """Checks that the shares of all warpgroups fit into an SM's register pool; at this level there
    are no threads whose registers would change.
    """
    shares, site = integers(op, "registers"), compiler.site(op)
    most = launch_registers(WARPGROUP * len(shares)) * len(shares)

    def share_out(frame: Frame) -> None:
        if sum(shares) > most:
            raise frame.cta_run.error(
                "register-pool",
                f"expected shares that add up to at most {most} registers, got "
                f"{' + '.join(map(str, shares))} = {sum(shares)}: setmaxnreg.inc would wait for "
                "registers that no warpgroup gives back",
                site,
            )

    return share_out

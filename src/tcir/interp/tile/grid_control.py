"""Rules of programmatic dependent launch."""

from __future__ import annotations

from tcir.dialect import tc
from tcir.interp.tile.compiler import Compiler, Step, execute, nothing


@execute(tc.GridWaitOp)
def grid_wait(compiler: Compiler, op: tc.GridWaitOp) -> Step:
    site = compiler.site(op)
    return lambda frame: frame.agent.grid_control.wait(site=site)


@execute(tc.GridLaunchDependentsOp)
def grid_launch_dependents(compiler: Compiler, op: tc.GridLaunchDependentsOp) -> Step:
    """Does nothing: the next launch is executed after this one."""
    return nothing

"""Breakpoints in a PTX kernel on the simulated machine, and inspection of its state.

    from tcir import debug
    stop = debug.run(ptx, break_at="first-hazard", grid=1, block=128, args=[x, y])
    print(stop.report)                  # the report of `tcir.run_ptx`, up to the stop
    print(stop)                         # the reason, the position of every warp, a dump
    stop.registers(["%r1", "%rd2"], warp=3)
    stop.shared(0x400, 64), stop.tensor_memory(rows=(0, 4), columns=(0, 8)), stop.mbarriers()

`break_at` is a line of the PTX text, "FILE:LINE" of its source, a label, "first-hazard", a `Watch`
of an element (or a `SharedWatch` or `TensorWatch` of a CTA's memory), or a `FirstDifference` from
expected results. `interact` prompts for commands at each stop. After a stop, the simulated machine
keeps the state that it had at that point.
"""

from tcir.debug.console import interact
from tcir.debug.control import Breakpoint, Follower, Stopped
from tcir.debug.difference import FirstDifference
from tcir.debug.session import run
from tcir.debug.stop import Stop
from tcir.debug.watching import Watch
from tcir.debug.watching_ctas import SharedWatch, TensorWatch
from tcir.debug.writers import LastWriters
from tcir.errors import LaunchError

__all__ = [
    "Breakpoint", "FirstDifference", "Follower", "LastWriters", "LaunchError", "SharedWatch",
    "Stop", "Stopped", "TensorWatch", "Watch", "interact", "run",
]  # fmt: skip

r"""tc-run: executes a PTX kernel on the simulated machine (`tcir.run_ptx` from the shell).

    tc-run saxpy.ptx --grid 8 --block 128 --arg x.npy --arg y.npy --arg f32=1.5 --arg u32=1000 \
           --save 1=out.npy

Block, cluster, dynamic shared memory, entry and scratch arguments are taken from the files that
Triton or CuTe DSL wrote next to the PTX, and from the entry's directives
(`tcir.ptxrun.metadata`); flags of the command line take precedence.

``--break-at`` stops at a line, a hazard or a wrong result and shows registers and memories.
``--bundle DIR`` writes the kernel, its inputs and the machine's results into a folder that can be
run on another machine's GPU; a program in MLIR is compiled first (``--pipeline``). ``--selftest``
tests the machine's assumptions on a B200.

Exit status: 0 if the run was ok, 1 for illegal operations or hazards, 2 if the run is incomplete, 3
for bad input, 4 for an internal error, 130 if it was interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tcir.child import run_in_child
from tcir.exit_status import exit_status
from tcir.streams import guard_streams


def main() -> int:
    """Entry point; everything it does is in `tcir.ptxrun`."""
    guard_streams()
    return exit_status(lambda: run_in_child(_load))


def _load() -> Callable[[], int]:
    from tcir.ptxrun.command import main as command

    return lambda: command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

"""tc-run: executes a PTX kernel on the simulated machine (`tcir.run_ptx` from the shell).

    tc-run saxpy.ptx --grid 8 --block 128 --arg x.npy --arg y.npy --arg f32=1.5 --arg u32=1000 \\
           --save 1=out.npy

Block, cluster, dynamic shared memory, entry and scratch arguments are taken from what Triton or
CuTe DSL left beside the file, and from the entry's directives (`tcir.ptxrun.metadata`); what
the command line says goes first.

``--break-at`` stops at a line, a hazard or a wrong result and shows registers and memories.
``--bundle DIR`` writes the kernel, its inputs and what the machine computes into a folder that runs
on somebody else's GPU; a program in MLIR is compiled first (``--pipeline``). ``--selftest`` asks a
B200 the questions of the machine's assumptions.

Exit status: 0 the run was ok, 1 illegal acts or hazards, 2 incomplete, 3 bad input, 4 internal,
130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from tcir.streams import run_command


def main() -> int:
    """Entry point; everything it does is in `tcir.ptxrun`."""
    return run_command(_run, sys.argv[1:])


def _run(words: Sequence[str]) -> int:
    """Loads the command; an interrupt while numpy is imported would leave it half there."""
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from tcir.ptxrun.command import main as command

    signal.signal(signal.SIGINT, before)
    return command(words)


if __name__ == "__main__":
    sys.exit(main())

"""The command line tc-opt; everything it does is in `tcir.opt.command`."""

from __future__ import annotations

import gc
import sys

from tcir.opt.command import main as drive
from tcir.streams import run_command


def main() -> int:
    """Entry point; the exit status is described in ``tc-opt --help``."""
    gc.set_threshold(100_000)  # nearly all that start-up makes lives to the end
    return run_command(drive, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

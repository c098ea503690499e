"""The command line tc-opt; everything it does is in `tcir.opt.command`."""

from __future__ import annotations

import gc
import sys

from tcir.exit_status import exit_status
from tcir.streams import guard_streams


def main() -> int:
    """Entry point; the exit status is described in ``tc-opt --help``."""
    gc.set_threshold(100_000)  # nearly all that start-up makes lives to the end
    guard_streams()
    return exit_status(_drive)


def _drive() -> int:
    from tcir.opt.command import main as drive

    return drive(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

"""The command line tc-opt; everything it does is in `tcir.opt.command`."""

from __future__ import annotations

import sys

from tcir.opt.command import main as drive
from tcir.streams import run_command


def main() -> int:
    """Entry point; the exit status is described in ``tc-opt --help``."""
    return run_command(drive, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

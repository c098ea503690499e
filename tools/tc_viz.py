"""The command line tc-viz; everything it does is in `tcir.viz`."""

from __future__ import annotations

import sys

from tcir.streams import run_command
from tcir.viz.command import main as draw


def main() -> int:
    """Entry point; the exit status is described in `tcir.viz.command`."""
    return run_command(draw, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

"""The command line tc-reduce; everything it does is in `tcir.reduce`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tcir.child import run_in_child
from tcir.exit_status import exit_status
from tcir.streams import guard_streams


def main() -> int:
    """Entry point; the exit status is described in ``tc-reduce --help``."""
    guard_streams()
    return exit_status(lambda: run_in_child(_load))


def _load() -> Callable[[], int]:
    from tcir.reduce.command import main as command

    return lambda: command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

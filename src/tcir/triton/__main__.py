"""``python -m tcir.triton script.py``: runs a Triton or Gluon script on the simulated machine."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from tcir.doors.command import add_flags, add_target, failed, launches_of, status_of
from tcir.doors.script import run_named
from tcir.errors import InputError, MissingDependencyError
from tcir.exit_status import exit_status
from tcir.streams import guard_streams
from tcir.target import TARGETS

EPILOG = """
examples:
  python -m tcir.triton tutorial.py                        # its kernels, on the simulated B200
  python -m tcir.triton --size 8192=256 tutorial.py        # with 256 where the script says 8192
  python -m tcir.triton --order-seeds 3 tutorial.py --n 64 # each launch in three more orders
  python -m tcir.triton --autotune all tutorial.py         # every configuration is executed
  python -m tcir.triton --target sm_90a --sms 4 tutorial.py  # on an H100 with four SMs
  python -m tcir.triton -m pytest tutorial.py -k small     # a module that runs scripts

Exit status: the script's; if it succeeds, 1 if a kernel was illegal, or a result depends on timing
or on uninitialised memory; 2 if an instruction has no rule; 3 for what cannot be run. An illegal
operation of a kernel is an exception at the launch.
"""


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    given = _parser().parse_args(argv)
    sizes = dict(given.size)
    if given.module and sizes:
        raise InputError("--size: replaces integers of a script, not of a module (-m)")
    script = Path(given.script)
    if not given.module and not script.is_file():
        what = "a directory" if script.is_dir() else "no such file"
        raise InputError(f"{script}: expected the path of a Python script, got {what}")
    try:
        from triton.runtime import driver

        from tcir.triton.addresses import Addresses
        from tcir.triton.cuda import simulated
        from tcir.triton.driver import SimulatedDriver
    except ImportError as error:
        raise MissingDependencyError(
            f"python -m tcir.triton needs Triton and torch ({error}); install tcir[triton]"
        ) from None
    launches, addresses = launches_of(given, TARGETS[given.target]), Addresses()
    driver.set_active(SimulatedDriver(launches, addresses, given.autotune))

    def run() -> None:
        with simulated(launches, addresses, given.autotune):
            run_named(given.script, given.module, given.arguments, sizes)

    return status_of(run, launches, partial(failed, given.script))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tcir.triton",
        description="Runs a script of Triton or Gluon kernels on the simulated B200 or H100; its "
        "tensors are on the CPU.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--size",
        action="append",
        type=_size,
        default=[],
        metavar="OLD=NEW",
        help="replace each integer OLD of the script by NEW, except in kernels; may be repeated",
    )
    parser.add_argument(
        "--autotune",
        choices=("first", "all", "modelled"),
        default="first",
        help="which of an autotuner's fitting configurations to use: the first; the first, after "
        "executing all; the one with the least modelled time",
    )
    add_flags(parser)
    add_target(parser)
    parser.add_argument(
        "-m", dest="module", action="store_true", help="the script is a module, such as pytest"
    )
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    return parser


def _size(text: str) -> tuple[int, int]:
    old, equals, new = text.partition("=")
    if not (equals and old.isdecimal() and new.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected OLD=NEW, two integers, got {text!r}")
    return int(old), int(new)


if __name__ == "__main__":
    guard_streams()
    sys.exit(exit_status(main))

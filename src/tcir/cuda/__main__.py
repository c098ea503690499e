"""``python -m tcir.cuda program.cu``: runs a whole CUDA program, whose device is the simulated
machine.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tcir.codegen.cuda import compile_program
from tcir.cuda.program import ProgramDevice, compile_runtime
from tcir.cuda.script import run_python
from tcir.doors.command import add_flags, add_target, check_values, launches_of
from tcir.exit_status import exit_status
from tcir.streams import guard_streams
from tcir.target import TARGETS

EPILOG = """
examples:
  python -m tcir.cuda examples/histogram.cu                     # its kernels, on the simulated B200
  python -m tcir.cuda examples/histogram.cu 5000                # with an argument for the program
  python -m tcir.cuda --order-seeds 3 examples/histogram.cu     # each launch in three more orders
  python -m tcir.cuda --nvcc="-I. more.cu" program.cu           # flags and files for nvcc
  python -m tcir.cuda --target sm_90a --sms 4 program.cu        # on an H100 with four SMs
  python -m tcir.cuda script.py                                 # of CuPy, cuda.core, numba.cuda

Exit status: the program's; if it succeeds, 1 if a launch was rejected, a kernel was illegal, or a
result depends on timing or on uninitialised memory, 2 if an instruction has no rule or a CUDA
function that is called is missing; 3 for what cannot be compiled or loaded.
"""


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    given = _parser().parse_args(argv)
    check_values(given, "nvcc", "program")
    target = TARGETS[given.target]
    with tempfile.TemporaryDirectory() as folder, _ended_by_signals():
        if given.module or Path(given.program).suffix == ".py":
            launches = launches_of(given, target)
            return run_python(given, ProgramDevice(launches), compile_runtime(Path(folder)))
        library = Path(folder) / "program.so"
        compile_program(Path(given.program), target.name, library, shlex.split(given.nvcc))
        runtime = compile_runtime(Path(folder))
        launches = launches_of(given, target)
        run = ProgramDevice(launches).load(runtime, library, given.program)
    status = run(given.arguments)
    launches.close()
    return status


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the command after nvcc and remove its files; the program keeps its
    own handlers."""

    def end(number: int, _frame: object) -> NoReturn:
        print(f"error: ended by {signal.Signals(number).name}", file=sys.stderr)
        raise SystemExit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tcir.cuda",
        description="Compiles a CUDA program, host code included, and runs it; its device is the "
        "simulated B200.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_flags(parser)
    parser.add_argument("--nvcc", default="", metavar="FLAGS", help="more flags and files for nvcc")
    add_target(parser)
    parser.add_argument(
        "-m", dest="module", action="store_true", help="the program is a Python module"
    )
    parser.add_argument("program", help="a .cu file with main(), or a Python script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    return parser


if __name__ == "__main__":
    guard_streams()
    sys.exit(exit_status(main))

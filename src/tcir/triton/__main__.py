"""``python -m tcir.triton script.py``: a script of Triton or Gluon on the simulated machine."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

from tcir.errors import Error, InputError, MissingDependencyError
from tcir.exit_status import exit_status
from tcir.streams import guard_streams, kept_messages
from tcir.time.trace import check_perfetto
from tcir.triton.script import run_module, run_script

EPILOG = """
examples:
  python -m tcir.triton tutorial.py                        # its kernels, on the simulated B200
  python -m tcir.triton --size 8192=256 tutorial.py        # with 256 where the script says 8192
  python -m tcir.triton --order-seeds 3 tutorial.py --n 64 # each launch in three more orders
  python -m tcir.triton --autotune all tutorial.py         # every configuration is executed
  python -m tcir.triton -m pytest tutorial.py -k small     # a module that runs scripts

Exit status: the script's; 1 if it ends well and a result depends on timing; 2 where an instruction
has no rule; 3 for what cannot be run. An illegal act of a kernel is an exception at the launch.
"""


def main(argv: list[str] | None = None) -> int:
    """The exit status."""
    given = _parser().parse_args(argv)
    sizes = dict(given.size)
    if given.module and sizes:
        raise InputError("--size: expected a script whose integers are replaced, got -m")
    script = Path(given.script)
    if not given.module and not script.is_file():
        what = "a directory" if script.is_dir() else "no such file"
        raise InputError(f"{script}: expected the path of a Python script, got {what}")
    try:
        from triton.runtime import driver

        from tcir.triton.cuda import simulated
        from tcir.triton.driver import SimulatedDriver
        from tcir.triton.launches import Launches
    except ImportError as error:
        raise MissingDependencyError(
            f"python -m tcir.triton needs Triton and torch ({error}); install tcir[triton]"
        ) from None
    if given.trace is not None:
        check_perfetto()
    launches = Launches(
        given.order_seed, given.order_seeds, given.numerics, given.jobs,
        at_most=given.max_findings, warnings=given.warnings, trace=given.trace,
        messages=kept_messages(),
    )  # fmt: skip
    driver.set_active(SimulatedDriver(launches, given.autotune))
    try:
        with simulated(launches):
            if given.module:
                run_module(given.script, given.arguments)
            else:
                run_script(script, given.arguments, sizes)
    except SystemExit as end:
        if end.code not in (None, 0):
            return _exit_status(end.code)
    except BrokenPipeError:  # the reader of the script's output went away
        raise
    except Exception as error:
        return _failed(given.script, error)
    finally:
        launches.close()
    return 1 if launches.wrong else 0


def _exit_status(code: object) -> int:
    """Of `sys.exit(code)`: a number, or words for standard error."""
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _failed(script: str, error: Exception) -> int:
    """Says what the script raised, as Python does, without the frames above it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((n for n, frame in enumerate(frames) if frame.filename == script), len(frames))
    if isinstance(error, Error):
        if first == len(frames):
            raise error
        last = next(frame for frame in reversed(frames) if frame.filename == script)
        print(f"{last.filename}:{last.lineno}: error: {error}", file=sys.stderr)
        return error.exit_code
    said = traceback.format_list(frames[first:])
    said = ["Traceback (most recent call last):\n", *said] if said else []
    print("".join([*said, *traceback.format_exception_only(error)]), end="", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tcir.triton",
        description="Runs a script of Triton or Gluon kernels on the simulated B200; its "
        "tensors are on the CPU.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--size", action="append", type=_size, default=[], metavar="OLD=NEW",
        help="NEW in place of each integer OLD of the script, but in kernels; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--autotune", choices=("first", "all", "modelled"), default="first",
        help="of an autotuner's configurations, take the first; the first, but execute all; the "
        "one with the least modelled time",
    )  # fmt: skip
    parser.add_argument(
        "--order-seed", type=_count, metavar="N", help="vary completion and warp order"
    )
    parser.add_argument(
        "--order-seeds", type=_count, default=0, metavar="N",
        help="execute each launch in N more orders, too: the results have to be the same",
    )  # fmt: skip
    parser.add_argument(
        "--numerics", choices=("exact", "fast"), default="exact", help="of the tensor cores"
    )
    parser.add_argument(
        "--jobs", type=_processes, default=1, metavar="N", help="processes for the CTAs of a grid"
    )
    parser.add_argument(
        "--trace", type=Path, metavar="FILE",
        help="write a trace of the first cluster of each launch, for ui.perfetto.dev",
    )  # fmt: skip
    parser.add_argument(
        "--max-findings", type=_count, default=5, metavar="N",
        help="findings of a launch that are printed",
    )  # fmt: skip
    parser.add_argument(
        "--warnings", action="store_true",
        help="print what the documents do not promise, but shipping kernels rely on, too",
    )  # fmt: skip
    parser.add_argument(
        "-m", dest="module", action="store_true", help="the script is a module, such as pytest"
    )
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected an integer of at least 0, got {text!r}")
    return int(text)


def _processes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text!r}")
    return int(text)


def _size(text: str) -> tuple[int, int]:
    old, equals, new = text.partition("=")
    if not (equals and old.isdecimal() and new.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected OLD=NEW, two integers, got {text!r}")
    return int(old), int(new)


if __name__ == "__main__":
    guard_streams()
    sys.exit(exit_status(main))

"""``python -m tcir.triton script.py``: a script of Triton or Gluon on the simulated machine."""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from pathlib import Path

from tcir.errors import Error, InputError, MissingDependencyError
from tcir.exit_status import exit_status

EPILOG = """
examples:
  python -m tcir.triton tutorial.py                       # its kernels, on the simulated B200
  python -m tcir.triton --order-seed 3 tutorial.py --n 64 # another order of warps and completions
  python -m tcir.triton --autotune all tutorial.py        # every configuration is executed

Exit status: the script's; 1 if it ends well and a result depends on timing; 2 where an instruction
has no rule. An illegal act of a kernel is an exception at the launch.
"""


def main(argv: list[str] | None = None) -> int:
    """The exit status."""
    given = _parser().parse_args(argv)
    if not given.script.is_file():
        raise InputError(f"{given.script}: expected the path of a Python script, got no such file")
    try:
        from triton.runtime import driver

        from tcir.triton.cuda import simulated
        from tcir.triton.driver import Launches, SimulatedDriver
    except ImportError as error:
        raise MissingDependencyError(
            f"python -m tcir.triton needs Triton and torch ({error}); install tcir[triton]"
        ) from None
    launches = Launches(given.order_seed, given.numerics, given.max_findings, given.warnings)
    driver.set_active(SimulatedDriver(launches, given.autotune))
    sys.argv = [str(given.script), *given.arguments]
    sys.path.insert(0, str(given.script.resolve().parent))
    try:
        with simulated(launches):
            runpy.run_path(str(given.script), run_name="__main__")
    except Exception as error:
        return _failed(given.script, error)
    finally:
        print(
            f"tcir: {launches.launches} launches executed in {launches.seconds:.1f} s, "
            f"{launches.wrong} with a result that depends on timing",
            file=sys.stderr,
        )
    return 1 if launches.wrong else 0


def _failed(script: Path, error: Exception) -> int:
    """Says what the script raised, as Python does, without the frames above it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((n for n, frame in enumerate(frames) if frame.filename == str(script)), 0)
    if isinstance(error, Error):
        last = next(frame for frame in reversed(frames) if frame.filename == frames[first].filename)
        print(f"{last.filename}:{last.lineno}: error: {error}", file=sys.stderr)
        return error.exit_code
    print("Traceback (most recent call last):", file=sys.stderr)
    said = [*traceback.format_list(frames[first:]), *traceback.format_exception_only(error)]
    print("".join(said), end="", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tcir.triton",
        description="Runs a script of Triton or Gluon kernels on the simulated B200; its "
        "tensors are on the CPU.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--autotune", choices=("first", "all"), default="first",
        help="of an autotuner's configurations, execute the first, or all (the first is taken)",
    )  # fmt: skip
    parser.add_argument("--order-seed", type=int, help="vary completion and warp order")
    parser.add_argument(
        "--numerics", choices=("exact", "fast"), default="exact", help="of the tensor cores"
    )
    parser.add_argument(
        "--max-findings", type=int, default=5, help="findings of a launch that are printed"
    )
    parser.add_argument(
        "--warnings", action="store_true",
        help="print what the documents do not promise, but shipping kernels rely on, too",
    )  # fmt: skip
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    return parser


if __name__ == "__main__":
    sys.exit(exit_status(main))

"""``python -m tcir.cute script.py``: runs a CuTe DSL script on the simulated machine."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

from tcir.doors.command import add_flags, failed, launches_of, status_of
from tcir.doors.script import run_named
from tcir.errors import IncompleteError, InputError, MissingDependencyError
from tcir.exit_status import exit_status
from tcir.files import signals_wait
from tcir.streams import guard_streams
from tcir.target import DEFAULT_TARGET

EPILOG = """
examples:
  python -m tcir.cute examples/cute_axpy.py              # its kernels, on the simulated B200
  python -m tcir.cute --order-seeds 3 script.py --n 64   # each launch in three more orders
  python -m tcir.cute -m pytest test_kernels.py -k small # a module that runs scripts

Exit status: the script's; if it succeeds, 1 if a kernel was illegal, or a result depends on timing
or on uninitialised memory; 2 if an instruction has no rule, or the host part needs a GPU; 3 for
what cannot be run.
"""


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    given = _parser().parse_args(argv)
    script = Path(given.script)
    if not given.module and not script.is_file():
        what = "a directory" if script.is_dir() else "no such file"
        raise InputError(f"{script}: expected the path of a Python script, got {what}")
    with tempfile.TemporaryDirectory() as folder:
        return _run(given, Path(folder))


def _run(given: argparse.Namespace, folder: Path) -> int:
    _settings(folder)
    try:
        with signals_wait():  # raised in an initialiser of compiled modules, they would abort
            from tcir.cute import host
            from tcir.cute.engine import Engine
            from tcir.cute.memory import DlpackMemory
    except ImportError as error:
        raise MissingDependencyError(
            f"python -m tcir.cute needs CuTe DSL ({error}); install tcir[cute]"
        ) from None
    launches = launches_of(given)
    engine: Engine | None = None

    def run() -> None:
        nonlocal engine
        memory = DlpackMemory(launches.memory)
        with host.simulated(launches, memory):
            engine = Engine(launches, memory, folder)
            run_named(given.script, given.module, given.arguments)

    def failure(error: Exception) -> int:
        return _failed(given.script, error, None if engine is None else engine.failed)

    return status_of(run, launches, failure)


def _settings(dumps: Path) -> None:
    """Sets the environment variables that CuTe DSL reads when it is imported.

    With these CuTe DSL compiles for sm_100a, with the script's lines, and leaves PTX in the folder
    `dumps`.
    """
    named = {"ARCH": DEFAULT_TARGET.name, "KEEP": "ptx", "DUMP_DIR": str(dumps), "LINEINFO": "1",
             "DISABLE_FILE_CACHING": "1"}  # fmt: skip
    for family in ("CUTE_DSL", "CUTE_EXPERIMENTAL_DSL"):  # the latter: of cute.experimental
        os.environ |= {f"{family}_{name}": value for name, value in named.items()}
    if os.environ.pop("CUTE_DSL_ENABLE_TVM_FFI", "0").lower() not in ("", "0", "false", "off"):
        given = os.environ.get("CUTE_DSL_COMPILER_OPT", "")  # there it needs no package of TVM
        os.environ["CUTE_DSL_COMPILER_OPT"] = f"{given} --enable-tvm-ffi".lstrip()
    warnings.filterwarnings("ignore", message="Cache is disabled as user wants to generate PTX")


def _failed(script: str, error: Exception, cause: Exception | None) -> int:
    """Prints why the script failed; returns the exit status.

    cause: the error that ended a launch, if CuTe DSL raised for it
    """
    origin = type(error).__module__.split(".")[0]
    if cause is not None and origin == "cutlass":
        return failed(script, cause.with_traceback(error.__traceback__))
    said = re.sub(r"\x1b\[\d+m", "", str(error)).strip()
    of_torch = origin == "torch" and said.startswith("CUDA error")
    if origin not in ("cutlass", "cuda") and not of_torch:
        return failed(script, error)
    if origin != "cutlass" or "cudaError" in said or "NVIDIA driver" in said:
        first = said.splitlines()[0] if said else type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)
        line = next((f.line for f in reversed(frames) if f.filename == script), "")
        why: Exception = IncompleteError(
            f"the host part needs a GPU here ({line}): {first}; CPU tensors and kernels work "
            "without one, calls of the CUDA driver do not"
        )
    else:
        why = InputError(said.removeprefix("error: "))
    return failed(script, why.with_traceback(error.__traceback__))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tcir.cute",
        description="Runs a script of CuTe DSL kernels on the simulated B200; its tensors are on "
        "the CPU.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_flags(parser)
    parser.add_argument(
        "-m", dest="module", action="store_true", help="the script is a module, such as pytest"
    )
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    return parser


if __name__ == "__main__":
    guard_streams()
    sys.exit(exit_status(main))

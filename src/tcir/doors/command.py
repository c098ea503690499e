"""Parts that the doors' commands (such as ``python -m tcir.triton``) share: flags, and the exit
status for the outcome of a script.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from tcir.commandline import check_on_gpu
from tcir.doors.device import CHIPS, SimulatedDevice
from tcir.doors.launches import Launches
from tcir.doors.sampling import Sampling
from tcir.errors import Error, InputError
from tcir.files import check_writable
from tcir.streams import kept_messages
from tcir.target import DEFAULT_TARGET, Target
from tcir.time.trace import check_perfetto
from tcir.version import Version


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags for launches, and --version."""
    parser.add_argument("--version", action=Version)
    parser.add_argument(
        "--order-seed", type=_count, metavar="N", help="vary completion and warp order"
    )
    parser.add_argument(
        "--order-seeds",
        type=_orders,
        default=0,
        metavar="N",
        help="also execute each launch in N more orders; the results must be the same",
    )
    parser.add_argument(
        "--numerics", choices=("exact", "fast"), default="exact", help="of the tensor cores"
    )
    parser.add_argument(
        "--jobs", type=_processes, default=1, metavar="N", help="processes for the CTAs of a grid"
    )
    parser.add_argument(
        "--sms",
        type=_processes,
        metavar="N",
        help="report N multiprocessors to programs, so that they launch fewer CTAs",
    )
    parser.add_argument(
        "--sample",
        type=_processes,
        metavar="N",
        help="execute only N clusters of each launch, at least 8: the first, the last, corners and "
        "edges of the grid, and others at random. The exit status is 1 after a finding, else 2",
    )
    parser.add_argument(
        "--gpu",
        action="store_true",
        help="launch on this computer's GPU; on an H100 or H200 the tensor core of sm_100a is "
        "emulated",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write a trace of the first cluster of each launch, for ui.perfetto.dev",
    )
    parser.add_argument(
        "--max-findings",
        type=_count,
        default=5,
        metavar="N",
        help="maximum number of causes printed for a launch; findings between the same lines are "
        "one cause",
    )
    parser.add_argument(
        "--warnings",
        action="store_true",
        help="also print findings about what the documents do not promise, but shipping kernels "
        "rely on",
    )


def add_target(parser: argparse.ArgumentParser) -> None:
    """Adds the flag --target."""
    parser.add_argument(
        "--target",
        choices=sorted(CHIPS),
        default=DEFAULT_TARGET.name,
        help="sm_90a: the device is an H100",
    )


def check_values(given: argparse.Namespace, *names: str) -> None:
    """Raises InputError for ``--jobs=--``, which argparse parses as no value at all."""
    for name in names:
        if getattr(given, name) == []:
            raise InputError(f"--{name.replace('_', '-')}: expected a value, got '--'")


def launches_of(given: argparse.Namespace, target: Target = DEFAULT_TARGET) -> Launches:
    """The `Launches` that the flags of `add_flags` select."""
    executed = ("order_seed", "order_seeds", "numerics", "jobs", "sample")
    check_values(given, *executed, "sms", "trace", "max_findings")
    if given.gpu:
        check_gpu(given)
    if given.trace is not None:
        check_perfetto()
        check_writable(given.trace)
    return Launches(
        given.order_seed, given.order_seeds, given.numerics, given.jobs,
        at_most=given.max_findings, warnings=given.warnings, trace=given.trace,
        messages=kept_messages(), device=SimulatedDevice(target, given.sms), gpu=given.gpu,
        sampling=Sampling(given.sample) if given.sample else None,
    )  # fmt: skip


def check_gpu(given: argparse.Namespace) -> None:
    """Raises InputError for a flag that applies only to the simulated machine, and NoDeviceError if
    there is no GPU.
    """
    from tcir.runtime.on_gpu import gpu

    parser = argparse.ArgumentParser()
    add_flags(parser)
    check_on_gpu(
        given, parser, ("order_seed", "order_seeds", "numerics", "jobs", "sample", "trace")
    )
    gpu()


def status_of(
    run: Callable[[], None], launches: Launches, failure: Callable[[Exception], int]
) -> int:
    """Runs a script and closes its launches. Returns the script's exit status or, if the script
    succeeds, that of the launches.

    failure: prints an exception of the script; returns the exit status
    """
    try:
        run()
    except SystemExit as end:
        if end.code not in (None, 0):
            return launches.ended(ended(end.code))
    except BrokenPipeError:  # the reader of the script's output went away
        raise
    except Exception as error:
        return launches.ended(failure(error))
    finally:
        launches.close()
    return launches.status


def ended(code: object) -> int:
    """Exit status that corresponds to `sys.exit(code)`. A code that is not an integer is printed to
    standard error, and the status is 1.
    """
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def failed(script: str, error: Exception) -> int:
    """Prints the script's exception as Python does; returns the exit status. The printed traceback
    omits the frames above the script and the frames of this package through which the script was
    called.
    """
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.name not in _CALLS_TORCH or not _is_ours(frame)
    ]
    within = len(frames)  # an error of our own keeps its frames
    while within and _is_ours(frames[within - 1]):
        within -= 1
    frames = [frame for frame in frames[:within] if not _is_ours(frame)] + frames[within:]
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


_CALLS_TORCH = ("__torch_function__", "call", "moved", "called")
"""Functions of this package through which a script calls torch's."""


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return Path(frame.filename).is_relative_to(Path(__file__).parents[1])


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected an integer of at least 0, got {text!r}")
    return int(text)


def _orders(text: str) -> int:
    if not text.isdecimal() or int(text) > 10_000:  # each is an execution of every launch
        raise argparse.ArgumentTypeError(f"expected an integer of 0 to 10000, got {text!r}")
    return int(text)


def _processes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text!r}")
    return int(text)

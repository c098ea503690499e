"""The command tc-run: dispatch, errors and exit statuses."""

from __future__ import annotations

import argparse
import io
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tcir.errors import Error
from tcir.files import write_atomic, write_json
from tcir.machine import REGISTRY, Assumptions
from tcir.machine.events import Recording
from tcir.machine.refusal import Refusal
from tcir.program.launch_file import LaunchFile
from tcir.ptxrun.arguments import check_flags, make_parser
from tcir.ptxrun.metadata import LaunchMetadata, launch_metadata
from tcir.ptxrun.program import bind, calls
from tcir.ptxrun.source import read_source
from tcir.ptxrun.tensor_descriptors import descriptor
from tcir.ptxrun.values import argument, array_of
from tcir.run import LaunchError, PtxSyntaxError, RunReport, entry_name, ptx_target, run_ptx
from tcir.runtime.bundle import BundledLaunch, write
from tcir.streams import OutputError
from tcir.target import DEFAULT_TARGET

PATIENCE = 60.0
"""Seconds after which a message about a long run is printed."""
Saves = list[tuple[str, np.ndarray]]
_GRAVITY = (0, 2, 1, 3, 4)
"""Exit statuses in order of severity; the status of several launches is the most severe one."""


@dataclass(frozen=True)
class PtxJob:
    """The launches that one call of tc-run executes, with their arguments, and the results to save
    afterwards.
    """

    ptx: str
    calls: list[BundledLaunch]
    saves: Saves
    workspaces: Sequence[np.ndarray] = ()


def main(words: Sequence[str]) -> int:
    """Runs tc-run with the given command line; returns the exit status."""
    file = "tc-run"
    try:
        options = make_parser().parse_args(words)
        check_flags(options)
        file = options.file or file
        if options.selftest:
            from tcir.runtime.selftest import main as selftest

            return selftest(Path(options.json or "selftest.json"))
        if options.list_assumptions:
            print(list_assumptions())
            return 0
        return _run(options)
    except PtxSyntaxError as error:
        print(f"{file}:{error}", file=sys.stderr)
        return 3
    except (BrokenPipeError, OutputError):
        raise
    except (LaunchError, Refusal) as error:
        print(f"tc-run: {error}", file=sys.stderr)
        return 3
    except OSError as error:
        if error.filename is None:  # of no file: standard output
            raise
        print(f"tc-run: {error.filename}: {error.strerror}", file=sys.stderr)
        return 3
    except Error as error:
        print(f"tc-run: {error}", file=sys.stderr)
        return error.exit_code
    except MemoryError as error:
        print(f"tc-run: out of memory: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("tc-run: interrupted", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    if options.bundle and options.pipeline:
        return _bundle_program(options)
    if options.bundle and Path(options.file).is_dir():
        return _bundle_folder(options)
    path, ptx = read_source(options.file, options.target or DEFAULT_TARGET.name)
    beside = None if options.grid or path is None else path.with_suffix(".json")
    file = LaunchFile.read(beside) if beside is not None and beside.exists() else None
    job = _plain(options, path, ptx) if file is None else _described(options, ptx, file)
    if options.bundle:
        return _bundle_ptx(options, job)
    recording = _recording(options, job)
    reports = _on_gpu(job) if options.gpu else _execute(options, job, recording)
    if recording is not None:
        _write_trace(options.trace, job.ptx, reports)
    for name, array in job.saves:
        contents = io.BytesIO()
        np.save(contents, array)
        write_atomic(name, contents.getvalue())
    if options.json:
        texts = [report.as_dict() for report in reports]
        whole = texts[0] if len(job.calls) == 1 else {"schema": 1, "launches": texts}
        write_json(options.json, whole)
    return max((report.exit_code for report in reports), key=_GRAVITY.index, default=0)


def _plain(options: argparse.Namespace, path: Path | None, ptx: str) -> PtxJob:
    """Job of one launch, with the sizes and arguments of the command line."""
    known = complete(options, path, ptx)
    if options.out:
        raise LaunchError(
            "--out: expected a launch file next to the PTX, which declares the results; "
            "--save N=FILE.npy saves an argument by its number"
        )
    args: list[Any] = []
    described = 0
    for text in options.arg:
        if text.startswith("desc="):
            args += _descriptor(text, described, known, args)
            described += 1
        else:
            args.append(argument(text, args))
    args += known.scratch_arguments(len(args), math.prod(options.grid))
    call = BundledLaunch(
        entry_name(ptx, options.entry), options.grid, options.block, options.cluster,
        options.dynamic_smem, args, options.programmatic or known.programmatic,
    )  # fmt: skip
    return PtxJob(ptx, [call], _saves(options.save, args))


def _descriptor(text: str, number: int, known: LaunchMetadata, earlier: list[Any]) -> list[Any]:
    """The parameters that `desc=ARRAY` expands to."""
    try:
        array = array_of(argument(text.removeprefix("desc="), earlier))
        return list(descriptor(array, number, known.descriptors))
    except LaunchError as error:
        raise LaunchError(f"--arg {text}: {error}") from None


def _described(options: argparse.Namespace, ptx: str, file: LaunchFile) -> PtxJob:
    """Job with the launches of a launch file."""
    for flag in ("block", "cluster", "dynamic_smem"):
        if getattr(options, flag) is not None:
            raise LaunchError(
                f"--{flag.replace('_', '-')}: the launch file sets it; give also --grid to run "
                "without the launch file"
            )
    args: list[Any] = []
    for text in options.arg:
        args.append(argument(text, args))
    values = bind(file, args)
    written = (v for v, a in zip(values, file.arguments, strict=True) if a.access != "read")
    results = [value for value in written if isinstance(value, np.ndarray)]
    if len(options.out) > len(results):
        raise LaunchError(f"--out: expected at most {len(results)} results, got {len(options.out)}")
    try:
        found, workspaces = calls(file, values)
    except Error:
        raise
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise LaunchError(f"launch file: {error}, see docs/reference/launch-file.md") from None
    titled = options.entry in [c.title for c, _ in found]  # one launch of a kernel, not all
    made = [
        BundledLaunch(c.name, c.grid, c.block, c.cluster, c.dynamic_smem, given, c.programmatic)
        for c, given in found
        if options.entry in (None, c.title if titled else c.name)
    ]
    if not made and (found or options.entry):
        names = ", ".join(c.title for c, _ in found) or "none (nothing is launched)"
        raise LaunchError(f"--entry: expected one of {names}, got {options.entry!r}")
    saves = [*_saves(options.save, values), *zip(options.out, results, strict=False)]
    return PtxJob(ptx, made, saves, workspaces)


def _saves(texts: Sequence[str], args: Sequence[object]) -> Saves:
    """File and array of each --save."""
    saves: Saves = []
    for text in texts:
        number, _, name = text.partition("=")
        if not (number.isdigit() and name and int(number) < len(args)):
            raise LaunchError(f"--save {text}: expected the number of an argument and a file")
        array = array_of(args[int(number)])
        if not isinstance(array, np.ndarray):
            raise LaunchError(f"--save {text}: argument {number} is not an array")
        saves.append((name, array))
    return saves


def _recording(options: argparse.Namespace, job: PtxJob) -> Recording | None:
    """Recording for the events of a trace; None without one. Raises an error before the run if the
    trace cannot be written."""
    if not options.trace:
        return None
    from tcir.time.constants import target_of
    from tcir.time.trace import check_perfetto

    check_perfetto()
    target_of(ptx_target(job.ptx))
    return Recording()


def _write_trace(path: str, ptx: str, reports: Sequence[RunReport]) -> None:
    """Writes the trace of launches that completed."""
    from tcir.time.trace import trace

    if any(report.errors or report.incomplete for report in reports):
        print(f"tc-run: --trace: {path} is not written: the run did not end", file=sys.stderr)
        return
    streams = [report.events for report in reports if report.events is not None]
    write_atomic(path, trace(streams, ptx_target(ptx)))


def _execute(
    options: argparse.Namespace, job: PtxJob, recording: Recording | None
) -> list[RunReport]:
    """Runs the launches in order, up to the first that is not ok, and prints their reports."""
    for flag in ("break_at", "interactive"):
        if getattr(options, flag) and len(job.calls) > 1:
            names = ", ".join(call.entry for call in job.calls)
            name = flag.replace("_", "-")
            raise LaunchError(f"--{name}: expected --entry with one of {names}")
    if not job.calls:
        print("no launch: all results are without elements")
    reports: list[RunReport] = []
    for number, call in enumerate(job.calls):
        if len(job.calls) > 1:
            print(f"launch {number + 1} of {len(job.calls)}: {call.entry}")
        report = _launch(options, job.ptx, call, recording)
        print(report.output, end="")
        print(report.text(options.max_findings))
        reports.append(report)
        if not report.ok:
            break
    return reports


def _on_gpu(job: PtxJob) -> list[RunReport]:
    """Runs the launches in order on a GPU and prints their times; there are no reports."""
    from tcir.emulation import EmulatedLaunch
    from tcir.runtime.cubin import triple
    from tcir.runtime.on_gpu import run_on_gpu

    for call in job.calls:
        grid, block, cluster = (triple(each) for each in (call.grid, call.block, call.cluster))
        sizes = EmulatedLaunch(grid, block, cluster, call.dynamic_smem)
        print(f"{call.entry}: {run_on_gpu(job.ptx, call.entry, sizes, call.args)}")
    return []


def _launch(
    options: argparse.Namespace, ptx: str, call: BundledLaunch, recording: Recording | None
) -> RunReport:
    launch: dict[str, Any] = {
        "entry": call.entry,
        "ctas_per_sm": options.ctas_per_sm,
        "again": options.again,
        "args": call.args,
        "hazards": options.hazards,
        "order_seed": options.seed,
        "numerics": options.numerics,
        "max_instructions": options.max_instructions,
        "ordering": options.ordering,
        "assumptions": Assumptions.parse(options.assume),
        **call.sizes(),
    }
    if options.counters:
        return _count(ptx, launch)
    if not (options.break_at or options.interactive):
        with patience(options.max_instructions):
            return run_ptx(
                ptx,
                **launch,
                lockstep=not options.no_lockstep,
                jobs=options.jobs,
                progress=progress(),
                events=recording,
            )
    from tcir import debug
    from tcir.debug.command import break_at

    if options.interactive:
        stop = debug.interact(ptx, **launch)
        print(stop.where_text())
        return stop.report
    stop = debug.run(ptx, break_at=break_at(options.break_at), **launch)
    print(f"{stop.where_text()}\n{stop.dump(options.dump)}")
    return stop.report


def _bundle_program(options: argparse.Namespace) -> int:
    from tcir.codegen.debug_paths import parse_prefixes
    from tcir.ptxrun.program_bundle import write_program

    write_program(
        options.bundle,
        options.file,
        options.pipeline,
        seed=options.input_seed or 0,
        target=options.target or DEFAULT_TARGET.name,
        emulate=options.emulate,
        debug_prefix_map=parse_prefixes(options.debug_prefix_map),
    )
    print(f"{options.bundle}: python run.py")
    return 0


def _bundle_folder(options: argparse.Namespace) -> int:
    from tcir.ptxrun.kit import write_kit

    count = write_kit(
        options.bundle,
        Path(options.file),
        seed=options.input_seed or 0,
        target=options.target or DEFAULT_TARGET.name,
        emulate=options.emulate,
    )
    print(f"{options.bundle}: {count} bundles; python run.py")
    return 0


def _bundle_ptx(options: argparse.Namespace, job: PtxJob) -> int:
    origin = {"program": Path(options.file).name, "arguments": options.arg}
    target = options.target or DEFAULT_TARGET.name
    write(
        options.bundle, job.ptx, job.calls,
        workspaces=job.workspaces, target=target, emulate=options.emulate, origin=origin,
    )  # fmt: skip
    print(f"{options.bundle}: python run.py")
    return 0


def _count(ptx: str, launch: dict[str, Any]) -> RunReport:
    """Runs a launch, counts bank conflicts, and prints the table of counters."""
    from tcir.debug.banks import BankConflicts
    from tcir.debug.counting import table

    banks = BankConflicts()
    report = run_ptx(ptx, **launch, observer=banks, progress=progress())
    print(table(report, banks))
    return report


@contextmanager
def patience(limit: int) -> Iterator[None]:
    """Context that prints a note if the run takes longer than `PATIENCE` seconds; the note also
    states the limit at which an endless loop is stopped.
    """
    text = f"tc-run: still running; an endless loop is stopped after {limit} instructions"
    timer = threading.Timer(PATIENCE, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def list_assumptions() -> str:
    """The assumptions about the hardware as text: question, assumed answer, alternatives,
    evidence.
    """
    return "\n".join(
        f"{a.name}: {a.question}\n"
        f"    assumed   {a.default} (out of {', '.join(map(str, a.alternatives))})\n"
        f"    evidence  {a.evidence}\n"
        f"    used by   {a.used_by}"
        for a in REGISTRY
    )


def progress() -> Callable[[int, int], None] | None:
    """Returns a function that shows the progress in one line of standard error, at most five times
    a second; None if standard error is not a terminal.
    """
    if not sys.stderr.isatty():
        return None
    last = 0.0

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total:
            sys.stderr.write("\r\x1b[K")
        elif now - last > 0.2:
            last = now
            sys.stderr.write(f"\r{done} of {total} CTAs")
            sys.stderr.flush()

    return show


def complete(options: argparse.Namespace, path: Path | None, ptx: str) -> LaunchMetadata:
    """Determines sizes that the command line does not give. Raises LaunchError, PtxSyntaxError."""
    known = launch_metadata(path, ptx, options.entry)
    taken = []
    for name in ("entry", "grid", "block", "cluster", "dynamic_smem"):
        value = getattr(known, name)
        if getattr(options, name) is None and value is not None:
            setattr(options, name, value)
            taken.append(name)
    if options.dynamic_smem is None and known.unknown:
        raise LaunchError(
            f"expected --dynamic-smem: {known.sources[0]} does not state {known.unknown}"
        )
    missing = [f"--{name}" for name in ("grid", "block") if not getattr(options, name)]
    if missing:
        raise LaunchError(
            f"expected {' and '.join(missing)}: no file next to the PTX and no directive states it"
        )
    if taken:
        print(f"launch from {known}", file=sys.stderr)
    options.cluster = options.cluster or (1, 1, 1)
    options.dynamic_smem = options.dynamic_smem or 0
    return known

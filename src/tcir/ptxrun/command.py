"""The command tc-run: dispatch, errors and exit statuses."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tcir.errors import Error
from tcir.machine import REGISTRY, Assumptions
from tcir.machine.refusal import Refusal
from tcir.ptxrun.arguments import make_parser
from tcir.ptxrun.metadata import LaunchMetadata, launch_metadata
from tcir.ptxrun.values import argument, array_of
from tcir.run import LaunchError, PtxSyntaxError, RunReport, entry_name, run_ptx

Saves = list[tuple[str, np.ndarray[Any, Any]]]


def main(words: Sequence[str]) -> int:
    """Runs tc-run with the given command line; returns the exit status."""
    try:
        options = make_parser().parse_args(words)
    except LaunchError as error:
        print(f"tc-run: {error}", file=sys.stderr)
        return 3
    if options.selftest:
        from tcir.runtime.selftest import main as selftest

        return selftest()
    if options.list_assumptions:
        print(list_assumptions())
        return 0
    try:
        return _run(options)
    except PtxSyntaxError as error:
        print(f"{options.file}:{error}", file=sys.stderr)
        return 3
    except BrokenPipeError:
        raise
    except (LaunchError, Refusal, OSError, UnicodeDecodeError) as error:
        print(f"tc-run: {error}", file=sys.stderr)
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
    if not options.file:
        raise LaunchError("expected a file")
    if options.bundle and options.pipeline:
        return _bundle_program(options)
    path = None if options.file == "-" else Path(options.file)
    ptx = path.read_text() if path else sys.stdin.read()
    known = complete(options, path, ptx)
    args: list[Any] = []
    for text in options.arg:
        args.append(argument(text, args))
    args += known.scratch_arguments(len(args), math.prod(options.grid))
    saves = _saves(options.save, args)
    if options.bundle:
        return _bundle_ptx(options, ptx, args)
    report = _execute(options, ptx, args)
    for name, array in saves:
        np.save(name, array)
    if options.json:
        Path(options.json).write_text(json.dumps(report.as_dict(), indent=2) + "\n")
    print(report.output, end="")
    print(report.text(options.max_findings))
    return report.exit_code


def _saves(texts: Sequence[str], args: Sequence[Any]) -> Saves:
    """The file and the argument's array of each --save."""
    saves: Saves = []
    for text in texts:
        number, _, name = text.partition("=")
        if not (number.isdigit() and name and int(number) < len(args)):
            raise LaunchError(f"--save {text}: expected the number of an argument and a file")
        array = array_of(args[int(number)])
        if not isinstance(array, np.ndarray):
            raise LaunchError(f"--save {text}: argument {number} is no array")
        saves.append((name, array))
    return saves


def _execute(options: argparse.Namespace, ptx: str, args: list[Any]) -> RunReport:
    launch: dict[str, Any] = {
        "entry": options.entry,
        "grid": options.grid,
        "block": options.block,
        "cluster": options.cluster,
        "ctas_per_sm": options.ctas_per_sm,
        "programmatic": options.programmatic,
        "dynamic_smem": options.dynamic_smem,
        "args": args,
        "hazards": options.hazards,
        "order_seed": options.seed,
        "numerics": options.numerics,
        "max_instructions": options.max_instructions,
        "ordering": options.ordering,
        "assumptions": Assumptions.parse(options.assume),
    }
    if not options.break_at:
        return run_ptx(ptx, **launch, lockstep=not options.no_lockstep, progress=progress())
    from tcir import debug
    from tcir.debug.command import break_at

    stop = debug.run(ptx, break_at=break_at(options.break_at), **launch)
    print(f"{stop.where_text()}\n{stop.dump(options.dump)}")
    return stop.report


def _bundle_program(options: argparse.Namespace) -> int:
    from tcir.ptxrun.program_bundle import write_program

    write_program(
        options.bundle,
        options.file,
        options.pipeline,
        seed=options.input_seed,
        target=options.target,
    )
    print(f"{options.bundle}: python run.py")
    return 0


def _bundle_ptx(options: argparse.Namespace, ptx: str, args: list[Any]) -> int:
    from tcir.runtime.bundle import Call, write

    call = Call(
        entry_name(ptx, options.entry),
        options.grid,
        options.block,
        options.cluster,
        options.dynamic_smem,
        args,
    )
    origin = {"program": Path(options.file).name, "arguments": options.arg}
    write(options.bundle, ptx, [call], target=options.target, origin=origin)
    print(f"{options.bundle}: python run.py")
    return 0


def list_assumptions() -> str:
    """The registry as text: question, assumed answer, alternatives, evidence."""
    return "\n".join(
        f"{a.name}: {a.question}\n"
        f"    assumed   {a.default} (out of {', '.join(map(str, a.alternatives))})\n"
        f"    evidence  {a.evidence}\n"
        f"    used by   {a.used_by}"
        for a in REGISTRY
    )


def progress() -> Callable[[int, int], None] | None:
    """Rewrites one line of a terminal's standard error, at most five times a second."""
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
    """Fills in sizes missing from the command line. Raises LaunchError, PtxSyntaxError."""
    known = launch_metadata(path, ptx, options.entry)
    taken = []
    for name in ("entry", "grid", "block", "cluster", "dynamic_smem"):
        value = getattr(known, name)
        if getattr(options, name) is None and value is not None:
            setattr(options, name, value)
            taken.append(name)
    if options.dynamic_smem is None and known.unknown:
        raise LaunchError(
            f"expected --dynamic-smem: {known.sources[0]} does not say {known.unknown}"
        )
    if not (options.grid and options.block):
        raise LaunchError("expected --grid and --block: no file next to the PTX gives them")
    if taken:
        print(f"launch from {known}", file=sys.stderr)
    options.cluster = options.cluster or (1, 1, 1)
    options.dynamic_smem = options.dynamic_smem or 0
    return known

"""The flags of tc-bench."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tcir.commandline import Parser
from tcir.errors import InputError
from tcir.files import check_writable
from tcir.target import DEFAULT_TARGET, TARGETS

_EPILOG = """\
Times are modelled, not measured: docs/reference/tc-bench.md says how.

examples:
  tc-bench compare examples/matmul.mlir
  tc-bench sweep examples/matmul.mlir --pipeline=gemm --over 'n-tile=32,64 stages=2..3' \\
           --validate=1 --results rows.jsonl --csv rows.csv --plot rows.svg
  tc-bench validate examples/tf32_one_tile.mlir examples/matmul.mlir --pipeline=gemm --jobs=2

exit status:
  0  everything requested passed; combinations that are not legal are rows
  1  a validated program has a different result, or a hazard
  2  incomplete: a combination or a file failed, or could not be validated
  3  bad input: file, pipeline, option, value; or no combination is legal
  4  internal error
"""


def _count(text: str) -> int:
    if not text.isdigit() or len(text) > 6:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 999999, got {text!r}")
    return int(text)


def make_parser() -> argparse.ArgumentParser:
    """Parser of all flags of tc-bench."""
    top = Parser(
        prog="tc-bench",
        description="Compiles a program with many schedules, and compares their modelled times; "
        "validates many programs.",
        epilog=_EPILOG,
    )
    top.add_general()
    ways = top.add_subparsers(dest="way", required=True, metavar="{compare,sweep,validate}")

    def way(name: str, text: str) -> argparse.ArgumentParser:
        return ways.add_parser(name, help=text, description=text, epilog=_EPILOG)

    _compare(way("compare", "every schedule that accepts the program, in one table"))
    _sweep(way("sweep", "every combination of values of a pipeline's options"))
    _validate(way("validate", "many modules, each executed after every pass, in one table"))
    return top


def _compare(way: argparse.ArgumentParser) -> None:
    program = _program(way)
    program.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    _fastest(way)
    _results(way)
    _work(way)


def _sweep(way: argparse.ArgumentParser) -> None:
    program = _program(way)
    program.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    add = way.add_argument_group("schedules").add_argument
    add(
        "--pipeline",
        required=True,
        metavar="NAME{options}",
        help="the pipeline, with options that stay (tc-opt --list-pipelines)",
    )
    add(
        "--over",
        required=True,
        metavar="'NAME=VALUES …'",
        help="options that vary: 64,128 or 2..6 or 16..256:16",
    )
    _fastest(way)
    results = _results(way)
    results.add_argument(
        "--plot", metavar="FILE.svg", help="a picture: a cell for each combination"
    )
    _work(way)


def _validate(way: argparse.ArgumentParser) -> None:
    program = _program(way)
    program.add_argument("files", nargs="+", metavar="FILE", help="MLIR text; - is standard input")
    program.add_argument(
        "--pipeline",
        required=True,
        metavar="NAME{options}",
        help="what they go through (tc-opt --list-pipelines)",
    )
    add = way.add_argument_group("execution after every pass").add_argument
    add("--inputs", choices=["integers", "random"], default="integers", help="kind of inputs")
    add("--seed", type=_count, default=0, help="of inputs and completion orders (default 0)")
    add("--orders", type=_count, default=1, metavar="N", help="completion orders (default 1)")
    _results(way)
    _work(way)


def _program(way: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = way.add_argument_group("program")
    add = group.add_argument
    add("--entry", metavar="NAME", help="the program, where a module has several public functions")
    add(
        "--target",
        default=DEFAULT_TARGET.name,
        metavar="{" + ",".join(TARGETS) + "}",
        help="architecture (default %(default)s)",
    )
    return group


def _fastest(way: argparse.ArgumentParser) -> None:
    add = way.add_argument_group("execution after every pass").add_argument
    add("--validate", type=_count, default=0, metavar="K",
        help="execute the K fastest after every pass (default 0)")  # fmt: skip


def _results(way: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = way.add_argument_group("results")
    add = group.add_argument
    add(
        "--results",
        metavar="FILE.jsonl",
        help="add a line per row as it completes; rows in the file are not redone",
    )
    add(
        "--json",
        metavar="FILE",
        help="the table as JSON, in the order of the combinations, or files",
    )
    add("--csv", metavar="FILE", help="the same as CSV")
    return group


def _work(way: argparse.ArgumentParser) -> None:
    add = way.add_argument_group("processes").add_argument
    add("--jobs", type=_count, metavar="N", help="processes (default: one for each core)")
    add(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help="use the workers of a dask cluster (pip install 'tcir[cluster]')",
    )
    add(
        "--no-cache",
        action="store_true",
        help="redo everything, and store nothing in TCIR_CACHE_DIR",
    )


def check_flags(options: argparse.Namespace) -> None:
    """Raises InputError for flags that exclude each other, and for output files that cannot be
    written.
    """
    if options.jobs is not None and options.scheduler is not None:
        raise InputError("expected one of --jobs, processes here, and --scheduler, got both")
    if options.jobs == 0:
        raise InputError("--jobs: expected at least 1, got 0")
    if options.jobs is None:
        options.jobs = len(os.sched_getaffinity(0))
    if options.target not in TARGETS:
        raise InputError(f"--target: expected one of {', '.join(TARGETS)}, got '{options.target}'")
    plot = getattr(options, "plot", None)
    if plot is not None and Path(plot).suffix != ".svg":
        raise InputError(f"--plot {plot}: expected a name that ends in .svg")
    given = {f"--{name}": getattr(options, name) for name in ("results", "json", "csv")}
    places: dict[str, str] = {}
    for flag, path in [*given.items(), ("--plot", plot)]:
        if path is None:
            continue
        check_writable(path)
        same = os.path.realpath(path)
        if same in places:
            raise InputError(
                f"{flag} {path}: expected a file of its own, got the file of {places[same]}"
            )
        places[same] = flag

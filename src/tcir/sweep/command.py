"""The command tc-bench: subcommands, progress display, output files, exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tcir.cache import NO_STORE, user_store, versions
from tcir.cache.tuned import Tuned, tuned_key
from tcir.errors import InputError
from tcir.files import write_atomic
from tcir.program.source import load_text, mlir_context, read_text
from tcir.streams import write_output
from tcir.sweep import table, verdicts
from tcir.sweep.arguments import check_flags, make_parser
from tcir.sweep.cluster import DaskCluster
from tcir.sweep.engine import Sweep, fastest, legal
from tcir.sweep.executor import JobExecutor
from tcir.sweep.local import LocalProcesses
from tcir.sweep.results import results_in
from tcir.sweep.schedules import schedules
from tcir.sweep.space import Combination, combinations
from tcir.sweep.validation import SweepValidation
from tcir.sweep.work import SweepProgram, SweepRow
from tcir.validation.settings import Settings

SHOWN = 20
"""Maximum number of rows of a sweep that are printed; files contain all of them."""


def main(words: Sequence[str]) -> int:
    """Runs tc-bench with the given command line; returns the exit status."""
    options = make_parser().parse_args(words)
    check_flags(options)
    if options.way == "validate":
        return validate(options)
    compares = options.way == "compare"
    store = NO_STORE if options.no_cache else user_store()
    every = schedules() if compares else combinations(options.pipeline, options.over)
    program, tuned = _program(options)
    sweep = Sweep(program, every, _executor(options), options.validate)
    with results_in(options.results, store) as results:
        rows = sweep.run(results, _tell)
    best = fastest(every, rows)
    if best is not None and tuned is not None:
        known = Tuned.find(store, tuned)
        swept = [dict(each.options) for each in every]
        if known is None or known.options in swept or best.microseconds < known.microseconds:
            best.keep(store, tuned)  # else an earlier sweep, of others, found a faster one
    _write(options, sweep, rows)
    write_output(f"{table.text(rows, None if compares else SHOWN)}\n".encode())
    return _status(rows)


def validate(options: argparse.Namespace) -> int:
    """Runs tc-bench validate; returns the exit status."""
    settings = Settings(options.seed, options.inputs, options.orders)
    pipeline = Combination.parse(options.pipeline)
    store = NO_STORE if options.no_cache else user_store()
    modules = [_module(file, options) for file in options.files]
    validation = SweepValidation(modules, pipeline, settings, _executor(options))
    with results_in(options.results, store) as results:
        rows = validation.run(results, _tell)
    if options.csv is not None:
        write_atomic(options.csv, verdicts.as_csv(rows))
    if options.json is not None:
        write_atomic(options.json, verdicts.as_json(validation, options.target, rows))
    write_output(f"{verdicts.text(rows)}\n".encode(errors="replace"))
    return verdicts.status(rows)


def _module(file: str, options: argparse.Namespace) -> SweepProgram | SweepRow:
    try:
        text, name = read_text(file)
    except InputError as error:
        return SweepRow(file, "not legal", str(error))
    return SweepProgram(text, name, options.entry, options.target, versions())


def _executor(options: argparse.Namespace) -> JobExecutor:
    if options.scheduler is not None:
        return DaskCluster(options.scheduler)
    return LocalProcesses(options.jobs)


def _program(options: argparse.Namespace) -> tuple[SweepProgram, str | None]:
    """The program, and the key under which a sweep's choice is kept (None for `compare`).

    The program is read once, so that an error in it is reported here and not by each worker.
    """
    text, name = read_text(options.file)
    program = SweepProgram(text, name, options.entry, options.target, versions())
    with mlir_context() as context:
        module = load_text(text, name, context, options.entry)
        if options.way == "compare":
            return program, None
        return program, tuned_key(
            module, Combination.parse(options.pipeline).canonical(), options.target
        )


def _tell(done: int, total: int, row: SweepRow) -> None:
    words = row.verdict or row.status
    if row.status == "ok" and not row.verdict and row.microseconds is not None:
        words = f"{row.microseconds:.2f} us"
    elif row.message:
        words += f": {row.message.splitlines()[0]}"
    print(f"{done:>6}/{total}  {row.combination}  {words}", file=sys.stderr, flush=True)


def _write(options: argparse.Namespace, sweep: Sweep, rows: Sequence[SweepRow]) -> None:
    if options.csv is not None:
        write_atomic(options.csv, table.as_csv(rows))
    if options.json is not None:
        write_atomic(options.json, table.as_json(sweep.program, rows))
    if getattr(options, "plot", None) is not None:
        from tcir.sweep.plot import picture
        from tcir.viz.svg import svg

        drawn = picture(sweep.program.name, sweep.combinations, rows)
        write_atomic(options.plot, svg(drawn).encode())


def _status(rows: Sequence[SweepRow]) -> int:
    verdicts = {row.verdict for row in rows}
    if "different" in verdicts:
        return 1
    if any(row.status == "failed" for row in rows) or verdicts - {"", "held"}:
        return 2
    return 0 if legal(rows) else InputError.exit_code

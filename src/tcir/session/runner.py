"""Running a pipeline pass by pass: each is timed, verified, and executed when asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tcir.errors import PassError
from tcir.passmanager.pipeline import Pass, Pipeline
from tcir.program.source import count_ops
from tcir.validation.report import Line, Report

if TYPE_CHECKING:
    from tcir.validation.validator import Validator

Hook = Callable[[int, Pass, Any], None]


def run_pipeline(
    module: Any,
    pipeline: Pipeline,
    report: Report,
    validator: Validator | None = None,
    *,
    on_line: Callable[[Line], None] | None = None,
    before: Hook | None = None,
    after: Hook | None = None,
    verify_each: bool = True,
) -> None:
    """Runs `pipeline` over `module` in place and adds a line per pass to `report`.

    `before` and `after` are called around each pass with its position (from 1), the pass and the
    module. All passes run, also when one before was different, so that the code can be looked at;
    only execution stops there.
    """
    tell = on_line or (lambda line: None)
    executing = validator is not None
    if validator is not None:
        settings = validator.settings
        report.seed, report.inputs = settings.seed, settings.inputs
        report.orders, report.numerics = settings.orders, settings.numerics
        line = validator.start(module)
        assert validator.signature is not None
        report.program = validator.signature.name
        line.ops = count_ops(module)
        report.passes.append(line)
        tell(line)
        executing = line.verdict == "reference"
    for position, item in enumerate(pipeline, start=1):
        if before is not None:
            before(position, item, module)
        started = time.perf_counter()
        item.apply(module)
        if verify_each:
            verify(module, item.name)
        line = Line(position, item.name, pass_seconds=time.perf_counter() - started)
        line.ops = count_ops(module)
        if after is not None:
            after(position, item, module)
        if validator is None:
            line.verdict = "-"
        elif executing:
            validator.check(module, line)
            executing = line.verdict != "different"
        report.passes.append(line)
        tell(line)


def verify(module: Any, pass_name: str) -> None:
    """Raises `PassError` naming the pass when the module is not valid."""
    try:
        valid = module.operation.verify()
        why = ""
    except Exception as error:
        if type(error).__name__ != "MLIRError":
            raise
        valid, why = False, f": {error}"
    if not valid:
        raise PassError(f"pass '{pass_name}' left invalid IR{why}", None, pass_name)

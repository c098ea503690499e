"""Executes one job: compiles a combination, models its time and counts its SASS instructions, or
validates it.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from tcir.cache import versions
from tcir.errors import Error, InputError, MissingDependencyError
from tcir.exit_status import explain
from tcir.machine.errors import MachineError
from tcir.modelled import modelled
from tcir.passmanager.pipeline import named_pipeline
from tcir.program.signature import signature_of
from tcir.program.source import mlir_context, read_module
from tcir.session.session import Session
from tcir.sweep.space import Combination
from tcir.validation.report import Report
from tcir.validation.settings import Settings

if TYPE_CHECKING:
    from tcir._mlir import ir

_ONE_AT_A_TIME = threading.Lock()
"""Lock of the compiler, since workers of a cluster may have several threads."""
_OPCODE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][A-Z0-9_]*)", re.MULTILINE)
_MMA = ("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA", "HMMA", "QMMA", "IMMA", "OMMA")
"""SASS instructions that multiply matrices: tcgen05.mma, then mma.sync."""


Kind = Literal["measure", "validate", "report"]
"""Kind of a job: determine the time of a combination, its verdict, or its whole report."""


@dataclass(frozen=True)
class SweepProgram:
    """The program to compile: MLIR text with the name of its file, the name of the public function,
    and the target.

    versions: versions of the tools that compile it. Workers with other versions are rejected,
              because their results could differ
    """

    text: str
    name: str
    entry: str | None
    target: str
    versions: str


@dataclass(frozen=True)
class Job:
    """One job: a combination of options, and a program.

    key:      hash of program, passes and versions
    program:  number of the program
    name:     name of the row; "": the text of the combination
    settings: settings of a validation
    """

    key: str
    kind: Kind
    combination: Combination
    program: int = 0
    name: str = ""
    settings: Settings = field(default_factory=Settings)

    def __str__(self) -> str:
        return self.name or str(self.combination)


@dataclass(frozen=True)
class SweepRow:
    """The result row of one combination.

    status:       "ok"; "not legal": a pass rejected it; "failed": anything else went wrong
    message:      message of a rejection or failure
    microseconds: modelled time
    bound:        bottleneck of the modelled time
    bytes:        bytes that all CTAs move between global memory and the SMs
    registers, spill_bytes: maxima over the kernels, from ptxas
    shared_bytes, tmem_columns: shared memory and tensor memory of a CTA
    sass_per_mma: number of SASS instructions per instruction that multiplies matrices; None if
                  there is no such instruction
    verdict:      verdict of the validation; "" if there was none
    report:       the whole report of the validation, as JSON text
    """

    combination: str
    status: Literal["ok", "not legal", "failed"] = "ok"
    message: str = ""
    microseconds: float | None = None
    bound: str = ""
    bytes: int | None = None
    launches: int = 0
    ctas: int = 0
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    tmem_columns: int | None = None
    sass_per_mma: float | None = None
    verdict: str = ""
    report: str = ""

    @staticmethod
    def of(name: str, report: Report, whole: str = "") -> SweepRow:
        """Returns the row of a validation.

        whole: the report as JSON text, if it is to be kept
        """
        message = ""
        if not report.ok:
            failure = report.first_failure()
            noted = failure.findings if failure is not None else []
            words = (f"{each['severity']} {each['code']}: {each['text']}" for each in noted)
            message = "\n".join([report.summary(), *words])
        return SweepRow(name, message=message, verdict=report.verdict, report=whole)

    def as_dict(self) -> dict[str, object]:
        """The fields as a JSON-ready dict."""
        return asdict(self)

    def validated(self, other: SweepRow) -> SweepRow:
        """Returns this row with the verdict of another row (its status, if it has no verdict) and
        with that row's message.
        """
        return replace(self, verdict=other.verdict or other.status, message=other.message)


def work(program: SweepProgram, job: Job) -> SweepRow:
    """Executes a job and returns its row; a failure also becomes a row."""
    name = str(job)
    if program.versions != versions():
        return SweepRow(
            name, "failed", f"expected a worker with {program.versions}, got {versions()}"
        )
    try:
        with _ONE_AT_A_TIME:
            return (_measured if job.kind == "measure" else _validated)(program, job)
    except (MachineError, MissingDependencyError) as error:
        return SweepRow(name, "failed", str(error))
    except InputError as error:
        return SweepRow(name, "not legal", str(error))
    except Error as error:
        return SweepRow(name, "failed", str(error))
    except Exception as error:
        return SweepRow(name, "failed", explain(error)[0])


def _session(
    program: SweepProgram, context: ir.Context, job: Job, settings: Settings | None
) -> Session:
    passes = named_pipeline(str(job.combination))
    module = read_module(program.text, program.name, context, program.entry)
    return Session(module, passes, target=program.target, settings=settings)


def _measured(program: SweepProgram, job: Job) -> SweepRow:
    with mlir_context() as context:
        session = _session(program, context, job, None)
        signature = signature_of(session.module)
        session.run_passes()
        code = session.generate("sass")
    launches = code.launches.launches
    counted = session.report.code or {}
    registers = counted.get("registers", 0)
    time = modelled(code.ptx, code.launches, signature, program.target, registers=registers)
    return SweepRow(
        str(job),
        microseconds=round(time.microseconds, 3),
        bound=time.bound,
        bytes=time.moved,
        launches=len(launches),
        ctas=sum(x * y * z for x, y, z in (launch.grid for launch in launches)),
        registers=registers,
        spill_bytes=counted.get("spill_bytes"),
        shared_bytes=counted.get("shared_bytes"),
        tmem_columns=counted.get("tmem_columns"),
        sass_per_mma=sass_per_mma(code.sass),
    )


def sass_per_mma(sass: str) -> float | None:
    """Number of SASS instructions in the text per instruction that multiplies matrices; None if
    there is no such instruction.
    """
    opcodes = _OPCODE.findall(sass)
    multiplying = sum(opcode in _MMA for opcode in opcodes)
    return round(len(opcodes) / multiplying, 1) if multiplying else None


def _validated(program: SweepProgram, job: Job) -> SweepRow:
    with mlir_context() as context:
        session = _session(program, context, job, job.settings)
        report = session.report
        try:
            session.run_passes()
            if report.verdict == "held" and session.lowered():
                session.generate("ptx")
        except Exception:
            # What a later pass says of a program that a pass before it broke is no verdict.
            if report.verdict != "different":
                raise
    return SweepRow.of(
        str(job), report, json.dumps(report.as_dict()) if job.kind == "report" else ""
    )

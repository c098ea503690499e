"""The report of a validation: one line per pass that changed the program, and the same data as
JSON.

JSON (`SCHEMA`), all times in seconds:

schema      "tcir.report/1"
program     name of the function; pipeline: its textual form; target: "sm_100a" …
seed, inputs, orders, numerics, ordering, assumptions, max_instructions
            how the program was executed: seed of the inputs; "integers" or "random"; number of
            completion orders per asynchronous level; "exact" or "fast"; "silicon" or "isa"; the
            assumptions that differ from the default, by name; the limit of one execution. All are
            null without validation; max_instructions is also null if the limit is in proportion to
            the level before
budget      seconds beyond which only a sample of the CTAs is executed, or null
coverage    null, or the kinds of input that were executed: executed ("full range", "special
            values"), small_numbers (the reason why a kind was left out, or null); strict: whether a
            kind that was left out counts as a failure
estimate    null, or estimated seconds and bytes for executing all states
verdict     "held": all passes passed; "sampled": they passed in the CTAs that were executed;
            "small numbers": with `strict`, they passed, but on small numbers only; "different";
            "incomplete"; "not executed": without validation; "error": a pass rejected the program,
            or failed. exit_code: 0, 1, 2, 3 or 4; error: the error message, else null
passes      a list with, for each pass: index, name, ops (number of operations after it),
            pass_seconds, execute_seconds, level ("tensor", "tile", "thread", "ptx", "" when not
            executed), verdict ("reference", "equal", "within bound", "sampled", "different",
            "incomplete", "not executed", "-" for steps that are counted and not run), compared
            (words that describe the comparison), max_error, max_error_over_bound and
            rms_error_over_bound (numbers or null), difference (null, or output, index, site,
            expected, got, count, total), findings (severity, code, text), sites (number and text of
            each line of the program, as --emit=pretty prints it, that findings or the difference
            name), incomplete (names of ops without a rule), counters (of the simulated machine, by
            name; instructions, loop_turns at the tile level, ctas), remarks (words about costs that
            the pass increased), orders (number of completion orders tried), drawn and drawn_of
            (number of CTAs that drew an order of their own, and of all CTAs), left (kinds of
            launch, or the state, that were not executed because of the budget)
unchanged   a list with index, name and pass_seconds of each pass that left the program as it was.
            That program was executed before, so the pass has no line
notes       words that name sources of a kernel other than this compilation
code        null, or registers, spill_bytes, shared_bytes, tmem_columns, constant_bytes (if any),
            ptx_lines, global_stores (for each st.global of the PTX that was executed, in the first
            cluster: kernel, line, requests, bytes per lane, sectors per request, least: number of
            sectors that the bytes fill), sass (counts by mnemonic), missing (why a step of code
            generation was not done)
roofline    null (a program below tensors), or data of a model, never measured: flops (by kind),
            hbm_bytes (of inputs, constants and results, each once), moved_bytes (by the program's
            launches), flop_per_byte, limits_us (by resource: the least time of the program), bound
            (the resource whose time is longest), executed_limits_us (limits of the kernels as
            executed, or {}), modelled_us and limited_by (of the launches, by the event-driven
            model, or null), share (fraction that the bound is of the modelled time or, without one,
            of the longest executed limit; or null)
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcir.errors import VerdictError
from tcir.files import write_atomic
from tcir.program.state import SITES
from tcir.target import DEFAULT_TARGET

if TYPE_CHECKING:
    from tcir.machine.events import EventStream
    from tcir.program.state import State
    from tcir.time.roofline import Roofline
    from tcir.validation.compare import Difference
    from tcir.validation.coverage import Coverage
    from tcir.validation.settings import Settings

SCHEMA = "tcir.report/1"
SMALL_NUMBERS = "small numbers"
EXIT_CODES = {
    "held": 0, "sampled": 2, SMALL_NUMBERS: 2, "not executed": 0, "different": 1, "incomplete": 2,
}  # fmt: skip


@dataclass
class Line:
    """The report line of one pass; see the module's docstring for the fields."""

    index: int
    name: str
    ops: int = 0
    pass_seconds: float = 0.0
    execute_seconds: float = 0.0
    level: str = ""
    verdict: str = "not executed"
    compared: str = ""
    max_error: float | None = None
    max_error_over_bound: float | None = None
    rms_error_over_bound: float | None = None
    difference: Difference | None = None
    findings: list[dict[str, str]] = field(default_factory=list)
    sites: list[tuple[int, str]] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    counters: Mapping[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    orders: int = 1
    drawn: int = 0
    drawn_of: int = 0
    left: str = ""

    @property
    def held(self) -> bool:
        """Whether nothing is wrong or missing in the executions of this state, which may be those
        of a sample.
        """
        return self.verdict in ("equal", "within bound", "sampled")

    def take(self, other: Line) -> None:
        """Merges another execution of this state into the line: adds its findings, and takes over
        its verdict if its error is the largest so far.
        """
        self.findings += [each for each in other.findings if each not in self.findings]
        self.level, self.counters = other.level or self.level, other.counters or self.counters
        if other.held and (self.max_error_over_bound or 0) > (other.max_error_over_bound or 0):
            return
        self.verdict, self.compared = other.verdict, other.compared
        self.difference, self.incomplete = other.difference, other.incomplete
        self.max_error, self.max_error_over_bound = other.max_error, other.max_error_over_bound
        self.rms_error_over_bound = other.rms_error_over_bound

    def locate(self, state: State) -> None:
        """Fills in `sites`: the lines of the program `state` that findings and differences name."""
        told = [self.compared, "" if self.difference is None else str(self.difference)]
        words = "\n".join([*told, *(each["text"] for each in self.findings)])
        self.sites = list(state.sites(words).items())

    def in_orders(self) -> str:
        """Text that states how many completion orders passed, and how many CTAs had an order of
        their own.
        """
        words = f", {self.orders} completion orders" if self.orders > 1 else ""
        if self.drawn < self.drawn_of:
            words += f" ({self.drawn} of {self.drawn_of} CTAs drew their own)"
        return words

    def __str__(self) -> str:
        seconds = self.pass_seconds + self.execute_seconds
        head = f"{self.index:>3}  {self.name:<30} {self.ops or '-':>6} {seconds:8.2f} s  "
        lines = [f"{head}{self.verdict:<13} {self.compared}".rstrip()]
        if self.difference is not None:
            lines.append(f"       {self.difference}")
        lines += [f"       without a rule: {name}" for name in self.incomplete]
        lines += [f"       {f['severity']} {f['code']}: {f['text']}" for f in self.findings]
        lines += [f"       line {n} of --emit=pretty: {op}" for n, op in self.sites[:SITES]]
        if len(self.sites) > SITES:
            lines.append(f"       {len(self.sites) - SITES} more lines")
        lines += [f"       remark: {remark}" for remark in self.remarks]
        return "\n".join(lines)


@dataclass(frozen=True)
class Unchanged:
    """A pass that left the program as it was; see the module's docstring for the fields."""

    index: int
    name: str
    pass_seconds: float


HEADER = f"{'#':>3}  {'pass':<30} {'ops':>6} {'time':>10}  {'verdict':<13} compared"


@dataclass
class Report:
    """All lines of a validation, and statistics of the generated code."""

    program: str = ""
    pipeline: str = ""
    target: str = DEFAULT_TARGET.name
    seed: int | None = None
    inputs: str | None = None
    orders: int | None = None
    numerics: str | None = None
    ordering: str | None = None
    assumptions: dict[str, str] | None = None
    max_instructions: int | None = None
    budget: float | None = None
    coverage: Coverage | None = None
    strict: bool = False
    estimate: dict[str, float] | None = None
    passes: list[Line] = field(default_factory=list)
    unchanged: list[Unchanged] = field(default_factory=list)
    code: dict[str, Any] | None = None
    error: str | None = None
    error_code: int = 0
    roofline: Roofline | None = None
    notes: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    """Execution options that are not defaults, in words."""
    states: dict[int, State] = field(default_factory=dict, repr=False)
    """The program after each step, by line index; 0: the input. Not in the JSON."""
    streams: Sequence[EventStream] = field(default=(), repr=False)
    """Events of each launch of the executed PTX. Not in the JSON."""

    def executed_by(self, settings: Settings) -> None:
        """Records the settings of the execution."""
        options = replace(settings.options(), placement="usual")  # a validation's is adverse
        self.seed, self.inputs, self.orders = settings.seed, settings.inputs, settings.orders
        self.numerics, self.ordering = settings.numerics, settings.ordering
        self.assumptions = options.changed_answers()
        self.max_instructions, self.strict = settings.max_instructions, settings.strict
        self.budget, self.conditions = settings.budget, options.conditions()

    @property
    def validated(self) -> bool:
        """Whether the passes were executed and compared at all."""
        return self.seed is not None

    @property
    def verdict(self) -> str:
        """The worst verdict of all lines; it is "incomplete" if a pass was not executed.

        Lines after a "different" line do not change the verdict.
        """
        verdicts = {line.verdict for line in self.passes}
        if "different" in verdicts:
            return "different"
        if self.error is not None:
            return "error"
        if not self.validated:
            return "not executed"
        if not self.held or any(line.left for line in self.passes):
            return "incomplete"
        if "sampled" in verdicts:
            return "sampled"
        small = self.strict and self.coverage is not None and self.coverage.small
        return SMALL_NUMBERS if small else "held"

    @property
    def held(self) -> bool:
        """Whether every pass was executed, and nothing that was executed (possibly a sample) was
        wrong.
        """
        return bool(self.passes) and all(
            line.held or line.verdict in ("reference", "-") for line in self.passes
        )

    @property
    def ok(self) -> bool:
        """Whether every pass was executed and passed; False for a compilation without
        validation.
        """
        return self.verdict == "held"

    def __bool__(self) -> bool:
        return self.ok

    def check(self) -> Report:
        """Returns the report if the validation passed; otherwise raises `tcir.VerdictError` with
        the report's summary.

        A compilation without execution has not passed: compile with ``validate=True``.
        """
        if not self:
            failure = self.first_failure() if self.validated else None
            lines = [self.summary(), self.error or "", str(failure or "")]
            raise VerdictError("\n".join(line for line in lines if line), self.exit_code or 2)
        return self

    @property
    def exit_code(self) -> int:
        """Exit status. 0: passed. 1: different results. 2: incomplete. 3: bad input. 4: internal
        error.
        """
        return self.error_code if self.verdict == "error" else EXIT_CODES[self.verdict]

    def __getitem__(self, name: str) -> Line:
        """The line of the first pass called `name`; of one that changed nothing, the line of the
        program that it left, which the line before has."""
        first = next((step for step in self.steps if step.name == name), None)
        before = [line for line in self.passes if first and line.index <= first.index]
        if not before:
            raise KeyError(name)
        return before[-1]

    @property
    def steps(self) -> list[Line | Unchanged]:
        """All passes in order, including those that changed nothing."""
        return sorted([*self.passes, *self.unchanged], key=lambda step: step.index)

    def first_failure(self) -> Line | None:
        """The first pass with a different result; if there is none, the first incomplete pass."""
        for wanted in (("different",), ("incomplete", "not executed")):
            for line in self.passes:
                if line.verdict in wanted:
                    return line
        return None

    def summary(self) -> str:
        """The last line of the report: the verdict, and the pass that caused it."""
        failure = self.first_failure() if self.validated else None
        if failure is None:
            compared = [line for line in self.passes if line.verdict != "reference"]
            if self.validated and not compared:
                return f"{self.verdict}: executed, no pass to compare"
            if self.verdict == "sampled":
                return f"sampled: {len(self.passes)} steps, held where CTAs were executed"
            if left := [*dict.fromkeys(line.left for line in self.passes if line.left)]:
                named = ", ".join(left)
                return f"incomplete: {len(self.passes)} steps; not executed: {named} (budget)"
            words = [f"{self.verdict}: {len(self.passes)} steps"]
            covered = "" if self.coverage is None else str(self.coverage)
            return "; ".join([*words, covered] if covered else words)
        rest = f": {failure.difference}" if failure.difference else ""
        return f"{self.verdict}: first at pass {failure.index}, {failure.name}{rest}"

    def code_lines(self) -> list[str]:
        """Registers, spills, memory and instruction counts, one line each."""
        if self.code is None:
            return []
        lines = []
        names = {
            "registers": "registers per thread",
            "spill_bytes": "spilled bytes",
            "shared_bytes": "shared memory, bytes",
            "tmem_columns": "TMEM columns",
            "constant_bytes": "constants, bytes",
        }
        for key, words in names.items():
            if self.code.get(key) is not None:
                lines.append(f"{words:<24} {self.code[key]}")
        counts = self.code.get("sass") or {}
        lines += [f"SASS {mnemonic:<19} {count}" for mnemonic, count in counts.items()]
        lines += [f"not done: {reason}" for reason in self.code.get("missing", [])]
        return lines

    def below(self) -> list[str]:
        """Lines below the table: code, roofline, summary."""
        found = "roofline, modelled"
        roofline = [f"{found:<24} {self.roofline}"] if self.roofline is not None else []
        return [*self._unchanged(), *self.code_lines(), *roofline, *self.notes, self.summary()]

    def _unchanged(self) -> list[str]:
        """One line, or none: the passes that have no line of their own."""
        names = ", ".join(step.name for step in self.unchanged)
        many = "es" if len(self.unchanged) > 1 else ""
        return [f"{len(self.unchanged)} pass{many} changed nothing: {names}"] * bool(names)

    @property
    def header(self) -> str:
        """First line of the table, with the options that are not defaults."""
        return ", ".join([HEADER, *self.conditions])

    @property
    def next_index(self) -> int:
        """Index of the pass that is executed next."""
        return self.steps[-1].index + 1 if self.steps else 1

    def __str__(self) -> str:
        return "\n".join([self.header, *map(str, self.passes), *self.below()])

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        """The report as the JSON object that the module's docstring describes."""
        own = dataclasses.asdict(dataclasses.replace(self, states={}, streams=()))
        for name in ("error_code", "conditions", "states", "streams"):
            del own[name]
        own["coverage"] = self.coverage.as_dict() if self.coverage is not None else None
        own["roofline"] = self.roofline.as_dict() if self.roofline is not None else None
        for line in own["passes"]:
            line["counters"] = {key: int(value) for key, value in line["counters"].items()}
        return {
            "schema": SCHEMA,
            **own,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
        }

    def page(self) -> str:
        """Renders the report as a self-contained HTML page: verdicts, the IR before and after
        each pass, the roofline, and the modelled timeline of the launches."""
        from tcir.viz.report import report_html

        return report_html(self.as_dict(), self.states, self._timeline())

    def save(self, path: str | Path) -> None:
        """Writes the report as an HTML page (`page`) to a file."""
        write_atomic(path, self.page().encode())

    def open(self) -> None:
        """Opens the report as an HTML page (`page`) in a browser, from a temporary file."""
        handle, name = tempfile.mkstemp(prefix="tcir-", suffix=".html")
        os.close(handle)
        self.save(name)
        webbrowser.open(Path(name).as_uri())

    def _timeline(self) -> str:
        """The timeline as SVG; "" if no PTX was executed, or the target has no time constants."""
        from tcir.time.constants import is_timed
        from tcir.time.recorded import RecordedTimeline
        from tcir.viz.svg import svg
        from tcir.viz.timeline import timeline_view

        if not self.streams or not is_timed(self.target):
            return ""
        return svg(timeline_view(RecordedTimeline.all(self.streams, self.target)))

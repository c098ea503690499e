"""`run_ptx`: executes any PTX kernel on the simulated machine.

The simulated machine receives only the PTX text, the launch sizes and the buffers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tcir.again import changed_variables, launch_again, variables_of
from tcir.errors import InputError, LaunchError, VerdictError, check_flags
from tcir.files import read_text
from tcir.interp.ptx.arguments import (
    BoundArrays,
    Uninitialized,
    bind_variables,
    parameters,
    promised,
)
from tcir.interp.ptx.calls import inline_calls
from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.jobs.launch import run_in_blocks, why_together
from tcir.interp.ptx.jobs.part import Block, GridPart, TogetherError, clusters
from tcir.interp.ptx.jobs.sampling import why_whole
from tcir.interp.ptx.launch import LaunchState
from tcir.interp.ptx.launch_sizes import check_residency, check_static, checked_bytes, launch_sizes
from tcir.interp.ptx.layout import AddressLayout, lay_out
from tcir.interp.ptx.lockstep.abandoned import Abandoned
from tcir.interp.ptx.lockstep.launch import Lockstep
from tcir.interp.ptx.lockstep.leaders import eligible
from tcir.interp.ptx.lockstep.repeat import Repetition, launch_key
from tcir.interp.ptx.lockstep.saved import Saved
from tcir.interp.ptx.op import Blocking, Incomplete
from tcir.interp.ptx.parser import parse
from tcir.interp.ptx.program import DecodedEntry, decoded
from tcir.interp.ptx.recording import record, recorded, until_exit
from tcir.interp.ptx.register_counts import allocated
from tcir.interp.ptx.syntax import Function, PtxModule, Site
from tcir.interp.ptx.warp import Warp
from tcir.machine import (
    Agent,
    Assumptions,
    Cta,
    Finding,
    Machine,
    MachineError,
    NotModelled,
)
from tcir.machine.events import EventStream, Recording
from tcir.machine.memory.heap import Heap
from tcir.machine.memory.memories import GlobalMemory
from tcir.machine.numerics.products import Products
from tcir.machine.placement import Placement
from tcir.machine.recorder import Recorder
from tcir.machine.refusal import Refusal
from tcir.machine.sample import Sample
from tcir.run_options import DEFAULT_MAX_INSTRUCTIONS, DEFAULT_OPTIONS, RunOptions
from tcir.target import simulated
from tcir.threads import import_whole

PACKAGES = ("tcir.machine", "tcir.interp.ptx", "tcir.debug", "numpy.ma", "numpy.random")
"""Packages that are imported for the execution of PTX."""
__all__ = ["LaunchError", "PtxSyntaxError", "RunReport", "Uninitialized", "entry_name", "run_ptx"]


@dataclass
class RunReport:
    """The result of one launch on the simulated machine.

    findings:     hazards; they do not end the run
    errors:       illegal operations of the program; they end the run
    incomplete:   instructions that are not modelled, by name and line. Either nothing was executed,
                  or the run ended at a form of an instruction that is not modelled
    output:       text that the kernel printed
    counters:     counters of the simulated machine, by name
    instructions: number of warp instructions executed
    seconds:      wall-clock time of the execution
    options:      options of the execution; the first line of the report's text shows those that are
                  not defaults
    """

    findings: list[Finding] = field(default_factory=list)
    unnamed: int = 0
    """Number of events not kept as findings: 200 of each severity are kept."""
    errors: list[MachineError] = field(default_factory=list)
    incomplete: list[Incomplete] = field(default_factory=list)
    output: str = ""
    counters: dict[str, int] = field(default_factory=dict)
    instructions: int = 0
    seconds: float = 0.0
    stopped: str = ""
    """Why a debugger ended the run early; "" if none did."""
    different: bool = False
    """Whether a debugger found a result that differs from the expected one."""
    lockstep: int = 0
    """Number of CTAs that replayed another CTA's execution, in its order:
    `tcir.interp.ptx.lockstep`."""
    processes: int = 1
    """Number of processes that executed the grid: `tcir.interp.ptx.jobs`."""
    together: str = ""
    """Why one process executed the grid although several were allowed."""
    executed: int = 0
    """Number of CTAs executed as a sample; 0: all were executed."""
    whole: str = ""
    """Why the whole grid ran although a sample was requested."""
    left: list[str] = field(default_factory=list)
    """Names of the module variables that the launch changed."""
    meets: bool = False
    """Whether CTAs may communicate; under a seed some then run side by side."""
    events: EventStream | None = None
    """Events of the recorded CTAs; None: nothing was recorded."""
    options: RunOptions = DEFAULT_OPTIONS

    @property
    def ok(self) -> bool:
        bad = any(f.severity == "error" for f in self.findings)
        return not (self.errors or self.incomplete or bad or self.stopped or self.different)

    def __bool__(self) -> bool:
        return self.ok

    @property
    def exit_code(self) -> int:
        """Exit status: 0 if the launch is ok; 1 for illegal operations, hazards or a wrong result;
        2 if it is incomplete, or was stopped by a debugger.
        """
        if self.ok:
            return 0
        if self.incomplete:
            return 2
        bad = self.errors or any(f.severity == "error" for f in self.findings)
        return 1 if bad or self.different else 2

    def check(self) -> RunReport:
        """Returns the report if it is ok; otherwise raises `tcir.VerdictError` with its text."""
        if not self:
            raise VerdictError(str(self), self.exit_code)
        return self

    def as_dict(self) -> dict[str, Any]:
        """Returns a dict that can be written as JSON. Its schema number changes when the meaning of
        a field changes.
        """
        return {
            "schema": 1,
            "ok": self.ok,
            "stopped": self.stopped,
            "incomplete": [
                {"instruction": i.instruction, "line": i.line, "why": i.why}
                for i in self.incomplete
            ],
            "errors": [
                {"code": e.code, "message": str(e), "site": str(e.site), "who": e.who}
                for e in self.errors
            ],
            "findings": [
                {
                    "severity": f.severity,
                    "code": f.code,
                    "first": f.first,
                    "second": f.second,
                    "missing": f.missing,
                    "cta": list(f.cta) if isinstance(f.cta, tuple) else f.cta,
                    "unpromised": f.unpromised is not None,
                    "between": f.kind,
                    "who": f.who,
                    "place": f.place,
                    "count": f.count,
                }
                for f in self.findings
            ],
            "unnamed": self.unnamed,
            "output": self.output,
            "counters": dict(self.counters),
            "instructions": self.instructions,
            "seconds": self.seconds,
            "numerics": self.options.numerics,
            "order_seed": self.options.order_seed,
            "hazards": self.options.hazards,
            "ordering": self.options.ordering,
            "assumptions": self.options.changed_answers(),
            "max_instructions": self.options.max_instructions,
            "processes": self.processes,
            "together": self.together,
            "executed": self.executed,
            "whole": self.whole,
        }

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def text(self, max_findings: int | None = None) -> str:
        """Formats the report: the verdict, instructions that were not executed, illegal operations,
        findings (errors first, at most `max_findings`) and their total number, and counters.
        """
        verdict = {0: "ok", 1: "failed"}.get(self.exit_code, "incomplete")
        verdict = "stopped" if self.stopped and self.exit_code == 2 else verdict
        rate = self.instructions / self.seconds if self.seconds else 0.0
        seed = self.options.order_seed
        how = ["order as issued" if seed is None else f"order seed {seed}"]
        how += self.options.conditions()
        how += [f"a sample of {self.executed} CTAs"] if self.executed else []
        how += [f"all CTAs ({self.whole})"] if self.whole else []
        how += [f"{self.processes} processes"] if self.processes > 1 else []
        how += [f"one process ({self.together})"] if self.together else []
        lines = [
            f"{verdict}: {self.instructions} warp instructions in {self.seconds:.2f} s "
            f"({rate / 1000:.0f} k/s), {', '.join(how)}"
        ]
        lines += [f"incomplete: {i}" for i in self.incomplete]
        lines += [f"error: {e}" for e in self.errors]
        found = sorted(self.findings, key=lambda f: f.severity != "error")
        for f in found[:max_findings]:
            lines.append(f"{f.severity}: {f.code}: {f.first}")
            lines += [f"    {text}" for text in (f.second, f.missing, f.circumstances) if text]
        if len(found) > len(found[:max_findings]):
            lines.append(f"… {len(found) - len(found[:max_findings])} more findings not shown")
        if self.unnamed:
            lines.append(f"… {self.unnamed} events of further findings, of which none is kept")
        if summary := self.summary():
            lines.append(summary)
        used = {k: v for k, v in self.counters.items() if v}
        if used:
            lines.append("counters: " + ", ".join(f"{k} {v}" for k, v in used.items()))
        return "\n".join(lines)

    def summary(self) -> str:
        """Text with the number of errors and warnings, and how often they occurred; "" if there are
        none.
        """
        words = []
        for severity, more in (("error", len(self.errors)), ("warning", 0)):
            found = [f for f in self.findings if f.severity == severity]
            if number := len(found) + more:
                times = sum(f.count for f in found) + more
                often = f" ({times} times)" if times > number else ""
                words.append(f"{number} {severity}{'s' * (number > 1)}{often}")
        return f"summary: {', '.join(words)}" if words else ""


class Observer(Protocol):
    """An observer of a running kernel, such as a debugger (`tcir.debug`).

    passive: whether the observer only inspects the machine after the run and does not follow single
        warps
    """

    passive: bool

    def attach(self, machine: Machine, launch: LaunchState, report: RunReport) -> None:
        """Called once before the first CTA starts; `report` is filled in when the run ends."""

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        """Called for each warp; returns the generator that runs it, such as `interpreter.run()`."""


@lru_cache(maxsize=16)
def _parsed(ptx: str) -> PtxModule:
    return parse(ptx)


def _entry(module: PtxModule, name: str | None) -> Function:
    entries = {f.name: f for f in module.functions.values() if f.entry and f.body is not None}
    listed = ", ".join(entries) or "none"
    if name is not None:
        if not isinstance(name, str) or name not in entries:
            raise LaunchError(f"entry: expected one of {listed}, got {name!r}")
        return entries[name]
    if len(entries) != 1:
        raise LaunchError(f"entry: expected a name, since the module has not just one: {listed}")
    return next(iter(entries.values()))


def parsed(ptx: str | Path) -> PtxModule:
    """Parses PTX from a text or a file. Raises PtxSyntaxError; LaunchError if the file is
    missing."""
    return _parsed(_text(ptx))


def _text(ptx: str | Path) -> str:
    """PTX text; the contents of the file if `ptx` is a path."""
    if isinstance(ptx, str) and ("\n" in ptx or not ptx.endswith(".ptx")):
        return ptx
    if not isinstance(ptx, str | Path):
        raise LaunchError(f"expected PTX text or the path of a file, got {type(ptx).__name__}")
    try:
        return read_text(ptx)
    except InputError as error:
        raise LaunchError(f"{ptx}: expected PTX text or the path of a file: {error}") from None


def entry_name(ptx: str, name: str | None = None) -> str:
    """Name of the entry that `run_ptx` would run. Raises LaunchError and PtxSyntaxError."""
    return _entry(_parsed(ptx), name).name


def ptx_target(ptx: str) -> str:
    """Target architecture of PTX, without options. Raises PtxSyntaxError."""
    return _parsed(ptx).target.partition(",")[0].strip()


def _repeats(repeats: Any, sample: object, events: object, order_seed: object) -> Any:
    """`repeats`, or None where runs under seeds differ from the run that recorded them."""
    recorded = events is not None and order_seed is not None
    return None if sample is not None or recorded else repeats


def run_ptx(
    ptx: str | Path,
    *,
    entry: str | None = None,
    grid: Sequence[int] | int,
    block: Sequence[int] | int | None = None,
    cluster: Sequence[int] | int | None = None,
    dynamic_smem: int = 0,
    args: Sequence[Any] = (),
    hazards: str = "report",
    order_seed: int | None = None,
    numerics: str = "exact",
    max_instructions: int = DEFAULT_MAX_INSTRUCTIONS,
    progress: Callable[..., None] | None = None,
    assumptions: Assumptions | None = None,
    ordering: str = "silicon",
    products: Products | None = None,
    observer: Observer | None = None,
    ctas_per_sm: int = 1,
    programmatic: bool | Sequence[np.ndarray] = False,
    lockstep: bool = True,
    repeats: dict[bytes, Any] | None = None,
    jobs: int = 1,
    sample: Sample | None = None,
    events: Recording | None = None,
    placement: str = "usual",
    addressed: Sequence[np.ndarray] = (),
    written: Sequence[tuple[np.ndarray, np.ndarray]] = (),
    variables: dict[str, np.ndarray] | None = None,
    cooperative: bool = True,
    heap: Heap | None = None,
    again: bool = False,
) -> RunReport:
    """Runs a kernel of a PTX module (text, or the path of a file) on the simulated machine.

    block, cluster: sizes; None: those that `.reqntid` and `.reqnctapercluster` declare; if no
        cluster is declared, clusters of one CTA
    args:        one argument per kernel parameter: a C-contiguous numpy array (device buffer,
                 written in place); `Uninitialized(array)` for an output that must be written before
                 it is read; a number; bytes for a by-value parameter; a `TensorMap`; or a tuple of
                 such parts, concatenated without padding, for a struct
    hazards, order_seed, numerics, max_instructions, assumptions, ordering, products, lockstep,
    repeats, jobs, sample, events, placement: see `RunOptions`
    dynamic_smem: bytes of dynamic shared memory
    observer:    an observer of the run, such as a debugger (`tcir.debug`)
    ctas_per_sm: number of CTAs, consecutive in the grid, that run side by side and share tensor
        memory
    programmatic: whether the launch may start before the previous launch has ended (programmatic
        stream serialization). If so, accesses before a griddepcontrol.wait to the arrays in `args`,
        or to the arrays given here, are races
    addressed:   arrays that the kernel accesses through addresses in its data
    written:     partly initialised arrays, each with the mask of its initialised bytes; the launch
                 updates the masks
    variables:   the module's variables by name, shared by launches; None: new variables
    cooperative: whether `grid.sync()` works; otherwise it traps
    heap:        memory of malloc in device code, shared by launches; None: a new heap
    again:       whether a launch that is ok runs a second time on the same memory (`tcir.again`)

    Raises PtxSyntaxError and LaunchError; illegal operations of the program are in the report.
    """
    import_whole(*PACKAGES)
    started, text = time.perf_counter(), _text(ptx)
    module = _parsed(text)
    function = inline_calls(module, _entry(module, entry))
    options = RunOptions(
        order_seed, hazards, numerics, max_instructions, assumptions, ordering, products, lockstep,
        _repeats(repeats, sample, events, order_seed), jobs, sample, events, placement,
    )  # fmt: skip
    layout, threads = _laid_out(module, function, options, dynamic_smem), _threads(function, block)
    ctas = cluster if cluster is not None else function.reqcluster or (1, 1, 1)
    unfinished = programmatic if isinstance(programmatic, list | tuple) else None
    check_flags(again=again, cooperative=cooperative)
    if unfinished is None:
        check_flags(programmatic=programmatic)
    variables = {} if again and variables is None else variables
    sizes = launch_sizes(function, layout, grid, threads, ctas, dynamic_smem)
    check_residency(ctas_per_sm, sizes)
    promises = promised(function, args)

    def attempt(options: RunOptions) -> RunReport:
        machine = Machine(
            grid=sizes.grid, block=sizes.block, cluster=sizes.cluster, dynamic_smem=dynamic_smem,
            static_smem=layout.static_bytes, ctas_per_sm=ctas_per_sm, options=options,
            progress=progress,
        )  # fmt: skip
        machine.shared_names, machine.shared_start = layout.names(), layout.shared_start
        machine.programmatic = unfinished is not None or bool(programmatic)
        machine.on(simulated(module.target), allocated(function))
        if events is not None:
            machine.recorder = Recorder(events, sizes.grid, sizes.cluster)
        report = RunReport(options=options)
        if heap is not None:
            machine.memory = GlobalMemory(heap.copy())
        buffers = BoundArrays(machine, args, addressed, written, promises)
        params = parameters(function, layout, args, buffers)
        if unfinished is not None:
            buffers.unfinished(unfinished)
        addresses = bind_variables(module, machine, variables)
        program = decoded(text, module, function, layout, addresses)
        report.incomplete = program.incomplete
        before = variables_of(machine)
        machine.interleave(program.meets)
        if not program.incomplete:
            launch = LaunchState(machine, sizes, params, bool(cooperative))
            _execute_fastest(program, launch, f"{function.name}\0{text}", report, observer)
        buffers.keep_written()
        if heap is not None:
            heap.keep(machine.memory.heap)
        report.errors += map(_read_only_written, buffers.written())
        report.left = changed_variables(machine, before)
        if machine.recorder is not None:
            report.events = machine.recorder.stream(function.name, sizes.block, sizes.total_smem)
        return report

    report = launch_again(function.name, partial(_until_done, attempt, options), args, again)
    report.options, report.seconds = options, time.perf_counter() - started
    if events is not None and report.events is not None:
        events.streams.append(report.events)
    return report


def _until_done(attempt: Callable[[RunOptions], RunReport], way: RunOptions) -> RunReport:
    """Report of the first attempt that is not abandoned."""
    while True:
        try:
            return attempt(way)
        except Abandoned as reason:
            way = replace(way, lockstep=not reason.alone, repeats=None)


def _laid_out(
    module: PtxModule, function: Function, options: RunOptions, dynamic_smem: int
) -> AddressLayout:
    """Assigns addresses to variables. Raises LaunchError for more static memory than ptxas
    accepts."""
    layout = lay_out(module, function, Placement(options), checked_bytes(dynamic_smem))
    check_static(module.target, layout)
    return layout


def _threads(function: Function, block: Sequence[int] | int | None) -> Sequence[int] | int:
    """Block size: the caller's, else the kernel's own."""
    threads = function.reqntid if block is None else block
    if threads is None:
        raise LaunchError(f"block: expected a size, since {function.name} has no .reqntid")
    return threads


def _read_only_written(written: tuple[str, int]) -> MachineError:
    name, byte = written
    return MachineError(
        "read-only-argument",
        f"the kernel wrote byte {byte:#x} of {name}, a read-only array; pass a writable copy",
    )


def _execute_fastest(
    program: DecodedEntry,
    launch: LaunchState,
    text: str,
    report: RunReport,
    observer: Observer | None,
) -> None:
    """Executes as `_execute` does, in several processes or in lockstep where possible.

    text: the program's text and its entry name
    """
    part = _part(program, launch, report)
    if _execute_in_blocks(program, launch, report, observer, part):
        return
    if (observer is None or observer.passive) and eligible(launch.machine):
        _execute_together(program, launch, text, report, observer, part)
    else:
        _execute(program, launch, report, observer, part=part)


def _execute_together(
    program: DecodedEntry,
    launch: LaunchState,
    text: str,
    report: RunReport,
    observer: Observer | None,
    part: GridPart | None,
) -> None:
    """Executes as `_execute` does, in lockstep. Abandoned: the buffers are restored; run it again.

    text: the program's text and its entry name
    """
    buffers, options = launch.machine.memory.buffers, launch.machine.options
    repeats = options.repeats
    key = b"" if repeats is None else launch_key(launch, text)
    known = None
    if repeats is not None and key in repeats and options.order_seed is not None:
        known = repeats[key]
        if not known:
            return _execute(program, launch, report, observer, part=part)
    lockstep = Repetition(program, launch, known) if known else Lockstep(program, launch)
    if part is not None and isinstance(lockstep, Lockstep):
        part.join(lockstep)
    before = [(buffer, Saved(buffer.data)) for buffer in buffers]
    try:
        _execute(program, launch, report, observer, lockstep, part)
        if lockstep.committed and (report.errors or report.incomplete):
            raise Abandoned("what ends the run", alone=True)
    except Abandoned as reason:
        if repeats is not None and reason.alone:
            repeats[key] = ()
        for buffer, saved in before:
            saved.restore(buffer.data)
        raise
    report.lockstep = lockstep.followers
    if repeats is not None and isinstance(lockstep, Lockstep):
        classes = lockstep.classes()
        if classes or not lockstep.followers:
            repeats[key] = classes or ()


def _part(program: DecodedEntry, launch: LaunchState, report: RunReport) -> GridPart | None:
    """The CTAs to execute. None stands for all; if a sample was requested, the report then states
    why."""
    machine, sample = launch.machine, launch.machine.options.sample
    if sample is None:
        return None
    mine = sample.of(machine.grid, machine.cluster)
    if len(mine) == clusters(machine):
        return None
    if why := why_whole(program, machine):
        report.whole = why
        return None
    report.executed = len(mine) * math.prod(machine.cluster)
    return GridPart(machine, mine)


def _execute_in_blocks(
    program: DecodedEntry,
    launch: LaunchState,
    report: RunReport,
    observer: Observer | None,
    part: GridPart | None,
) -> bool:
    """Executes as `_execute` does, in several processes. Returns false if nothing was executed;
    the report then states why."""
    options = launch.machine.options
    if options.jobs == 1:
        return False
    mine = range(clusters(launch.machine)) if part is None else part.mine

    def execute(part: Block) -> Lockstep | None:
        own = RunReport()
        lockstep = Lockstep(program, launch) if eligible(launch.machine) else None
        if lockstep is not None:
            part.join(lockstep)
        _execute(program, launch, own, None, lockstep, part)
        if own.errors or own.incomplete:
            raise TogetherError("what ends the run")
        part.check()
        return lockstep

    try:
        if options.events is not None:
            raise TogetherError("events are recorded")
        if observer is not None and not observer.passive:
            raise TogetherError("a debugger follows it")
        if why := why_together(program, launch, mine):
            raise TogetherError(why)
        done = run_in_blocks(launch, mine, execute)
    except TogetherError as why_not:
        report.together = str(why_not)
        return False
    if observer is not None:
        observer.attach(launch.machine, launch, report)
    _fill_in(report, launch)
    report.processes, report.lockstep = len(done), sum(each.followers for each in done)
    return True


def _execute(
    program: DecodedEntry,
    launch: LaunchState,
    report: RunReport,
    observer: Observer | None = None,
    lockstep: Lockstep | Repetition | None = None,
    part: GridPart | None = None,
) -> None:
    """Runs all CTAs, or those of a part, and records the results in the report."""
    machine, threads = launch.machine, launch.sizes.threads
    follow: Callable[[WarpInterpreter], Blocking] = WarpInterpreter.run
    if observer is not None:
        observer.attach(machine, launch, report)
        follow = observer.follow
    if lockstep is not None:
        follow = lockstep.follow

    recorder = machine.recorder
    told = program if recorder is None else recorded(program)

    def body(n: int) -> Callable[[Agent], Blocking]:
        def run(agent: Agent) -> Blocking:
            warp = Warp(program.storage, launch, agent, n)
            if recorder is None or not recorder.wants(agent.cta.index):
                return follow(WarpInterpreter(program, warp))
            interpreter = WarpInterpreter(told, warp)
            record(recorder, interpreter)
            return until_exit(agent, follow(interpreter))

        return run

    def start(cta: Cta) -> list[Agent]:
        if lockstep is not None:
            lockstep.begin(cta)
        return [
            cta.agent(f"warp {n}", warp=n, threads=min(32, threads - 32 * n), body=body(n))
            for n in range(launch.sizes.warps)
        ]

    try:
        with np.errstate(all="ignore"):
            machine.run(start, part or lockstep)
            if lockstep is not None:
                lockstep.finish()
    except MachineError as error:
        report.errors.append(error)
    except NotModelled as missing:
        site = missing.site if isinstance(missing.site, Site) else Site(0, str(missing.site))
        report.incomplete.append(Incomplete(site.text, site, missing.what))
    except Refusal as refusal:
        report.errors.append(MachineError(refusal.code, str(refusal), site="unknown"))
    _fill_in(report, launch)


def _fill_in(report: RunReport, launch: LaunchState) -> None:
    """Copies a launch's output, findings and counters to the report."""
    machine = launch.machine
    report.output = "".join(launch.output)
    report.findings = machine.findings.counted()
    report.unnamed = machine.findings.unnamed
    report.counters = machine.counters.as_dict()
    report.instructions = launch.instructions
    report.meets = machine.meets

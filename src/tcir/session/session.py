"""`Session`: the sequence of steps that `tcir.compile`, `tcir.validate` and tc-opt share.

A session takes a module (parsed by `tcir.program.source`), sets its target, and runs passes one by
one. After each pass the module is verified and, if requested, executed and compared. Finally the
session generates code and executes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcir._mlir import is_mlir_error
from tcir.codegen.debug_paths import map_prefixes
from tcir.dialect.walk import nested
from tcir.errors import (
    Error,
    IncompleteError,
    InputError,
    InvalidIRError,
    NativeCrashError,
    UnknownNameError,
)
from tcir.passes.module.legalize_symbols import LegalizeSymbols, has_unspellable
from tcir.passmanager.pipeline import (
    Pass,
    Pipeline,
    UpstreamPass,
    find_pipeline,
    is_own,
    registered_pipelines,
)
from tcir.program.foreign import check_lowered
from tcir.program.launch import LaunchSequence
from tcir.program.programs import Program, find_programs
from tcir.program.source import bytecode_of, count_ops, digest_of
from tcir.program.state import State
from tcir.session import divided
from tcir.session.code import Code, assemble, tmem_columns
from tcir.session.rehearsal import Rehearsal
from tcir.target import DEFAULT_TARGET, TARGETS
from tcir.validation.report import Line, Report, Unchanged
from tcir.validation.settings import Settings

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.program.signature import Signature
    from tcir.validation.estimate import Estimate
    from tcir.validation.kinds import Kinds
    from tcir.validation.validator import Validation


PTX_STEP = "llvm-to-ptx"
DIED = "native code died"
"""Beginning of the report's line for a step in which native code crashed."""


class Watcher:
    """Callbacks of a running session. The methods of this base class do nothing.

    divides: whether kernels may be lowered in separate modules (`tcir.session.divided`); the
        `module` that `after_pass` receives is then the module after the last of these passes
    """

    divides = False

    def before_pass(self, index: int, item: Pass, module: ir.Module) -> None:
        """Called before `item`, pass number `index` (from 1), runs on `module`."""

    def written(self, state: bytes | divided.Parts) -> None:
        """Called before `after_pass` with the module's bytecode. The bytecode is empty after a pass
        that is neither tcir's nor upstream's (`Session._has_changed`).
        """

    def after_pass(self, index: int, item: Pass, module: ir.Module, changed: bool) -> None:
        """Called after `item` ran; `module` has been verified, and has not yet been executed.

        changed: whether the pass may have changed the module
        """

    def before_step(self, name: str, module: ir.Module) -> None:
        """Called before the step `name` of code generation."""

    def after_ptx(self, index: int, text: str) -> None:
        """Called after LLVM generated PTX and before the PTX is executed; `index` is the number of
        its line in the report.
        """

    def estimated(self, estimate: Estimate | Kinds) -> None:
        """Called before the first execution, with the estimated cost of executing the program after
        all passes; with `Settings.kinds`, only of the executions below the tensor level.
        """

    def line(self, line: Line) -> None:
        """Called when a line of the report is complete."""


class Session:
    """The compilation of a module by `pipeline` to code for `target`, and its report.

    signature:   signature of the program, for its roofline; a validation determines it itself
    settings:    how the program is executed after every pass; None: it is not executed
    verify_each: whether MLIR verifies the module after every pass
    contained:   whether the caller handles crashes of native code, so that this session need not
                 run such code in a child first
    """

    def __init__(
        self,
        module: ir.Module,
        pipeline: Pipeline,
        *,
        target: str = DEFAULT_TARGET.name,
        signature: Signature | None = None,
        settings: Settings | None = None,
        watcher: Watcher | None = None,
        verify_each: bool = True,
        contained: bool = False,
    ) -> None:
        check_name(target)
        self.module, self.pipeline = module, pipeline
        self.watcher = watcher or Watcher()
        self.verify_each = verify_each
        self.states = self.executing = False
        self._digest = b""
        self.debug_prefix_map: Mapping[str, str] = {}
        """Prefixes of source paths, and their replacements in code."""
        self.rehearsal = None if contained else Rehearsal()
        self.report = Report(pipeline=str(pipeline), target=target)
        self.signature = signature
        self.settings = settings
        """Settings of the execution after each pass; None: the program is not executed."""
        self.validation: Validation | None = None
        """Since the input program was executed."""
        if settings is not None:
            self.report.executed_by(settings)
        set_target(module, target)

    def keep_states(self) -> None:
        """Makes the report keep the program after each step from now on, for its HTML page."""
        self.states = True
        self._keep(0, verified=False)

    def run_passes(self) -> None:
        """Runs the pipeline over the module in place, with a line of the report for each pass that
        changed it.

        All passes run, even after one that changed the result, so the code can be inspected; only
        execution stops there. Raises the `PassError` of a pass that rejects the module.
        """
        self.executing = self.settings is not None and self._execute_input(self.settings)
        if self.signature is not None:
            from tcir.session import roofline  # needs numpy, as other code does not

            self.report.roofline = roofline.of_input(
                self.module, self.signature, self.report.target
            )
        self._digest = digest_of(bytecode_of(self.module))
        ours = next((item for item in self.pipeline if is_own(type(item))), None)
        done = 0
        for index, item in enumerate(self.pipeline, start=1):
            if item is ours:
                check_lowered(self.module)
            if index > done:
                done = self._run_divided(index)
            if index > done:
                self._run_pass(index, item)

    def _run_divided(self, first: int) -> int:
        """Runs the passes from number `first` on that can be divided among processes; returns the
        number of the last one, and 0 if none was run."""
        if not self.watcher.divides or self.settings is not None:
            return 0
        steps = divided.run(self.module, self.pipeline.passes, first - 1, verify)
        for index, step in enumerate(steps, start=first):
            name = step.item.name
            if step.parts is None:
                self.report.unchanged.append(Unchanged(index, name, step.seconds))
            else:
                self.watcher.written(step.parts)
            self.watcher.after_pass(index, step.item, self.module, step.parts is not None)
            if step.parts is not None:
                self._add(Line(index, name, step.ops, step.seconds, verdict="-"))
        if steps:
            verify(self.module, steps[-1].item.name)
            self._digest = digest_of(bytecode_of(self.module))
        return first + len(steps) - 1 if steps else 0

    def _run_pass(self, index: int, item: Pass) -> None:
        """Runs one pass. If it changed the module, verifies, executes and compares the program, and
        adds the pass's line to the report."""
        self.watcher.before_pass(index, item, self.module)
        started = time.perf_counter()
        with self._crash_is_different(index, item.name):
            if self.rehearsal is not None:
                self.rehearsal.before(item, self.module)
            item.apply(self.module)
            if self.rehearsal is not None:
                self.rehearsal.after(item, self.module)
        changed = self._has_changed(item)
        if self.verify_each and changed:
            verify(self.module, item.name)
        seconds = time.perf_counter() - started
        if not changed:
            self.report.unchanged.append(Unchanged(index, item.name, seconds))
            self.watcher.after_pass(index, item, self.module, changed)
            return
        line = Line(index, item.name, pass_seconds=seconds)
        line.ops = count_ops(self.module)
        self._keep(index, verified=self.verify_each)
        self.watcher.after_pass(index, item, self.module, changed)
        if self.validation is None:
            line.verdict = "-"
        elif self.executing:
            self.validation.check(self.module, line, self._digest)
            if line.findings or line.verdict == "different":
                line.locate(self.report.states.get(index) or State.of(self.module))
            self.executing = line.verdict != "different"
        self._add(line)

    def _has_changed(self, item: Pass) -> bool:
        """Whether the module may be another than before `item`; always after a pass of others, of
        which bytecode cannot be written safely: it dies of values whose users are nowhere."""
        before, self._digest, bytecode = self._digest, b"", b""
        if isinstance(item, UpstreamPass) or is_own(type(item)):
            bytecode = bytecode_of(self.module)
            self._digest = digest_of(bytecode)
        self.watcher.written(bytecode)
        return not self._digest or self._digest != before

    def _execute_input(self, settings: Settings) -> bool:
        """Executes the input program, the reference; returns whether that succeeded."""
        from tcir.validation.plan import Plan
        from tcir.validation.validator import Validation

        plan = Plan.of(self.module, settings)
        self.signature, estimate = plan.signature, plan.estimate
        self.report.program = plan.signature.name
        self.report.estimate = {"seconds": estimate.seconds, "bytes": estimate.nbytes}
        self.watcher.estimated(estimate)
        self.validation = Validation.start(plan, self.module)
        self.validation.on_kinds = self._sorted
        line = self.validation.input
        line.ops = count_ops(self.module)
        self._add(line)
        self.report.coverage = self.validation.coverage
        return line.verdict == "reference"

    def _sorted(self, kinds: Kinds) -> None:
        self.watcher.estimated(kinds)
        self.report.notes += kinds.notes()

    def lowered(self) -> bool:
        """Whether code for the target can be generated: all programs are kernels in the dialects
        llvm and nvvm that were compiled for this target.
        """
        programs = find_programs(self.module)
        return all(
            program.level == "thread"
            and _made_for(program) == self.report.target
            and all(op.operation.name.startswith(("llvm.", "nvvm.")) for op in nested(program.op))
            for program in programs
        )

    def generate(self, upto: str, assembler: str = "ptxas") -> Code:
        """Generates code of the lowered module, up to "llvm", "ptx", "cubin" or "sass", and
        executes the PTX.

        If the name of a kernel is not a legal name in PTX, the pass legalize-symbols runs first. A
        missing assembler is noted in ``report.code``, and is an error only if the cubin itself was
        requested.

        assembler: assembler of the PTX, ptxas or nvjitlink
        """
        from tcir import codegen

        report, target = self.report, self.report.target
        programs = find_programs(self.module)
        _check_level(programs)
        _check_target(programs, target)
        if has_unspellable(self.module):
            self._run_pass(report.next_index, LegalizeSymbols())
            programs = find_programs(self.module)
        self.watcher.before_step("translate-to-llvm-ir", self.module)
        launches = LaunchSequence.from_programs(self.module, programs)
        started = time.perf_counter()
        with self._crash_is_different(report.next_index, PTX_STEP, refusals=True):
            llvm = codegen.translate(self.module)
            code = Code(launches, map_prefixes(llvm, self.debug_prefix_map))
        if upto == "llvm":
            return code
        self.watcher.before_step(PTX_STEP, self.module)
        with self._crash_is_different(report.next_index, PTX_STEP, refusals=True):
            code.ptx = codegen.emit_ptx(code.llvm, target=target)
        seconds = time.perf_counter() - started
        line = Line(report.next_index, PTX_STEP, pass_seconds=seconds)
        line.ops = sum(1 for text in code.ptx.splitlines() if text.rstrip().endswith(";"))
        if self.states:
            report.states[line.index] = State(code.ptx, ptx=True)
        self.watcher.after_ptx(line.index, code.ptx)
        if self.validation is None:
            line.verdict = "-"
        elif report.verdict != "different":
            _, report.streams = self.validation.check_ptx(code.ptx, launches, line)
        self._add(line)
        if report.roofline is not None and self.signature is not None:
            from tcir.session import roofline

            roof = roofline.of_launches(report.roofline, launches, self.signature)
            if self.validation is not None and self.validation.kinds is None:
                streams = report.streams
                roof = roofline.after_run(roof, launches, self.signature, line, streams)
            report.roofline = roof
        report.code = {"ptx_lines": code.ptx.count("\n"), "tmem_columns": tmem_columns(code.ptx)}
        if report.streams:
            from tcir.time.stores import global_stores

            report.code["global_stores"] = [vars(each) for each in global_stores(report.streams)]
        if launches.constants:
            report.code["constant_bytes"] = sum(each.nbytes for each in launches.constants)
        if upto in ("cubin", "sass"):
            self.watcher.before_step(assembler, self.module)
            # Disassemble only for --emit=sass, or for the counts of a validation's table.
            sass = upto == "sass" or self.settings is not None
            self._add(assemble(code, report, required=upto, sass=sass, assembler=assembler))
        return code

    @contextmanager
    def _crash_is_different(
        self, index: int, name: str, *, refusals: bool = False
    ) -> Iterator[None]:
        """Context in which, if the program is executed after each step, a crash of native code is
        the step's verdict: "different".

        refusals: whether an error of a code generator that rejects the program is also a verdict
        """
        try:
            yield
        except Error as error:
            known = isinstance(error, InputError | IncompleteError)
            died = any(isinstance(each, NativeCrashError) for each in (error, error.__cause__))
            different = died or (refusals and not known)
            if different and self.settings is not None and self.report.verdict != "different":
                compared = f"{DIED}: {error}" if died else str(error)
                self._add(Line(index, name, verdict="different", compared=compared))
            raise

    def _keep(self, index: int, *, verified: bool) -> None:
        if self.states:
            self.report.states[index] = State.of(self.module, verified=verified)

    def _add(self, line: Line) -> None:
        self.report.passes.append(line)
        self.watcher.line(line)


def check_name(target: str) -> None:
    """Raises UnknownNameError for a name that is not a target."""
    if not isinstance(target, str) or target not in TARGETS:
        raise UnknownNameError(f"expected one of the targets {', '.join(TARGETS)}, got '{target}'")


def check_target(pipeline: str, target: str) -> None:
    """Raises UnknownNameError for an unknown target, and InputError for a target that a named
    pipeline has no kernels for."""
    check_name(target)
    entry = find_pipeline(pipeline.strip().partition("{")[0])
    if entry is not None and target not in entry.targets:
        others = [
            name
            for name in ("matmul-warp", "simt-elementwise")
            if (found := find_pipeline(name)) is not None and target in found.targets
        ]
        way_out = f"; {' and '.join(others)} have kernels for {target}" if others else ""
        raise InputError(
            f"target: expected {' or '.join(entry.targets)} for pipeline {entry.name}, got "
            f"{target} (the pipeline has no kernels for it, so nothing would be lowered){way_out}"
        )


def set_target(module: ir.Module, target: str) -> None:
    """Sets the module's target (``tc.target``) unless it is the default."""
    from tcir._mlir import ir

    if target != DEFAULT_TARGET.name:
        with module.context:
            module.operation.attributes["tc.target"] = ir.StringAttr.get(target)


def verify(module: ir.Module, pass_name: str) -> None:
    """Raises `InvalidIRError` naming the pass if the module is not valid."""
    try:
        valid = module.operation.verify()
        why = ""
    except Exception as error:
        if not is_mlir_error(error):
            raise
        valid, why = False, f": {error}"
    if not valid:
        raise InvalidIRError(f"pass '{pass_name}' left invalid IR{why}", None, pass_name)


def _check_level(programs: list[Program]) -> None:
    level = next((program.level for program in programs if program.level != "thread"), None)
    if level is not None:
        raise InputError(
            f"expected a program lowered to llvm and nvvm (a pipeline such as conv-shift-reuse "
            f"ends there), got level '{level}'"
        )


def _made_for(program: Program) -> str:
    attribute = program.attribute("tc.target")
    return DEFAULT_TARGET.name if attribute is None else str(attribute.value)


def _check_target(programs: list[Program], target: str) -> None:
    """Rejects code generation for a target other than the kernel's."""
    for program in programs:
        made_for = _made_for(program)
        if made_for != target:
            raise InputError(
                f"expected target {made_for}, for which this kernel was compiled, got {target}; "
                + _pipelines_for(target)
            )


def _pipelines_for(target: str) -> str:
    names = [name for name, each in registered_pipelines().items() if target in each.targets]
    return f"pipelines with kernels for {target}: {', '.join(names) or 'none'}"

"""`tcir.compile` and `tcir.validate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcir import _mlir, codegen, progress
from tcir.cache import NO_STORE, user_store
from tcir.codegen.cubin import check_assembler
from tcir.errors import Error, InputError, check_flags
from tcir.kernel import Kernel
from tcir.passmanager.options import OptionValue
from tcir.passmanager.pipeline import Pass, Pipeline, as_pipeline
from tcir.program.inputs import Kind
from tcir.program.launch import LaunchSequence
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.session.code import Code
from tcir.session.kept import find_kernel, is_ours, keep_kernel, kernel_key
from tcir.session.session import Session, Watcher, check_name
from tcir.session.texts import TextKeeper
from tcir.session.tuning import tuned_pipeline
from tcir.target import DEFAULT_TARGET
from tcir.threads import import_whole
from tcir.validation.report import Line, Report
from tcir.validation.settings import Settings

if TYPE_CHECKING:
    from tcir.machine.assumptions import Assumptions
    from tcir.program.source import ModuleSource
    from tcir.validation.estimate import Estimate
    from tcir.validation.kinds import Kinds

PACKAGES = (
    "tcir.cache", "tcir.codegen", "tcir.debug", "tcir.dialect", "tcir.interp", "tcir.machine",
    "tcir.passmanager", "tcir.passes", "tcir.pipelines", "tcir.program", "tcir.run",
    "tcir.session", "tcir.time", "tcir.validation", "tcir.workers", "numpy.ma", "numpy.random",
)  # fmt: skip
"""Packages that compilation and execution import, with all passes and pipelines."""


class _Lines(Watcher):
    """Forwards lines of the report, and prints estimates."""

    def __init__(self, tell: Callable[[Line], None] | None) -> None:
        self.tell = tell

    def estimated(self, estimate: Estimate | Kinds) -> None:
        if estimate.long and progress.wanted():
            progress.say(str(estimate))

    def line(self, line: Line) -> None:
        if self.tell is not None:
            self.tell(line)


def compile(
    program: ModuleSource,
    pipeline: Pipeline | str | Iterable[Pass | str],
    *,
    entry: str | None = None,
    target: str = DEFAULT_TARGET.name,
    validate: bool = False,
    seed: int = 0,
    inputs: Kind = "integers",
    orders: int = 1,
    numerics: str = "exact",
    max_instructions: int | None = None,
    ordering: str = "silicon",
    assumptions: Assumptions | None = None,
    jobs: int = 1,
    budget: float | None = None,
    cache: bool = True,
    tune: bool = False,
    assembler: str = "ptxas",
    debug_prefix_map: Mapping[str, str] | None = None,
    **options: OptionValue,
) -> Kernel:
    """Compiles `program` (an `ir.Module`, MLIR text or a path) with `pipeline` (or its name).

    entry:    name of the public function to compile if there are several; functions that it does
              not call are dropped
    validate: whether the program is executed after every pass, see `tcir.validate`; the verdicts
        are in ``kernel.report``. The options from `seed` to `budget` are those of `tcir.validate`
    cache:    whether a kernel that was compiled before is taken from the user's cache (not with
              `validate`)
    tune:     whether options that the caller omits get the values that ``tc-bench sweep`` found
              fastest for this program, pipeline and target; `report.notes` lists them, or states
              that there was no sweep
    assembler: ``ptxas``, or ``nvjitlink`` (a library, through cuda-python: ``pip install
        tcir[nvjitlink]``; it does not support setmaxnreg)
    debug_prefix_map: replacements of path prefixes in PTX and cubin, which contain the program's
        file name: ``{os.getcwd(): "."}``
    options:  options of a named pipeline

    If the report is "different" and a native library crashed on the IR of a later pass, the kernel
    has no PTX. An `Error` of a pass contains the report of the passes before it, ``error.report``.
    """
    import_whole(*PACKAGES, *_mlir.modules())
    check_name(target)
    check_assembler(assembler)
    check_flags(validate=validate, cache=cache, tune=tune)
    if not isinstance(debug_prefix_map, Mapping | None):
        raise InputError(
            "debug_prefix_map: expected a mapping of prefixes, such as {os.getcwd(): '.'}, got "
            f"{debug_prefix_map!r:.80}"
        )
    steps = as_pipeline(pipeline, **options)
    store = user_store()
    settings = Settings(
        seed, inputs, orders, numerics, max_instructions, ordering, assumptions, jobs, budget
    )
    codegen.start()  # while the dialect is loaded
    with mlir_context() as context:
        module = load_module(program, context, entry)
        notes = []
        if tune:
            steps, note = tuned_pipeline(store, module, pipeline, target, options)
            notes.append(note)
        ours = is_ours(steps)
        keeps = cache and not validate and store.folder is not None and ours
        key = kernel_key(module, steps, target, debug_prefix_map or {}) if keeps else ""
        if keeps and (kept := find_kernel(store, key)) is not None:
            kept.assembler = assembler
            kept.report.notes += notes
            return kept
        texts = TextKeeper(module, ours)
        signature = signature_of(module)
        session = Session(
            module,
            steps,
            target=target,
            signature=signature,
            settings=settings if validate else None,
            watcher=texts,
        )
        session.debug_prefix_map = debug_prefix_map or {}
        if validate:
            session.keep_states()
        session.report.program = signature.name
        code = Code(LaunchSequence(()), "")
        with _report_survives(session.report):
            session.run_passes()
            code = session.generate("ptx")
    kernel = Kernel(
        signature, code.launches, target, code.ptx, code.llvm, session.report, texts.states,
        store=store if cache else NO_STORE, assembler=assembler,
    )  # fmt: skip
    if keeps:
        keep_kernel(store, key, kernel)
    kernel.report.notes += notes
    return kernel


def validate(
    program: ModuleSource,
    pipeline: Pipeline | str | Iterable[Pass | str] = (),
    *,
    entry: str | None = None,
    target: str = DEFAULT_TARGET.name,
    seed: int = 0,
    inputs: Kind = "integers",
    orders: int = 1,
    numerics: str = "exact",
    max_instructions: int | None = None,
    ordering: str = "silicon",
    assumptions: Assumptions | None = None,
    jobs: int = 1,
    budget: float | None = None,
    strict: bool = False,
    kinds: bool = False,
    on_line: Callable[[Line], None] | None = None,
    **options: OptionValue,
) -> Report:
    """Runs `pipeline` over `program` (an `ir.Module`, text or path), and executes the program after
    every pass.

    If the pipeline ends in llvm and nvvm for `target`, PTX is generated and executed as well.
    `program` is not modified. Execution stops at the first pass with a different result; later
    passes count as not executed. An `Error` of a pass contains the report of the passes before it,
    ``error.report``.

    entry, options: as in `tcir.compile`
    seed:     seed of the inputs and of the completion orders
    inputs:   "integers" (exact sums) or "random"
    orders:   number of completion orders that are tried per asynchronous level
    max_instructions: limit of one execution; by default it is proportional to the instructions of
        the execution before, so that an endless loop ends soon
    numerics: "exact" or "fast" (float32)
    ordering: "silicon"; or "isa", which also reports as errors any reliance on orderings that the
        PTX ISA does not promise, although kernels in production rely on them
    assumptions: answers to open questions about the hardware (`tcir.machine.Assumptions`)
    jobs:     number of processes. From the thread level on they run blocks of a grid; if there are
              several orders, they run the orders
    budget:   seconds; a validation that is estimated to take longer executes a sample of the CTAs,
              and its verdict is "sampled"
    kinds:    whether the simulated machine executes only one launch of each kind (pass
              share-kernels). The report names the other launches of the kind, whose results tensor
              rules compute from their own buffers. If the execution would exceed the budget, the
              report names the kinds and states that were left out, and the verdict is "incomplete"
    strict:   whether the verdict is "small numbers", which is no success, if the inputs did not
              cover the range and the special values of their types
    on_line:  called with each line of the report when it is complete
    """
    import_whole(*PACKAGES, *_mlir.modules())
    steps = as_pipeline(pipeline, **options)
    settings = Settings(
        seed, inputs, orders, numerics, max_instructions, ordering, assumptions, jobs, budget,
        strict=strict, kinds=kinds,
    )  # fmt: skip
    codegen.start()  # while the dialect is loaded
    with mlir_context() as context:
        module = load_module(program, context, entry)
        session = Session(module, steps, target=target, settings=settings, watcher=_Lines(on_line))
        session.keep_states()
        with _report_survives(session.report):
            session.run_passes()
            if session.report.held and session.lowered():
                session.generate("ptx")
    return session.report


@contextmanager
def _report_survives(report: Report) -> Iterator[None]:
    """Context that stores an exception's message in the report, and the report in a tcir error.

    Nothing is raised if the report is "different" already: an error of a later pass on a program
    that an earlier pass broke is not a verdict.
    """
    try:
        yield
    except Exception as error:
        different = report.verdict == "different"
        report.error = str(error)
        if different:
            return
        if isinstance(error, Error):
            report.error_code, error.report = error.exit_code, report
        raise

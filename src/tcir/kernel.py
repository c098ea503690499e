"""`Kernel`: the result of `tcir.compile`. It can be inspected, called on numpy arrays, or launched
on a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

import numpy as np

from tcir.cache import NO_STORE, Store, digest, versions
from tcir.errors import Error, IncompleteError, InputError, LaunchError, check_names
from tcir.interp import Outcome
from tcir.program.execution import run_sequence
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.launch_table import LaunchTable, launch_table, works_of
from tcir.program.memory_image import is_image, to_memory
from tcir.program.signature import Signature
from tcir.program.ways_out import to_array, to_type
from tcir.progress import simulated
from tcir.run_options import RunOptions
from tcir.target import EMULATING
from tcir.threads import cached_property
from tcir.validation.report import Report

if TYPE_CHECKING:
    from tcir.machine.assumptions import Assumptions
    from tcir.modelled import ModelledProgram


class HazardError(Error):
    """Raised if the simulated machine found that a result depends on timing; `outcome` contains the
    findings.
    """

    exit_code = 1

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("\n".join(str(finding) for finding in outcome.errors))
        self.outcome = outcome


Hazards: TypeAlias = Literal["raise", "report", "off"]


class MachineOptions(TypedDict, total=False):
    """Options of an execution on the simulated machine; see `tcir.run_options.RunOptions`."""

    order_seed: int | None
    numerics: str
    max_instructions: int
    ordering: str
    assumptions: Assumptions | None
    jobs: int


class CallOptions(MachineOptions, total=False):
    """Options of a call of a kernel: those of the simulated machine, and two of the call itself.

    hazards:  "raise" (default): raises `HazardError` if a result depends on timing; under
              ``ordering="isa"`` it also raises if only kernels in production, and not the PTX ISA,
              support that the result does not depend on timing. "report": the findings are in the
              `Outcome`. "off": hazards are not checked
    progress: whether an estimate of the duration and the remaining time are printed on standard
        error; default: on a terminal, unless TCIR_PROGRESS is 0
    """

    hazards: Hazards
    progress: bool | None


@dataclass
class Kernel:
    """A compiled kernel, or program of several launches.

    ir:        the program after each pass, by the pass's name ("(input)" first; a pass that runs
               twice has "name#2" for its second result); constants of more than 65536 elements are
               left out. Passes that changed nothing are available by name, but not listed
    ptx:       PTX text; `cubin` and `sass` are generated from it on first use
    launches:  grid, block, shared memory and parameters of each launch, in order
    signature: shapes and types of inputs and results
    report:    times per pass, and verdicts if compiled with ``validate=True``. If a pass changed
               the result so that a later pass or code generation was impossible, there are no
               launches and no PTX
    store:     cache in which the cubin is kept
    assembler: assembler of the cubin, ``ptxas`` or ``nvjitlink``
    """

    signature: Signature
    launches: LaunchSequence
    target: str
    ptx: str
    llvm: str
    report: Report
    ir: Mapping[str, str] = field(repr=False)
    store: Store = field(default=NO_STORE, repr=False, compare=False, kw_only=True)
    assembler: str = field(default="ptxas", repr=False, kw_only=True)
    _seconds: float | None = field(default=None, repr=False, compare=False, kw_only=True)
    """Duration of the last call on the simulated machine, in seconds."""

    def __repr__(self) -> str:
        inputs, outputs = (
            ", ".join(map(str, specs)) for specs in (self.signature.inputs, self.signature.outputs)
        )
        lines = self.ptx.count("\n")
        return (
            f"<{type(self).__name__} @{self.name} for {self.target}: {inputs} -> {outputs}; "
            f"launches: {len(self.launches.launches)}, lines of PTX: {lines}>"
        )

    @property
    def name(self) -> str:
        """The name of the program; if there is only one kernel, the name of that kernel's entry."""
        return self.signature.name

    @property
    def launch_config(self) -> Launch:
        """The launch of a program that has only one launch."""
        return self.launches.only

    @cached_property
    def launch_table(self) -> LaunchTable:
        """Table of the launches: the computation of each, the ops fused into it, and the bytes
        passed between launches.
        """
        return launch_table(self.launches, self.signature, works_of(self.ir.values()))

    def modelled(self) -> ModelledProgram:
        """Modelled time of each launch, with its bytes and the resource that limits it. `str()` of
        the result is a table, its `trace()` a timeline for Perfetto.

        At least eight clusters of each kind of launch are executed on zeros; the time model
        receives the events of the first cluster. Nothing is measured. Raises `tcir.LaunchError` for
        an operation without constants in the time model.
        """
        from tcir.modelled import modelled

        self._check_code()
        works = works_of(self.ir.values())
        return modelled(self.ptx, self.launches, self.signature, self.target, works=works)

    @cached_property
    def cubin(self) -> bytes:
        """The assembled kernel. Raises `MissingDependencyError` if no assembler is installed."""
        from tcir import codegen

        self._check_code()
        of = ("cubin", self.assembler, self.ptx, self.target, versions())
        key = digest(*of) if self.store.folder else ""
        found = self.store.get(key)
        if found is None:
            found = codegen.assemble(self.ptx, self.target, self.assembler).data
            self.store.put(key, found)
        return found

    @cached_property
    def sass(self) -> str:
        """The disassembly of the cubin."""
        from tcir import codegen

        return codegen.disassemble(self.cubin)

    def __call__(
        self,
        *buffers: np.ndarray,
        hazards: Hazards = "raise",
        progress: bool | None = None,
        **options: Unpack[MachineOptions],
    ) -> Outcome:
        """Executes the PTX on the simulated machine. The buffers are the inputs, followed by the
        results, which are written.

        Arrays are numpy's (or ml_dtypes') with the shapes and types of `signature`; inputs with
        elements of 4 and 6 bits may also be packed bytes (`tcir.program.memory_image`). Options:
        see `CallOptions`; `UnknownNameError` for another option.
        """
        check_names(f"@{self.name}", options, CallOptions)
        if not isinstance(hazards, str) or hazards not in ("raise", "report", "off"):
            raise LaunchError(f"hazards: expected 'raise', 'report' or 'off', got {hazards!r}")
        run_options = RunOptions(hazards="off" if hazards == "off" else "report", **options)
        self._check_code()
        _check_buffers(self.name, self.signature, buffers)
        inputs = [to_memory(array) for array in buffers[: len(self.signature.inputs)]]
        outputs = self.signature.outputs
        with simulated(self.name, self.launches, self._seconds, progress) as told:
            started = time.monotonic()
            outcome = run_sequence(
                self.ptx, self.launches, inputs, outputs, run_options, progress=told
            )
            self._seconds = time.monotonic() - started
        if outcome.incomplete:
            raise IncompleteError(f"@{self.name}: without a rule: {', '.join(outcome.incomplete)}")
        if hazards == "raise" and outcome.errors:
            raise HazardError(outcome)
        for target, result in zip(buffers[len(inputs) :], outcome.outputs, strict=True):
            target[...] = result if target.dtype == result.dtype else to_memory(result)
        return outcome

    def run(
        self, *inputs: np.ndarray, **options: Unpack[CallOptions]
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Returns the result for `inputs` in a new array, or a tuple of arrays if there are several
        results.

        Executes the PTX on the simulated machine; options and errors are those of calling the
        kernel.
        """
        try:
            results = [np.zeros(spec.shape, spec.dtype) for spec in self.signature.outputs]
            self(*inputs, *results, **options)
        except MemoryError as error:
            raise InputError(
                f"@{self.name}: this computer has too little memory to execute these arrays: "
                f"{error}; compile and launch do not need it"
            ) from error
        return results[0] if len(results) == 1 else tuple(results)

    def _check_code(self) -> None:
        """Raises VerdictError for a kernel without code; the report states why."""
        if not self.ptx:
            self.report.check()

    def launch(self, *buffers: Any, stream: Any = None, emulate: bool = False) -> None:
        """Runs the cubin on a GPU; see `tcir.runtime.launch`.

        emulate: whether to run a program for sm_100a on a GPU of compute capability 9.0; see
            `emulated`
        """
        from tcir.runtime.launching import launch

        launch(self.emulated._for_the_driver if emulate else self, *buffers, stream=stream)

    @cached_property
    def _for_the_driver(self) -> Kernel:
        """The kernel with its PTX in place of the cubin, for the driver to compile: its compiler
        is always as old as the driver."""
        made = replace(self)
        made.__dict__["cubin"] = self.ptx.encode() + b"\0"
        return made

    @cached_property
    def emulated(self) -> Kernel:
        """A program for sm_100a rewritten for sm_90a, in which helper warps do the work of the
        tensor core.

        Raises `tcir.emulation.EmulationError`, which names an instruction that cannot be emulated.
        """
        from tcir.emulation import emulate_all, narrow

        self._check_code()
        params = [param for each in self.launches.launches for param in each.params]
        ptx, launches = emulate_all(
            self.ptx,
            self.launches.launches,
            narrow=narrow.some(param.get("dtype") for param in params),
        )
        sequence = replace(self.launches, launches=tuple(launches))
        return replace(self, ptx=ptx, target=EMULATING, launches=sequence)


def _check_buffers(name: str, signature: Signature, buffers: tuple[Any, ...]) -> None:
    expected = [*signature.inputs, *signature.outputs]
    words = ", ".join(map(str, expected))
    if len(buffers) != len(expected):
        without = len(buffers) == len(signature.inputs)
        run = ", inputs alone; run() makes the results" if without else ""
        raise InputError(
            f"@{name}: expected {len(expected)} arrays ({words}), got {len(buffers)}{run}"
        )
    for number, (spec, buffer) in enumerate(zip(expected, buffers, strict=True)):
        if is_image(buffer, spec):
            continue
        if (
            not isinstance(buffer, np.ndarray)
            or buffer.shape != spec.shape
            or buffer.dtype != spec.dtype
        ):
            if isinstance(buffer, np.ndarray):
                got = f"{buffer.dtype.name}{list(buffer.shape)}"
                way_out = to_type(buffer, spec.dtype)
            else:
                got, way_out = type(buffer).__name__, to_array(buffer, spec.dtype)
            words = f"expected an array {spec}, got {got}" + (way_out and f"; {way_out}")
            raise InputError(f"@{name}: argument {number}: {words}")
        if number >= len(signature.inputs) and not buffer.flags.writeable:
            raise InputError(
                f"@{name}: argument {number}: expected an array for the result, got a read-only one"
            )

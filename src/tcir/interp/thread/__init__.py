"""Executes a thread-level kernel (scf, arith, cf, llvm, nvvm): translates ("spells") each op to
naive PTX, and runs the PTX.

There is one file per dialect. `spelling` is the table of rules and takes rules from user code. The
translation never uses LLVM, so its results are an independent check of the PTX from the NVPTX back
end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcir._mlir import ir
from tcir.errors import IncompleteError, InputError, format_location
from tcir.interp import Outcome, OutputSpec
from tcir.interp.thread import control
from tcir.interp.thread.speller import Speller, bits, spelling
from tcir.interp.types import Array
from tcir.program.execution import run_kernel
from tcir.program.launch import Launch
from tcir.program.programs import Program
from tcir.program.symbols import legal_symbol, spelled_symbol
from tcir.rule_files import load_folder
from tcir.run_options import DEFAULT_OPTIONS, RunOptions
from tcir.target import DEFAULT_TARGET

__all__ = ["Spelling", "run", "spell", "spelling"]

PTX_HEADER = ".version 8.8\n.target {target}\n.address_size 64\n"


@dataclass(frozen=True)
class Spelling:
    """PTX of a module. If some ops have no rule, lists these ops, and `ptx` is empty."""

    ptx: str
    incomplete: tuple[str, ...] = ()

    @property
    def instructions(self) -> list[str]:
        """Lines of the PTX without its source locations. Two kernels with equal lines have equal
        executions.
        """
        locations = ("\t.loc\t", ".file ")
        return [line for line in self.ptx.splitlines() if not line.startswith(locations)]


def spell(module: ir.Module, name: str) -> Spelling:
    """Translates the kernel `name` in the `gpu.module` of `module` to PTX, one op at a time."""
    function, shared = _find(module, name)
    missing = spelling.missing(function)
    if missing:
        return Spelling("", tuple(missing))
    speller = Speller()
    symbol = legal_symbol(Program(function, "thread").symbol)
    try:
        parameters = _parameters(speller, function, symbol)
        control.function_body(speller, function.regions[0])
    except IncompleteError as error:
        op = getattr(error, "op", function)
        return Spelling("", (f"{format_location(op.location)}{op.name}: {error}",))
    block = list(function.attributes["nvvm.reqntid"])
    lines = [
        PTX_HEADER.format(target=_target(function)),
        *shared,
        f".visible .entry {symbol}(",
        ",\n".join(f"\t{parameter}" for parameter in parameters),
        ")",
        f".reqntid {', '.join(map(str, block))}",
        *_cluster(function),
        *_registers(function),
        "{",
        *speller.declarations(),
        *speller.lines,
        "}",
        *(f'.file {number} "{file}"' for file, number in speller.files.items()),
    ]
    return Spelling("\n".join(lines) + "\n")


def run(
    module: Any,
    name: str,
    inputs: Sequence[Array],
    outputs: Sequence[OutputSpec],
    options: RunOptions = DEFAULT_OPTIONS,
    *,
    buffers: Sequence[int] | None = None,
    whole: Collection[int] = (),
    spelled: Spelling | None = None,
) -> Outcome:
    """Runs kernel `name` of the `gpu.module` in `module`; see `tcir.interp.Executor`.

    buffers: for one kernel of several, the buffer numbers of `inputs` and `outputs`
             (`tcir.program.execution`)
    whole:   the `outputs` that another kernel reads, of which all bytes must be written
    spelled: result of `spell`, to reuse it for several executions of one kernel
    """
    spelled = spelled or spell(module, name)
    if spelled.incomplete:
        return Outcome([], "thread", incomplete=list(spelled.incomplete))
    launch = Launch.from_program(Program(_find(module, name)[0], "thread"))
    if buffers is not None:
        launch = launch.renumbered(buffers)
    outcome = run_kernel(spelled.ptx, launch, inputs, outputs, options, whole=whole)
    return replace(outcome, level="thread")


def _find(module: ir.Module, name: str) -> tuple[Any, list[str]]:
    """Returns the kernel, and the declarations of shared memory."""
    for outer in module.body.operations:
        if outer.operation.name != "gpu.module":
            continue
        ops = [op.operation for op in outer.operation.regions[0].blocks[0].operations]
        for op in ops:
            if op.name == "llvm.func" and ir.StringAttr(op.attributes["sym_name"]).value == name:
                return op, [_shared(other) for other in ops if other.name == "llvm.mlir.global"]
    raise InputError(f"expected a gpu.module with the kernel @{name}, got none")


def _target(function: ir.Operation) -> str:
    """Returns the kernel's ``tc.target``, whose generation decides the arithmetic of mma.sync."""
    name = "tc.target"
    if name not in function.attributes:
        return DEFAULT_TARGET.name
    return str(ir.StringAttr(function.attributes[name]).value)


def _cluster(function: ir.Operation) -> list[str]:
    """Returns the ``.reqnctapercluster`` directive of a kernel whose CTAs form clusters; else
    none."""
    name = "nvvm.cluster_dim"
    if name not in function.attributes:
        return []
    return [f".reqnctapercluster {', '.join(map(str, function.attributes[name]))}"]


def _registers(function: ir.Operation) -> list[str]:
    """Returns the ``.maxnreg`` directive of a kernel whose warpgroups redistribute registers; else
    none."""
    name = "nvvm.maxnreg"
    if name not in function.attributes:
        return []
    return [f".maxnreg {ir.IntegerAttr(function.attributes[name]).value}"]


def _shared(op: ir.Operation) -> str:
    """Returns the declaration of a symbol in shared memory; size 0 is the dynamic part."""
    name = ir.StringAttr(op.attributes["sym_name"]).value
    kind, space = str(op.attributes["global_type"]), op.attributes["addr_space"].value
    size = kind.removeprefix("!llvm.array<").removesuffix(" x i8>")
    if space != 3 or not size.isdigit() or len(op.regions[0].blocks):
        raise InputError(
            f"{format_location(op.location)}expected globals to be uninitialised bytes in shared "
            f"memory, got @{name} of type {kind} in address space {space}"
        )
    align = op.attributes["alignment"].value if "alignment" in op.attributes else 1
    name = spelled_symbol(name)
    if size == "0":
        return f".extern .shared .align {align} .b8 {name}[];"
    return f".shared .align {align} .b8 {name}[{size}];"


def _parameters(speller: Speller, function: ir.Operation, symbol: str) -> list[str]:
    """Returns the parameter list, and reads each parameter into the register of its argument."""
    given = function.attributes.get("arg_attrs", None)
    declared = []
    for number, argument in enumerate(function.regions[0].blocks[0].arguments):
        parameter = f"{symbol}_param_{number}"
        attributes = {e.name: e.attr for e in given[number]} if given is not None else {}
        register = speller.define_one(argument)
        if "llvm.byval" in attributes:
            if "nvvm.grid_constant" not in attributes:
                raise IncompleteError("no rule for a by-value parameter without nvvm.grid_constant")
            words = int(str(attributes["llvm.byval"]).split("<")[1].split(" x i64")[0])
            align = attributes["llvm.align"].value
            declared.append(f".param .align {align} .b8 {parameter}[{8 * words}]")
            inside = speller.fresh("b64")
            speller.emit(f"mov.b64 {inside}, {parameter}")
            speller.emit(f"cvta.param.u64 {register}, {inside}")
        else:
            width = f"u{bits(argument.type)}"
            least = attributes.get("llvm.align")
            pointee = "" if least is None else f" .ptr .align {least.value}"
            declared.append(f".param .{width}{pointee} {parameter}")
            speller.emit(f"ld.param.{width} {register}, [{parameter}]")
    return declared


load_folder(__name__)

"""The `gpu.module` that all kernels of a program share, and the attributes that launches read.

``tc.args``:   buffers of the program that are the arguments of a function or kernel
``tc.order``: place of a kernel in the sequence of launches; absent if there is a single launch
``tc.target``: target of the module
"""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import func, ir, llvm
from tcir.dialect.attributes import integer, integers, string
from tcir.errors import PassError
from tcir.passes.emit.builders import i64
from tcir.passes.emit.tensor_functions import functions_with_body
from tcir.program.repeats import REPEATS
from tcir.target import DEFAULT_TARGET

NAME = "kernels"


def kernels_block(module: ir.Module) -> ir.Block:
    """The block of ``gpu.module @kernels`` in `module`, which is created on first use."""
    for op in module.body.operations:
        if op.operation.name == "gpu.module":
            return op.operation.regions[0].blocks[0]
    with ir.InsertionPoint(module.body):
        made = ir.Operation.create(
            "gpu.module", attributes={"sym_name": ir.StringAttr.get(NAME)}, regions=1
        )
    return made.regions[0].blocks.append()


def is_converted(module: ir.Module) -> bool:
    """Whether a module has kernels and no functions, so that all its launches run on CUDA cores."""
    return [op.operation.name for op in module.body] == ["gpu.module"]


def buffer_numbers(function: func.FuncOp, count: int) -> list[int]:
    """The buffer numbers of the `count` inputs and results of a function."""
    return integers(function, "tc.args") if "tc.args" in function.attributes else list(range(count))


def buffer_number(kernel: func.FuncOp, argument: int) -> int:
    """The buffer number of argument `argument` of a tile-level kernel."""
    return buffer_numbers(kernel, argument + 1)[argument]


def launch_order(function: func.FuncOp) -> int | None:
    """The function's position in the sequence of launches; None if it is the only launch."""
    return integer(function, "tc.order") if "tc.order" in function.attributes else None


def numbered_launches(module: ir.Module) -> list[func.FuncOp]:
    """The launches of a program on tensors, in order; none if the program has only one launch, or
    if one of its functions is not a launch."""
    functions = functions_with_body(module)
    if any("tc.args" not in f.attributes or launch_order(f) is None for f in functions):
        return []
    return sorted(functions, key=lambda f: launch_order(f) or 0)


def number_launches(functions: Sequence[func.FuncOp]) -> None:
    """Sets ``tc.order`` of functions, given in the order of their launches; a single launch gets no
    ``tc.order``."""
    for order, function in enumerate(functions):
        if len(functions) > 1:
            function.attributes["tc.order"] = i64(order)
        elif "tc.order" in function.attributes:
            del function.attributes["tc.order"]


def next_buffer(module: ir.Module, alone: int) -> int:
    """The buffer number for a new workspace. alone: the number to use if the only launch has no
    buffer numbers"""
    numbers = [n for each in launches_of(module) for n in _buffers(each)]
    return max([alone, *(n + 1 for n in numbers)])


def insert_launch(module: ir.Module, order: int) -> None:
    """Makes room for a new launch at position `order`: launches from there on move one position
    later.

    Raises PassError if kernels are launched several times, because the new launch would have to be
    repeated as well.
    """
    if REPEATS in module.operation.attributes:
        raise PassError(
            "expected a function for each launch, got tc.repeats (share-kernels); run "
            "share-kernels after this pass",
            module.operation.location,
        )
    for each in launches_of(module):
        if "tc.order" in each.attributes and integer(each, "tc.order") >= order:
            each.attributes["tc.order"] = i64(integer(each, "tc.order") + 1)


def launches_of(module: ir.Module) -> list[ir.OpView]:
    """The launches of a module: its functions, and the kernels in its ``gpu.module``."""
    ops = list(module.body.operations)
    kernels = [op for op in ops if op.operation.name == "gpu.module"]
    inside = [each for op in kernels for each in op.operation.regions[0].blocks[0]]
    return [each for each in (*ops, *inside) if each.operation.name in ("func.func", "llvm.func")]


def _buffers(launch: ir.OpView) -> list[int]:
    if "tc.args" in launch.attributes:
        return integers(launch, "tc.args")
    entries = launch.attributes.get("tc.params", ())
    return [int(entry["arg"].value) for entry in entries if "arg" in entry]


def target_of(module: ir.Module) -> str:
    """The architecture for which `module` is compiled."""
    op = module.operation
    return string(op, "tc.target") if "tc.target" in op.attributes else DEFAULT_TARGET.name


def pointer_type(space: int) -> ir.Type:
    """``!llvm.ptr`` of an address space: 0 generic, 1 global, 3 shared, 6 tensor, 7 cluster."""
    return llvm.PointerType.get(space) if space else llvm.PointerType.get()

"""split-launches: divides a function of several ops on tensors into one function per op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.attributes import integers
from tcir.dialect.upstream import RESHAPES
from tcir.passes.analysis.head_maps import views_of
from tcir.passes.analysis.strided import view_ops
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.calls import CHOOSE
from tcir.passes.emit.clone import clone
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import buffer_numbers, launch_order, number_launches
from tcir.passes.emit.tensor_functions import functions_with_body, tensor_bytes
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark

LAYOUT_ONLY = {
    tc.RepackOp: "repack",
    tc.ScalesToBlockedOp: "scales",
    tc.PackCodesOp: "pack",
    tc.UnpackCodesOp: "unpack",
}
"""Ops that change the layout of another op's operand, and the suffixes of their kernels."""
LAUNCHED = (
    tc.Conv2dOp,
    tc.MatmulOp,
    tc.BlockScaledMatmulOp,
    tc.GroupedMatmulOp,
    tc.SumPartsOp,
    tc.AttentionOp,
    tc.AttentionBackwardOp,
    tc.CombinePartsOp,
    *LAYOUT_ONLY,
)
"""Ops that each become a kernel."""
SUFFIXES = {**LAYOUT_ONLY, tc.QuantiseBlocksOp: "quantise"}
"""Suffixes of the kernels next to a product's."""
Kinds: TypeAlias = tuple[type[ir.OpView], ...]


@register_pass
@dataclass(frozen=True)
class SplitLaunches(Pass):
    """Splits a function of several ``tc`` ops into functions that are launched one after another.

    Before::

        func.func @f(%x, %w) {
          %xp = "tc.repack"(%x); %y = "tc.conv2d"(%xp, %w); return %y
        }

    After (buffers 0 and 1 are the inputs, buffer 2 is the result, and buffer 3 is a workspace for
    %xp)::

        builtin.module attributes {tc.workspaces = array<i64: …>}
        func.func @f_repack0(%x) attributes {tc.order = 0, tc.args = array<i64: 0, 3>}
        func.func @f(%xp, %w) attributes {tc.order = 1, tc.args = array<i64: 3, 1, 2>}

    A function of one op stays as it is, and a ``tc.epilogue`` stays in the function of its op. A
    reshape of an operand or of the result disappears: the launch gets the buffer in the new shape.
    Functions that split-layers has already made launches are split one by one; their buffers keep
    their numbers. Preserves every value, bit for bit.

    quantise_apart: whether a ``tc.quantise_blocks`` becomes a separate launch; otherwise it is part
        of its op's launch
    """

    name: ClassVar[str] = "split-launches"
    quantise_apart: bool = False

    def run(self, module: ir.Module) -> None:
        functions = functions_with_body(module)
        functions.sort(key=lambda f: launch_order(f) or 0)
        kinds = (*LAUNCHED, tc.QuantiseBlocksOp) if self.quantise_apart else LAUNCHED
        several = [len(_launched(f, kinds)) > 1 or _is_reshaped(f, kinds) for f in functions]
        ordered = all(launch_order(f) is not None for f in functions)
        if any(several) and len(functions) > 1 and not ordered:
            raise match_failure(
                functions[several.index(True)],
                f"expected one function in a module with several launches, got {len(functions)} "
                "(buffers are numbered once for a module); "
                + CHOOSE.format(functions[several.index(True)].name.value),
            )
        if not any(several):
            return
        split = []
        for function, is_split in zip(functions, several, strict=True):
            split += _split(module, function, kinds) if is_split else [function]
        number_launches(split)


def _launched(function: func.FuncOp, kinds: Kinds) -> list[ir.OpView]:
    return [op for op in function.entry_block if isinstance(op, kinds)]


def _is_reshaped(function: func.FuncOp, kinds: Kinds) -> bool:
    """Whether the function is one launch, and reshapes of its arguments or of its result."""
    reshapes = [op for op in function.entry_block if isinstance(op, RESHAPES)]
    return bool(reshapes) and len(_launched(function, kinds)) == 1


def _split(module: ir.Module, function: func.FuncOp, kinds: Kinds) -> list[func.FuncOp]:
    """Replaces a function by its launches, in order."""
    ops, end = _launched(function, kinds), list(function.entry_block)[-1]
    values = [*function.entry_block.arguments, *end.operands]
    numbers = dict(zip(values, buffer_numbers(function, len(values)), strict=True))
    attributes = module.operation.attributes
    workspaces = list(attributes["tc.workspaces"]) if "tc.workspaces" in attributes else []
    free = len(workspaces) + _buffers(module, len(workspaces), len(values))
    for op in reversed(list(function.entry_block)):
        if isinstance(op, RESHAPES) and op.result in numbers:
            numbers.setdefault(op.src, numbers[op.result])  # the same bytes
    for op in function.entry_block:
        if isinstance(op, RESHAPES) and op.src in numbers:
            numbers.setdefault(op.result, numbers[op.src])
        elif isinstance(op, kinds):
            for stored in _stored(op, kinds):
                if stored not in numbers:
                    numbers[stored] = free
                    free += 1
                    workspaces.append(tensor_bytes(stored.type))
    attributes["tc.workspaces"] = i64s(workspaces)
    _check_returned(function, end, ops, kinds)
    main = next((op for op in reversed(ops) if type(op) not in SUFFIXES), ops[-1])
    launches = []
    for place, op in enumerate(ops):
        what = SUFFIXES.get(type(op), "part")
        name = function.name.value + ("" if op == main else f"_{what}{place}")
        launches.append(_outline(function, op, name, numbers, kinds))
    function.operation.erase()
    return launches


def _check_returned(
    function: func.FuncOp, end: ir.OpView, ops: list[ir.OpView], kinds: Kinds
) -> None:
    """Rejects a result that no launch writes: ops after the last launch would be dropped."""
    written = {value for op in ops for value in _stored(op, kinds)}
    for value in end.operands:
        source = value
        while _is_made(source) and isinstance(source.owner.opview, RESHAPES):
            source = source.owner.opview.src
        if _is_made(source) and source not in written:
            raise match_failure(
                value.owner.opview,
                f"expected @{function.name.value} to return what one of its launches writes, got "
                f"the result of {value.owner.name} after them: an epilogue is fused with sums in "
                "f32 only; let the op before it return f32, or put this one into a function of "
                "its own",
            )


def _is_made(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument)


def _buffers(module: ir.Module, workspaces: int, alone: int) -> int:
    """Inputs and results of the program; alone: of the only function, if it has no numbers."""
    given = [
        number
        for each in functions_with_body(module)
        if "tc.args" in each.attributes
        for number in integers(each, "tc.args")
    ]
    return max(given) + 1 - workspaces if given else alone


def _outline(
    function: func.FuncOp,
    op: ir.OpView,
    name: str,
    numbers: dict[ir.Value, int],
    kinds: Kinds,
) -> func.FuncOp:
    after, stored = _after(op, kinds), _stored(op, kinds)
    read = [value for each in (op, *after) for value in _read(each)]
    bases, made = _views(function, op, numbers)
    inputs = list(dict.fromkeys([*(bases.get(each, each) for each in op.operands), *read]))
    strange = next((value for value in inputs if value not in numbers), None)
    if strange is not None:
        raise match_failure(
            op,
            "expected arguments and results of other launches as operands, got the result of "
            f"{strange.owner.name}; "
            + (
                "quantise-apart=true makes that a launch"
                if isinstance(strange.owner.opview, tc.QuantiseBlocksOp)
                else "pass the operand in the shape that the op takes"
            ),
        )
    if (
        len(_launched(function, kinds)) == 1
    ):  # the only kernel takes the program's inputs in their order
        inputs.sort(key=numbers.__getitem__)
    kind = ir.FunctionType.get([value.type for value in inputs], [value.type for value in stored])
    with ir.InsertionPoint(function), op.location:
        new = func.FuncOp(name, kind)
        new.attributes["tc.args"] = i64s([numbers[value] for value in (*inputs, *stored)])
        block = new.add_entry_block([op.location] * len(inputs))
        known = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            copies = [clone(each, known) for each in (*made, op, *after)]
            if isinstance(op, tc.QuantiseBlocksOp):
                remark(op, f"quantised by a launch of its own, which reads {op.values.type}")
            func.ReturnOp(list(copies[-1].operation.results)[: len(stored)])
    return new


def _views(
    function: func.FuncOp, op: ir.OpView, numbers: dict[ir.Value, int]
) -> tuple[dict[ir.Value, ir.Value], list[ir.OpView]]:
    """The operands of an attention that are in the memory of other tensors, with these, and the ops
    that make them, in order."""
    if not isinstance(op, tc.AttentionOp):
        return {}, []
    bases = {each: view.base for each, view in views_of(op, numbers.__contains__).items()}
    made = {each for operand, base in bases.items() for each in view_ops(operand, base)}
    return bases, [each for each in function.entry_block if each.operation in made]


def _after(op: ir.OpView, kinds: Kinds) -> list[ir.OpView]:
    """The ``tc.epilogue`` of an op's result, and the ``tc.quantise_blocks`` of what that makes: the
    op's kernel computes them as well, where they are no launches (`kinds`)."""
    found: list[ir.OpView] = []
    for kind in (tc.EpilogueOp, tc.QuantiseBlocksOp):
        result = (found[-1] if found else op).operation.results[0]
        users = [use.owner.opview for use in result.uses]
        found += [user for user in users if kind not in kinds and isinstance(user, kind)][:1]
    return found


def _read(op: ir.OpView) -> list[ir.Value]:
    """Tensors that an op reads besides its operands or the result before it."""
    if isinstance(op, tc.EpilogueOp | tc.AttentionOp):
        return [each.tensor for each in op.elements]
    return list(op.operands)[1:] if isinstance(op, tc.QuantiseBlocksOp) else []


def _stored(op: ir.OpView, kinds: Kinds) -> list[ir.Value]:
    """Results that an op's kernel writes: of several, those that are used."""
    first, *others = [op, *_after(op, kinds)][-1].operation.results
    return [first, *(each for each in others if list(each.uses))]

"""specialise-shapes: fixes the dynamic batch size of a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, passmanager, tensor
from tcir.passes.emit.diagnostics import is_op, match_failure
from tcir.passes.emit.tensor_functions import functions_with_body
from tcir.passmanager.pipeline import Pass, register_pass

SMALLEST = (
    "func.func @f(%x: tensor<?x8xf16>) -> tensor<?x8xf16> { return %x : tensor<?x8xf16> }, "
    "specialise-shapes{batch=1}"
)


@register_pass
@dataclass(frozen=True)
class SpecialiseShapes(Pass):
    """Gives every dynamic dimension of the arguments the size `batch`.

    batch: the size

    Before, with ``batch=8``::

        func.func @f(%x: tensor<?x16xf16>, %w: tensor<16x32xf16>) -> tensor<?x32xf32> {
          %n = tensor.dim %x, %c0
          %e = tensor.empty(%n) : tensor<?x32xf32>

    After::

        func.func @f(%x: tensor<8x16xf16>, %w: tensor<16x32xf16>) -> tensor<8x32xf32> {
          %e = tensor.empty() : tensor<8x32xf32>

    Upstream's ``canonicalize`` propagates the size through the function, which determines the
    shapes of the results. Functions with static shapes only stay as they are. Preserves every value
    for arguments of this size.
    """

    name: ClassVar[str] = "specialise-shapes"
    batch: int = 1

    def run(self, module: ir.Module) -> None:
        if self.batch < 1:
            raise match_failure(
                module.operation,
                f"expected batch of at least 1 (images or rows of a launch), got {self.batch}",
                SMALLEST,
            )
        for function in functions_with_body(module):
            if dynamic_dims(function):
                self._specialise(function)

    def _specialise(self, function: func.FuncOp) -> None:
        block = function.entry_block
        for argument in block.arguments:
            kind = argument.type
            if _with(kind, self.batch) == kind:
                continue
            uses = list(argument.uses)
            argument.set_type(_with(kind, self.batch))
            with ir.InsertionPoint.at_block_begin(block), function.location:
                cast = tensor.CastOp(kind, argument).result
            for use in uses:
                use.owner.operands[use.operand_number] = cast
        _set_type(function)
        canonicalize = passmanager.PassManager.parse("func.func(canonicalize)")
        canonicalize.run(function.operation)
        while sum(map(_through, list(block))):
            canonicalize.run(function.operation)
        end = list(block)[-1]
        for number, each in enumerate(end.operands):
            if is_op(each, "tensor.cast"):
                end.operands[number] = each.owner.operands[0]
        _set_type(function)
        for op in list(block):
            if op.operation.name == "tensor.cast" and not list(op.results[0].uses):
                op.operation.erase()
        for op in function.entry_block:
            for each in op.results:
                if not _is_static(each.type):
                    raise match_failure(
                        op,
                        "expected sizes that follow from those of the arguments (tensor maps, "
                        f"tiles and grid are fixed when a kernel is compiled), got {each.type} of "
                        f"{op.operation.name}; take sizes from tensor.dim of an argument",
                        SMALLEST,
                    )


def _through(op: ir.OpView) -> bool:
    """Takes casts through an elementwise op on tensors, which ``canonicalize`` leaves as it is;
    whether there was one."""
    name, results = op.operation.name, list(op.results)
    if not name.startswith(("arith.", "math.")) or _is_static(results[0].type):
        return False
    sources = [v.owner.operands[0] if is_op(v, "tensor.cast") else v for v in op.operands]
    if not all(_is_static(source.type) for source in sources):
        return False
    for number, source in enumerate(sources):
        op.operands[number] = source
    kind = results[0].type
    shape = next(v.type.shape for v in sources if isinstance(v.type, ir.ShapedType))
    static = ir.RankedTensorType.get(shape, kind.element_type)
    uses = list(results[0].uses)
    results[0].set_type(static)
    after = list(op.operation.block)[list(op.operation.block).index(op) + 1]
    with ir.InsertionPoint(after), op.location:
        cast = tensor.CastOp(kind, results[0]).result
    for use in uses:
        use.owner.operands[use.operand_number] = cast
    return True


def _is_static(kind: ir.Type) -> bool:
    return not isinstance(kind, ir.ShapedType) or kind.has_static_shape


def _set_type(function: func.FuncOp) -> None:
    """Sets the function's type from its arguments and returned values."""
    end = list(function.entry_block)[-1]
    kinds = ([each.type for each in function.entry_block.arguments], [v.type for v in end.operands])
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))


def dynamic_dims(function: func.FuncOp) -> list[tuple[int, int]]:
    """The dynamic dimensions of the arguments, each as the number of the argument and the number of
    the dimension."""
    return [
        (number, dim)
        for number, argument in enumerate(function.entry_block.arguments)
        if isinstance(argument.type, ir.RankedTensorType)
        for dim in range(argument.type.rank)
        if argument.type.is_dynamic_dim(dim)
    ]


def _with(kind: ir.Type, size: int) -> ir.Type:
    """Replaces dynamic sizes of a type by `size`."""
    if not isinstance(kind, ir.RankedTensorType):
        return kind
    sizes = [size if kind.is_dynamic_dim(d) else kind.shape[d] for d in range(kind.rank)]
    return ir.RankedTensorType.get(sizes, kind.element_type)

"""collapse-batch: if a batch shares one matrix B, its rows become the rows of a single A."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.attributes import UNSIGNED, string
from tcir.dialect.ops.highlevel import k_part, out_layout
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.clone import clone_epilogue
from tcir.passes.emit.tensor_functions import functions_with_body, replacement
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark


@register_pass
@dataclass(frozen=True)
class CollapseBatch(Pass):
    """Turns the product of a batch of matrices with a single matrix B into a product without a
    batch; nothing is copied.

    Before (a linear layer)::

        func.func @f(%a: tensor<4x8x64xf16>, %b: tensor<64x256xf16>) -> tensor<4x8x256xf32> {
          %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}

    After: the same buffers (``tc.args``) in other shapes::

        func.func @f(%a: tensor<32x64xf16>, %b: tensor<64x256xf16>) -> tensor<32x256xf32>
            attributes {tc.args = array<i64: 0, 1, 2>}

    So a tile of 128 rows may contain rows of several matrices of the batch. A ``tc.epilogue`` and
    the tensors it reads are collapsed as well, if they are indexed by both dimensions or by
    neither. Other products keep their batch, and a kernel tiles each matrix of it. Preserves every
    value, bit for bit.
    """

    name: ClassVar[str] = "collapse-batch"

    def run(self, module: ir.Module) -> None:
        for function in functions_with_body(module):
            found = _Layer.of(function)
            if found is not None:
                found.collapse()


@dataclass(frozen=True)
class _Layer:
    """A function of one product and its epilogue, or none.

    collapsed: numbers of the arguments whose first two dimensions become one
    """

    function: func.FuncOp
    op: tc.MatmulOp
    after: tc.EpilogueOp | None
    collapsed: frozenset[int]

    @staticmethod
    def of(function: func.FuncOp) -> _Layer | None:
        """Reads a function that can be collapsed; None for any other function, and if an operand
        cannot be collapsed."""
        ops = list(function.entry_block)
        op, after = ops[0], ops[1] if len(ops) == 3 else None
        if len(ops) not in (2, 3) or not isinstance(op, tc.MatmulOp):
            return None
        if after is not None and not (
            isinstance(after, tc.EpilogueOp) and after.sums.type.shape == after.out.type.shape
        ):
            return None
        shared = op.a.type.rank == 3 and op.b.type.rank == 2
        plain = out_layout(op) == "mn" and k_part(op) is None
        if not shared or not plain or string(op, "a_layout") != "mk":
            return None
        reads = [(each.tensor, each.dims) for each in after.elements] if after else []
        both = {op.a: True, op.b: False}
        for tensor, dims in reads:
            rows = [d for d in dims if d in (0, 1)]
            adjacent = rows == [0, 1] and dims.index(1) == dims.index(0) + 1
            if (rows and not adjacent) or both.setdefault(tensor, adjacent) != adjacent:
                return None
        if not all(isinstance(value, ir.BlockArgument) for value in both):
            return None
        numbers = {ir.BlockArgument(value).arg_number for value, yes in both.items() if yes}
        return _Layer(function, op, after, frozenset(numbers))

    def collapse(self) -> None:
        """Replaces the function by its collapsed form."""
        old, op = self.function, self.op
        batch, rows = op.a.type.shape[:2]
        remark(op, f"{batch} x {rows} rows with the same B are {batch * rows} rows of one product")
        inputs = [
            self._argument(n, kind) if n in self.collapsed else kind
            for n, kind in enumerate(old.type.inputs)
        ]
        new = replacement(old, inputs, [_first_two(kind) for kind in old.type.results])
        if "tc.args" not in new.attributes:
            new.attributes["tc.args"] = i64s(range(len(inputs) + 1))
        block = new.add_entry_block([op.location] * len(inputs))
        with ir.InsertionPoint(block), op.location:
            operands = [self._new(block, value) for value in (op.a, op.b)]
            layouts = [ir.StringAttr.get(string(op, f"{side}_layout")) for side in "ab"]
            product = tc.MatmulOp(*operands, *layouts, _first_two(op.out.type))
            if UNSIGNED in op.attributes:
                product.operation.attributes[UNSIGNED] = op.attributes[UNSIGNED]
            value = product.out
            if self.after is not None:
                value = self._epilogue(self.after, block, value)
            func.ReturnOp([value])
        old.operation.erase()

    def _argument(self, number: int, kind: ir.RankedTensorType) -> ir.RankedTensorType:
        """The type of a collapsed argument: the two dimensions may be anywhere in a residual."""
        value = self.function.entry_block.arguments[number]
        if value == self.op.a or self.after is None:
            return _first_two(kind)
        element = next(each for each in self.after.elements if each.tensor == value)
        return _joined(kind, element.dims.index(0))

    def _new(self, block: ir.Block, value: ir.Value) -> ir.Value:
        return block.arguments[ir.BlockArgument(value).arg_number]

    def _epilogue(self, after: tc.EpilogueOp, block: ir.Block, sums: ir.Value) -> ir.Value:
        """The epilogue on the collapsed sums."""

        def element(each: tc.ElementOp) -> tc.ElementOp:
            return tc.ElementOp(self._new(block, each.tensor), _map(each.dims), each.value.type)

        return clone_epilogue(after, sums, _first_two(after.out.type), element)


def _joined(kind: ir.RankedTensorType, first: int) -> ir.RankedTensorType:
    """The type with dimensions `first` and the next as one."""
    shape = list(kind.shape)
    shape[first : first + 2] = [shape[first] * shape[first + 1]]
    return ir.RankedTensorType.get(shape, kind.element_type)


def _first_two(kind: ir.RankedTensorType) -> ir.RankedTensorType:
    return _joined(kind, 0)


def _map(dims: list[int | None]) -> ir.Attribute:
    """The map of an element: dimensions 0 and 1 are 0 now, dimension 2 is 1."""
    zero = ir.AffineConstantExpr.get(0)
    results = [
        zero if d is None else ir.AffineDimExpr.get(0 if d == 0 else 1) for d in dims if d != 1
    ]
    return ir.AffineMapAttr.get(ir.AffineMap.get(2, 0, results))

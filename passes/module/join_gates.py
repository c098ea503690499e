"""join-gates: joins the two products of a gated activation, gate and value, into one product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tcir._mlir import arith, func, ir, tensor
from tcir.dialect import tc
from tcir.dialect.attributes import integers
from tcir.dialect.limits import TMEM_LANES
from tcir.dialect.ops.highlevel import k_part, out_layout
from tcir.dialect.warp_types import ATOM_COLUMNS, GATE_BLOCK
from tcir.passes.analysis.buffers import BufferNumbers
from tcir.passes.analysis.few_rows import has_few_rows
from tcir.passes.analysis.frozen import FROZEN
from tcir.passes.emit.builders import i64, i64s
from tcir.passes.emit.clone import clone
from tcir.passes.emit.gpu_module import numbered_launches, target_of
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import (
    SIMT,
    functions_with_body,
    replacement,
    tensor_bytes,
)
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.program.workspaces import SIZES, sizes_of
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class JoinGates(Pass):
    """Joins a product with a second product whose result the first one's epilogue reads element by
    element, such as gate and value of a SwiGLU. Both must multiply the same tensor by frozen
    matrices (``tc.frozen``).

    Before (%x is buffer 0, the frozen weights are buffers 1 and 2, the result is buffer 3, and %u
    is buffer 4)::

        builtin.module attributes {tc.frozen = array<i64: 1, 2>, tc.workspaces = array<i64: …>}
        func.func @up(%x, %wu) attributes {tc.order = 0, tc.args = array<i64: 0, 2, 4>} {
          %u = "tc.matmul"(%x, %wu) {a_layout = "mk", b_layout = "nk"}; return %u
        }
        func.func @gate(%x, %wg, %u) attributes {tc.order = 1, tc.args = array<i64: 0, 1, 4, 3>} {
          %g = "tc.matmul"(%x, %wg) {…}
          %y = "tc.epilogue"(%g) ({ ^bb0(%sum: f32): … "tc.element"(%u) {map = (m, n) -> …} … })
        }

    After (buffer 4 is the matrix of 2N rows, computed once for many calls)::

        func.func @up(%wg, %wu) attributes {tc.simt, tc.args = array<i64: 1, 2, 4>, …} {
          %w = tensor.concat dim(1) …; return %w  // 8 rows of %wg, 8 of %wu, and so on
        }
        func.func @gate(%x, %w) attributes {tc.args = array<i64: 0, 4, 3>, …} {
          %s = "tc.matmul"(%x, %w) {…}
          %y = "tc.epilogue"(%s) ({ ^bb0(%sum: f32, %value: f32): … }) {gate_block = 8 : i64}
        }

    The value is neither stored nor loaded, %x is read once, and a launch is saved. For targets with
    tcgen05 the columns of gate and value alternate one by one, because a thread holds a whole row.
    The products stay separate in three cases: if another launch also reads the value; if K is in
    parts, because a separate launch then adds up the parts of each product; and, for tcgen05, if
    there are fewer than 128 rows, because the operands would then be exchanged. Preserves every
    value, bit for bit.
    """

    name: ClassVar[str] = "join-gates"

    def run(self, module: ir.Module) -> None:
        functions = numbered_launches(module)
        if not functions:
            return
        numbers = BufferNumbers.of(module, functions)
        frozen = _frozen(module, numbers)
        if not frozen:
            return
        products = [each for each in map(ProductLaunch.of, functions) if each is not None]
        for gate in list(products):
            if not any(gate is each for each in products):
                continue  # the value of another one
            value, read = next(_values(gate, products), (None, None))
            if value is None or read is None:
                continue
            reason = _apart(
                gate, value, frozen, numbers, functions_with_body(module), target_of(module)
            )
            if reason:
                remark(gate.op, f"@{value.function.name.value} stays a launch: {reason}")
                continue
            _join(module, gate, value, read, numbers)
            products = [each for each in products if each is not gate and each is not value]


def _frozen(module: ir.Module, numbers: BufferNumbers) -> set[int]:
    """Numbers of the buffers that are the same at each call: frozen arguments and constants."""
    attributes = module.operation.attributes
    marked = set(integers(module.operation, FROZEN)) if FROZEN in attributes else set()
    return marked | set(numbers.constants)


@dataclass(frozen=True)
class ProductLaunch:
    """A launch of one product.

    after: its epilogue; numbers: the numbers of its buffers, with the result last
    """

    function: func.FuncOp
    op: tc.MatmulOp
    after: tc.EpilogueOp | None
    numbers: Sequence[int]

    @staticmethod
    def of(function: func.FuncOp) -> ProductLaunch | None:
        """Reads the product of a launch; None for other launches, or if the launch also has other
        results."""
        op, *rest, end = function.entry_block
        after = rest[0] if rest and isinstance(rest[0], tc.EpilogueOp) else None
        alone = len(rest) == (after is not None) and len(end.operands) == 1
        if not isinstance(op, tc.MatmulOp) or not alone:
            return None
        return ProductLaunch(function, op, after, integers(function, "tc.args"))

    @property
    def result(self) -> ir.Value:
        """The tensor that the launch stores."""
        return self.op.out if self.after is None else self.after.out

    def number(self, operand: ir.Value) -> int | None:
        """Number of the buffer that holds an operand; None if the launch computes the operand."""
        given = isinstance(operand, ir.BlockArgument)
        return self.numbers[operand.arg_number] if given else None


def _values(
    gate: ProductLaunch, products: Sequence[ProductLaunch]
) -> Iterator[tuple[ProductLaunch, tc.ElementOp]]:
    """The products whose result the epilogue of `gate` reads once, at its own indices, each with
    the op that reads it."""
    for value in products:
        made = value.numbers[-1]
        if gate.after is None or value is gate or made not in gate.numbers[:-1]:
            continue
        reads = [each for each in gate.after.elements if gate.number(each.tensor) == made]
        if len(reads) == 1 and list(reads[0].dims) == list(range(gate.after.rank)):
            yield value, reads[0]


def _apart(
    gate: ProductLaunch,
    value: ProductLaunch,
    frozen: set[int],
    buffers: BufferNumbers,
    functions: Sequence[func.FuncOp],
    target: str,
) -> str:
    """Why two products do not become one; "" if they do."""
    made = value.numbers[-1]
    if sum(integers(f, "tc.args").count(made) for f in functions) > 2:
        return "another op reads its result"
    if made not in buffers.workspaces:
        return "it makes a result of the program"
    alike = all(
        str(one.type) == str(other.type)
        for one, other in zip(gate.op.operands, value.op.operands, strict=True)
    )
    layouts = {(str(each.op.attributes["a_layout"]), out_layout(each.op)) for each in (gate, value)}
    if not alike or len(layouts) > 1 or gate.number(gate.op.a) != value.number(value.op.a):
        return "it multiplies another tensor, or by a matrix of another type"
    both = [each.op.attributes["b_layout"] for each in (gate, value)]
    if any(ir.StringAttr(each).value != "nk" for each in both) or gate.op.b.type.rank != 2:
        return "rows of its matrix are no columns of the result"
    if any(each.number(each.op.b) not in frozen for each in (gate, value)):
        return "the weights are not frozen, and would be copied at each call"
    if any(k_part(each.op) is not None for each in (gate, value)):
        return "parts of K are summed up by another launch"
    if any(each.after is not None and each.after.gated for each in (gate, value)):
        return "it is gated already"
    rows, block = prod(gate.op.out.type.shape[:-1]), _block(target)
    if gate.op.out.type.shape[-1] % block:
        return f"its columns are no blocks of {block}"
    if TARGETS[target].tcgen05 and rows < TMEM_LANES:
        return f"{rows} rows are fewer than {TMEM_LANES}, so that the columns become rows"
    if has_few_rows(gate.op) and gate.op.a.type.shape[-2] > gate.op.b.type.shape[-2]:
        return "its columns are few"
    return ""


def _block(target: str) -> int:
    """Columns of gates before as many of values."""
    return 1 if TARGETS[target].tcgen05 else ATOM_COLUMNS


def _join(
    module: ir.Module,
    gate: ProductLaunch,
    value: ProductLaunch,
    read: tc.ElementOp,
    buffers: BufferNumbers,
) -> None:
    """Replaces the launch of `value` by that of the alternating matrix, and `gate` by both."""
    block, made = _block(target_of(module)), value.numbers[-1]
    matrix = gate.op.b.type
    rows, k = matrix.shape
    both = ir.RankedTensorType.get([2 * rows, k], matrix.element_type)
    with ir.InsertionPoint(value.function), value.function.location:
        weights = func.FuncOp(
            value.function.name.value, ir.FunctionType.get([matrix, matrix], [both])
        )
    weights.attributes["tc.order"] = value.function.attributes["tc.order"]
    numbers = [each.numbers[ir.BlockArgument(each.op.b).arg_number] for each in (gate, value)]
    weights.attributes["tc.args"] = i64s([*numbers, made])
    weights.attributes[SIMT] = ir.UnitAttr.get()
    with ir.InsertionPoint(weights.add_entry_block()), value.op.location:
        parts = [reshape(each, [rows // block, 1, block, k]) for each in weights.arguments]
        shape = [rows // block, 2, block, k]
        kind = ir.RankedTensorType.get(shape, matrix.element_type)
        whole = tensor.ConcatOp(kind, 1, parts).result
        func.ReturnOp([reshape(whole, both.shape)])
    sizes = list(sizes_of(module))
    sizes[buffers.workspaces.index(made)] = tensor_bytes(both)
    module.operation.attributes[SIZES] = i64s(sizes)
    remark(
        gate.op,
        f"joined with @{value.function.name.value}, whose result is not stored: {both}, gates and "
        f"values in blocks of {block}",
    )
    _gated(gate, value, read, both, block)
    for each in (gate, value):
        each.function.operation.erase()


def _gated(
    gate: ProductLaunch,
    value: ProductLaunch,
    read: tc.ElementOp,
    both: ir.RankedTensorType,
    block: int,
) -> None:
    """A function of the joined product, in the place of `gate`."""
    function, op, after = gate.function, gate.op, gate.after
    assert after is not None
    kept: dict[int, ir.Value] = {}
    for each in (value, gate):
        for argument, number in zip(each.function.arguments, each.numbers):
            if argument not in (value.op.b, gate.op.b) and number != value.numbers[-1]:
                kept.setdefault(number, argument)
    kinds = [*(each.type for each in kept.values()), both]
    new = replacement(function, kinds, function.type.results)
    new.attributes["tc.args"] = i64s([*kept, value.numbers[-1], gate.numbers[-1]])
    inside = new.add_entry_block()
    of_number = dict(zip(kept, inside.arguments))
    known = {
        argument: of_number[number]
        for each in (value, gate)
        for argument, number in zip(each.function.arguments, each.numbers)
        if number in of_number
    }
    known[op.b] = inside.arguments[len(kept)]
    with ir.InsertionPoint(inside), op.location:
        product = clone(op, known)
        *outer, columns = op.out.type.shape
        f32 = ir.F32Type.get()
        sums = (
            f32 if isinstance(op.out.type.element_type, ir.FloatType) else op.out.type.element_type
        )
        product.out.set_type(ir.RankedTensorType.get([*outer, 2 * columns], sums))
        with after.location:
            made = tc.EpilogueOp(product.out, after.out.type)
        made.attributes[GATE_BLOCK] = i64(block)
        _bodies(made, sums, (gate, value), read, known)
        func.ReturnOp([made.out])


def _bodies(
    made: tc.EpilogueOp,
    sums: ir.Type,
    products: tuple[ProductLaunch, ProductLaunch],
    read: tc.ElementOp,
    known: Mapping[ir.Value, ir.Value],
) -> None:
    """Fills the body of a gated epilogue: that of the value, then the gate's, which reads it."""
    gate, value = products
    block = made.body.blocks.append(sums, sums, arg_locs=[gate.op.location, value.op.location])
    mapping = dict(known)
    with ir.InsertionPoint(block):
        number = _body(value, block.arguments[1], mapping)
        mapping[read.value] = number
        tc.YieldOp(_body(gate, block.arguments[0], mapping, read))


def _body(
    product: ProductLaunch,
    total: ir.Value,
    mapping: dict[ir.Value, ir.Value],
    known: tc.ElementOp | None = None,
) -> ir.Value:
    """The element of a product's result, of its sum `total`; `known`: an element in `mapping`."""
    stored = product.op.out.type.element_type
    if total.type != stored:
        with product.op.location:
            total = arith.truncf(stored, total)
    if product.after is None:
        return total
    inner = product.after.body.blocks[0]
    *ops, end = inner
    mapping[inner.arguments[0]] = total
    for op in ops:
        if known is None or op.operation != known.operation:
            clone(op, mapping)
    return mapping[end.value]

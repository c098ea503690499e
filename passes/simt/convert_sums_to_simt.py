"""convert-sums-to-simt: a kernel that sums partial results in a fixed order, and their epilogue."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.passes.build import simt
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.gpu_module import buffer_numbers, launch_order, target_of
from tcir.passes.build.limits import ceil_div
from tcir.passes.build.tensor_functions import functions_with_body
from tcir.passes.simt.elements import Index, byte, digits, scalar
from tcir.passmanager.pipeline import Pass, register_pass

THREADS = 256


@register_pass
@dataclass(frozen=True)
class ConvertSumsToSimt(Pass):
    """Turns every function of one ``tc.sum_parts`` into a kernel, one thread an element.

    Before::

        func.func @f(%parts: tensor<4x8x256xf32>, %bias: tensor<256xf32>) -> tensor<8x256xf16> {
          %c = "tc.sum_parts"(%parts) : (tensor<4x8x256xf32>) -> tensor<8x256xf32>
          %d = "tc.epilogue"(%c) ({ … "tc.element"(%bias) … })
        }

    After (`llvm.func @f` in ``gpu.module @kernels``)::

        %i = 256 * %ctaid + %tid; if %i < 2048: %out[%i] = body(%parts[0, %i] + %parts[1, %i] + …)

    The threads of a warp read consecutive elements of a part. The body of a ``tc.epilogue`` is
    cloned onto the sum. Preserves every value, bit for bit. Other functions stay as they are.
    """

    name: ClassVar[str] = "convert-sums-to-simt"

    def run(self, module: ir.Module) -> None:
        for each in functions_with_body(module):
            ops = list(each.entry_block)
            if ops and isinstance(ops[0], tc.SumPartsOp):
                after = ops[1] if len(ops) == 3 and isinstance(ops[1], tc.EpilogueOp) else None
                if len(ops) != (2 if after is None else 3):
                    names = ", ".join(op.operation.name for op in ops)
                    raise match_failure(
                        each,
                        "expected a function of one tc.sum_parts, and a tc.epilogue of it or none, "
                        f"got {names}; run split-launches first",
                    )
                _check_types(ops[0], after)
                _Kernel(each, ops[0], after).build(module)
                each.operation.erase()


def _check_types(op: tc.SumPartsOp, after: tc.EpilogueOp | None) -> None:
    """Rejects types of a byte: numbers of them have no registers of their own."""
    body = list(after.body.blocks[0])[:-1] if after else [op]
    for each in body:
        values = [*each.operation.operands, *each.operation.results]
        for kind in (getattr(v.type, "element_type", v.type) for v in values):
            if str(kind) != "i1" and kind.width < 16:
                raise match_failure(
                    each,
                    "expected f32, f16, bf16, i16 or i32 in an epilogue of sums in parts, got "
                    f"{kind} (a thread has one number, conversions of fp8 take pairs); store f16, "
                    "or take split-k=1",
                )


@dataclass(frozen=True)
class _Kernel:
    function: func.FuncOp
    op: tc.SumPartsOp
    after: tc.EpilogueOp | None

    def build(self, module: ir.Module) -> None:
        """Appends the kernel to the ``gpu.module``."""
        name, out = self.function.name.value, self.op.out.type
        buffers = buffer_numbers(self.function, len(self.function.type.inputs) + 1)
        count = prod(out.shape)
        grid = (ceil_div(count, THREADS), 1, 1)
        order = launch_order(self.function) or 0
        shape = simt.Shape(grid, THREADS, target_of(module), order)
        with simt.simt_kernel(module, name, buffers, shape, self.op.location) as pointers:
            inputs = [pointers[n] for n in buffers[:-1]]
            number = simt.add(simt.mul(simt.block_index(0), THREADS), simt.thread_index())
            inside = scf.IfOp(simt.less(number, count))
            with ir.InsertionPoint(inside.then_block):
                value = self._element(inputs, number, count)
                place = byte(simt.wide(number), value.type)
                simt.store(simt.at(pointers[buffers[-1]], place), value)
                scf.YieldOp([])

    def _element(self, inputs: list[ir.Value], number: ir.Value, count: int) -> ir.Value:
        """Element `number` of the result."""
        parts = self.op.parts.type
        first = self._argument(inputs, self.op.parts)
        total: ir.Value | None = None
        for part in range(parts.shape[0]):
            place = simt.add(simt.wide(number), part * count) if part else simt.wide(number)
            each = simt.load(simt.at(first, byte(place, parts.element_type)), parts.element_type)
            add = arith.addf if isinstance(each.type, ir.FloatType) else arith.addi
            total = each if total is None else add(total, each)
        assert total is not None
        element = self.op.out.type.element_type
        if total.type != element:
            total = arith.truncf(element, total)
        return total if self.after is None else self._body(self.after, inputs, number, total)

    def _argument(self, inputs: list[ir.Value], value: ir.Value) -> ir.Value:
        return inputs[ir.BlockArgument(value).arg_number]

    def _body(
        self, after: tc.EpilogueOp, inputs: list[ir.Value], number: ir.Value, total: ir.Value
    ) -> ir.Value:
        """The body of the epilogue at element `number`, whose sum is `total`."""
        block = after.body.blocks[0]
        known = {block.arguments[0]: total}
        at = digits(number, list(after.out.type.shape))
        *ops, end = block.operations
        for each in ops:
            with each.location:
                if isinstance(each, tc.ElementOp):
                    pointer = self._argument(inputs, each.tensor)
                    known[each.value] = _load(each, pointer, at)
                else:
                    operands = [known[operand] for operand in each.operation.operands]
                    known[each.operation.results[0]] = scalar(each, operands)
        return known[end.operands[0]]


def _load(op: tc.ElementOp, pointer: ir.Value, at: Index) -> ir.Value:
    kind, place = op.tensor.type, simt.constant(0, 64)
    for dim, extent in zip(op.dims, kind.shape, strict=True):
        index = simt.constant(0, 64) if dim is None else simt.wide(at[dim])
        place = simt.add(simt.mul(place, extent), index)
    return simt.load(simt.at(pointer, byte(place, kind.element_type)), kind.element_type)

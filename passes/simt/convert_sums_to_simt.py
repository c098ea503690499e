"""convert-sums-to-simt: a kernel that sums partial results in a fixed order, and their epilogue."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.passes.build import simt
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.element_epilogue import (
    byte,
    check_elements,
    check_types,
    number_at,
    store,
)
from tcir.passes.build.gpu_module import buffer_numbers, launch_order, target_of
from tcir.passes.build.limits import ceil_div
from tcir.passes.build.tensor_functions import functions_with_body
from tcir.passes.simt.elements import digits
from tcir.passmanager.pipeline import Pass, register_pass

THREADS = 256
_WHERE = ("of sums in parts", "take split-k=1")


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
                check_types(ops[0], *_WHERE)
                if after is not None:
                    check_elements(after, *_WHERE)
                _Kernel(each, ops[0], after).build(module)
                each.operation.erase()


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
                last = self.after or self.op
                store(pointers[buffers[-1]], simt.wide(number), value, last.out.type.element_type)
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
        if self.after is None:
            return total
        at = digits(number, list(self.after.out.type.shape))
        return number_at(self.after, lambda value: self._argument(inputs, value), at, total)

    def _argument(self, inputs: list[ir.Value], value: ir.Value) -> ir.Value:
        return inputs[ir.BlockArgument(value).arg_number]

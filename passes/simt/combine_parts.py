"""Kernel that combines attention over parts of the keys."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tcir._mlir import arith, func, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.passes.emit import narrow, online_softmax, simt
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.functions.f32 import constant, with_element
from tcir.passes.simt.elements import digits

THREADS = 128
RUN = 4
"""Elements of a thread: 16 bytes of each part."""
MOST_PARTS = 128
"""Most parts: a thread has the logarithms of all in registers."""


def convert(module: ir.Module, function: func.FuncOp) -> bool:
    """Turns a function of one ``tc.combine_parts`` into a kernel, with one thread per four elements
    of a row, or per element if rows are not a multiple of four.

    Before::

        func.func @f(%parts: tensor<4x2x8x1x64xf32>, %sums: tensor<4x2x8x1xf32>)
            -> tensor<2x8x1x64xf16> { %o, %lse = "tc.combine_parts"(%parts, %sums) … }

    After (`llvm.func @f` in ``gpu.module @kernels``)::

        %i = 128 * %ctaid + %tid
        if %i < 256:
          most = max over p of %sums[p, row]
          w_p = 2^((%sums[p, row] - most) log2(e)), total = w_0 + …
          %out[4 * %i …] = (w_0 %parts[0, 4 * %i …] + …) / total
          if %i is the first of the row: %lse[row] = most + ln(total)

    The threads of a warp read consecutive elements of a part, 16 bytes each. Preserves every value,
    bit for bit.
    """
    op, *others = function.entry_block
    if not isinstance(op, tc.CombinePartsOp):
        return False
    if len(others) != 1:
        names = ", ".join(each.operation.name for each in function.entry_block)
        raise match_failure(
            function,
            f"expected a function of one tc.combine_parts, got {names}; run split-launches first",
        )
    if op.parts.type.shape[0] > MOST_PARTS:
        raise match_failure(
            op,
            f"expected at most {MOST_PARTS} parts, got {op.parts.type.shape[0]}: a thread has the "
            "logarithms of all in its 255 registers; take larger parts",
        )
    _Kernel(function, op).build(module)
    return True


@dataclass(frozen=True)
class _Kernel:
    function: func.FuncOp
    op: tc.CombinePartsOp

    def build(self, module: ir.Module) -> None:
        """Appends the kernel to the ``gpu.module``."""
        function, out = self.function, self.op.out.type
        run = RUN if out.shape[-1] % RUN == 0 else 1
        count = prod(out.shape) // run
        kernel = simt.units_of(module, function, count, THREADS, self.op.location)
        with kernel as (number, pointers):
            parts, sums = (pointers[ir.BlockArgument(x).arg_number] for x in self.op.operands)
            self._elements(parts, sums, pointers[len(function.type.inputs) :], number, run)

    def _elements(
        self, parts: ir.Value, sums: ir.Value, stored: list[ir.Value], number: ir.Value, run: int
    ) -> None:
        """Loads, combines and stores the elements of a thread."""
        f32, (count, *shape) = ir.F32Type.get(), self.op.parts.type.shape
        *at, column = digits(number, [*shape[:-1], shape[-1] // run])
        of = dict(zip(string(self.op, "layout"), at))
        rows = list(self.op.lse.type.shape)
        row = simt.linear([of[letter] for letter in "bhm"], rows)
        place = simt.mul(simt.wide(number), run)

        def load(pointer: ir.Value, first: ir.Value, part: int, pitch: int, width: int) -> ir.Value:
            moved = simt.add(first, part * pitch) if part else first
            kind = ir.VectorType.get([width], f32) if width > 1 else f32
            return llvm.load(kind, simt.at(pointer, narrow.byte(moved, f32)), alignment=4 * width)

        logarithms = [load(sums, row, part, prod(rows), 1) for part in range(count)]
        most = logarithms[0]
        for each in logarithms[1:]:
            most = arith.maxnumf(most, each)
        none = arith.cmpf(arith.CmpFPredicate.OEQ, most, constant(f32, float("-inf")))
        reference = arith.select(none, constant(f32, 0.0), most)
        kind = ir.VectorType.get([run], f32) if run > 1 else f32
        total, value = constant(f32, 0.0), constant(kind, 0.0)
        for part, logarithm in enumerate(logarithms):
            weight = online_softmax.weight(logarithm, reference)
            total = arith.addf(total, weight)
            mine = load(parts, place, part, prod(shape), run)
            value = llvm.intr_fma(mine, _spread(weight, kind), value)
        value = arith.mulf(value, _spread(online_softmax.inverse_sum(total), kind))
        self._store(stored[0], place, value, run)
        if len(stored) > 1:
            with simt.only_if(simt.equal(column, 0)):
                logarithm = online_softmax.combined_sum(reference, total)
                simt.store(simt.at(stored[1], narrow.byte(row, f32)), logarithm)

    def _store(self, out: ir.Value, place: ir.Value, value: ir.Value, run: int) -> None:
        element = self.op.out.type.element_type
        if not isinstance(element, ir.F32Type):
            value = arith.truncf(with_element(value.type, element), value)
        at = simt.at(out, narrow.byte(place, element))
        if run == 1:
            simt.store(at, value)
        else:
            numbers = [llvm.extractelement(value, simt.constant(n)) for n in range(run)]
            simt.store_run(at, numbers)


def _spread(number: ir.Value, kind: ir.Type) -> ir.Value:
    """A number in all elements of a vector."""
    if not isinstance(kind, ir.VectorType):
        return number
    return simt.vector_of([number] * kind.shape[0])

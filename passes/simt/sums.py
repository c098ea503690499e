"""A kernel that sums partial results in a fixed order and computes their epilogue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from tcir._mlir import arith, func, ir, llvm
from tcir.dialect import tc
from tcir.passes.emit import narrow, simt
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.element_epilogue import check_elements, check_types, number_at, store
from tcir.passes.emit.find_group import find_group
from tcir.passes.simt.elements import digits

THREADS = 256
RUN = 4
"""Elements of a thread: 16 bytes of each part."""
_STORED_IN_RUNS = ("f32", "f16", "bf16", "i32")
_WHERE = ("of sums in parts", "take split-k=1")


def convert(module: ir.Module, function: func.FuncOp) -> bool:
    """Turns a function of one ``tc.sum_parts`` into a kernel, with one thread per four elements of
    a row, or per element if rows are not a multiple of four.

    Before::

        func.func @f(%parts: tensor<4x8x256xf32>, %bias: tensor<256xf32>) -> tensor<8x256xf16> {
          %c = "tc.sum_parts"(%parts) : (tensor<4x8x256xf32>) -> tensor<8x256xf32>
          %d = "tc.epilogue"(%c) ({ … "tc.element"(%bias) … })
        }

    After (`llvm.func @f` in ``gpu.module @kernels``)::

        %i = 256 * %ctaid + %tid
        if %i < 512: %out[4 * %i …] = body(%parts[0, 4 * %i …] + %parts[1, 4 * %i …] + …)

    The threads of a warp read consecutive elements of a part, 16 bytes each. The body of a
    ``tc.epilogue`` is cloned onto the sum. If the rows are in groups, a thread finds the group of
    its row, as for a tile of one row, and does nothing if the row belongs to no group. Preserves
    every value, bit for bit.
    """
    op, *others = function.entry_block
    if not isinstance(op, tc.SumPartsOp):
        return False
    after = others[0] if len(others) == 2 and isinstance(others[0], tc.EpilogueOp) else None
    if len(others) != (1 if after is None else 2):
        names = ", ".join(each.operation.name for each in function.entry_block)
        raise match_failure(
            function,
            "expected a function of one tc.sum_parts, and a tc.epilogue of it or none, "
            f"got {names}; run split-launches first",
        )
    check_types(op, *_WHERE)
    if after is not None:
        check_elements(after, *_WHERE)
    _Kernel(function, op, after).build(module)
    return True


@dataclass(frozen=True)
class _Kernel:
    function: func.FuncOp
    op: tc.SumPartsOp
    after: tc.EpilogueOp | None

    def build(self, module: ir.Module) -> None:
        """Appends the kernel to the ``gpu.module``."""
        run = self._run()
        place = module, self.function, prod(self.op.out.type.shape) // run, THREADS
        leaves = self.op.sizes is not None
        kernel = simt.units_of(*place, self.op.location, unwritten=leaves)
        with kernel as (number, (*inputs, out)), self._row(inputs, number, run) as group:
            values = self._elements(inputs, number, run, group)
            last = (self.after or self.op).out.type.element_type
            at = simt.mul(simt.wide(number), run)
            if run == 1:
                store(out, at, values[0], last)
            else:
                simt.store_run(simt.at(out, narrow.byte(at, last)), values)

    @contextmanager
    def _row(self, inputs: list[ir.Value], number: ir.Value, run: int) -> Iterator[ir.Value | None]:
        """Yields the group of the thread's row, for the code of rows of groups; None without
        groups."""
        if (sizes := self.op.sizes) is None:
            yield None
            return
        rows, columns = self.op.out.type.shape[-2:]
        row = simt.divide(number, columns // run)
        room = rows if self.op.masked else None
        pointer = self._argument(inputs, sizes)
        group, _, count = find_group(pointer, row, sizes.type.shape[0], 1, room)
        with simt.only_if(simt.less(0, count)):
            yield group

    def _run(self) -> int:
        """Elements of a thread."""
        kind = (self.after or self.op).out.type
        whole = bool(kind.shape) and kind.shape[-1] % RUN == 0
        return RUN if whole and str(kind.element_type) in _STORED_IN_RUNS else 1

    def _elements(
        self, inputs: list[ir.Value], number: ir.Value, run: int, group: ir.Value | None
    ) -> list[ir.Value]:
        """Elements of the result that the thread computes."""
        *rows, last = self.op.out.type.shape or [1]
        at = digits(number, [*rows, last // run])
        column = simt.mul(at[-1], run) if run > 1 else at[-1]
        totals = self._totals(inputs, number, run)
        if self.after is None:
            return totals
        return [
            number_at(
                self.after,
                lambda value: self._argument(inputs, value),
                [*at[: len(rows)], simt.add(column, n) if n else column],
                total,
                group=group,
            )
            for n, total in enumerate(totals)
        ]

    def _totals(self, inputs: list[ir.Value], number: ir.Value, run: int) -> list[ir.Value]:
        """Sums of the thread's elements over all parts, rounded."""
        parts, element = self.op.parts.type, self.op.out.type.element_type
        first = self._argument(inputs, self.op.parts)
        kind = parts.element_type if run == 1 else ir.VectorType.get([run], parts.element_type)
        start = simt.mul(simt.wide(number), run)
        total: ir.Value | None = None
        for part in range(parts.shape[0]):
            place = simt.add(start, part * prod(parts.shape[1:])) if part else start
            at = simt.at(first, narrow.byte(place, parts.element_type))
            each = simt.load(at, kind) if run == 1 else llvm.load(kind, at, alignment=4 * run)
            add = arith.addf if str(parts.element_type) == "f32" else arith.addi
            total = each if total is None else add(total, each)
        assert total is not None
        sums = (
            [total]
            if run == 1
            else [llvm.extractelement(total, simt.constant(n)) for n in range(run)]
        )
        if parts.element_type == element:
            return sums
        return [arith.truncf(element, each) for each in sums]

    def _argument(self, inputs: list[ir.Value], value: ir.Value) -> ir.Value:
        return inputs[ir.BlockArgument(value).arg_number]

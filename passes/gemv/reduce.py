"""Partial results of a GEMV in a workspace, and the kernel that adds them up in a fixed order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcir._mlir import arith, ir, scf
from tcir.dialect.attributes import integers
from tcir.dialect.limits import TMEM_LANES
from tcir.passes.emit import simt
from tcir.passes.emit.builders import i64, i64s
from tcir.passes.emit.element_epilogue import number_at, store
from tcir.passes.emit.gpu_module import buffer_numbers, insert_launch, launch_order, next_buffer
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passes.emit.tile_kernel import Source
from tcir.passes.gemv.ranges import Ranges
from tcir.passes.gemv.result import dimensions

THREADS = 128
WORKSPACES = "tc.workspaces"


@dataclass(frozen=True)
class Partials:
    """The workspace ``[segments, 128, N]`` of f32 for partial sums, and the kernel that adds them
    up."""

    source: Source
    shape: ScaledShape
    ranges: Ranges

    @property
    def memref(self) -> ir.MemRefType:
        """The workspace as a memref of the first kernel."""
        shape = [self.ranges.segments, TMEM_LANES, self.shape.n]
        return ir.MemRefType.get(shape, ir.F32Type.get())

    def add_up(self, module: ir.Module) -> None:
        """Turns the output of the first kernel, which was the output of the source function, into a
        workspace, and appends the second kernel."""
        op, function = module.operation, self.source.function
        *inputs, result = buffer_numbers(function, len(function.type.inputs) + 1)
        order = launch_order(function) or 0
        sizes = integers(op, WORKSPACES) if WORKSPACES in op.attributes else []
        workspace = next_buffer(module, result + 1)
        insert_launch(module, order + 1)
        sizes.append(4 * self.ranges.segments * TMEM_LANES * self.shape.n)
        op.attributes[WORKSPACES] = i64s(sizes)
        function.attributes["tc.order"] = i64(order)
        function.attributes["tc.args"] = i64s([*inputs, workspace])
        self._second_kernel(module, inputs, workspace, result, order + 1)

    def _second_kernel(
        self, module: ir.Module, inputs: list[int], workspace: int, result: int, order: int
    ) -> None:
        after = self.source.after
        read = [*self._factors, *(each.tensor for each in (after.elements if after else ()))]
        numbers = {value: inputs[ir.BlockArgument(value).arg_number] for value in read}
        buffers = list(dict.fromkeys([workspace, *numbers.values(), result]))
        grid = (ceil_div(self.shape.m, TMEM_LANES), 1, self.shape.batch)
        shape = simt.Shape(grid, THREADS, order=order)
        name = f"{self.source.function.name.value}_reduce"
        with simt.simt_kernel(module, name, buffers, shape, self.source.op.location) as pointers:
            self._body(
                pointers[workspace],
                pointers[result],
                {value: pointers[number] for value, number in numbers.items()},
            )

    @property
    def _factors(self) -> list[ir.Value]:
        """The global scales."""
        op = self.source.op
        return [g for g in (op.a_global, op.b_global) if g is not None]

    def _body(self, workspace: ir.Value, out: ir.Value, read: Mapping[ir.Value, ir.Value]) -> None:
        """Thread t reduces elements t, t + 128, … of a tile's ``[rows, N]``.

        read: the addresses of what is read beside the sums
        """
        shape, n = self.shape, self.shape.n
        thread, tile, batch = simt.thread_index(), simt.block_index(0), simt.block_index(2)
        first_row = simt.mul(tile, TMEM_LANES)
        number = simt.add(simt.mul(batch, ceil_div(shape.m, TMEM_LANES)), tile)
        begin, end = self._first_segment(number), self._first_segment(simt.add(number, 1))
        # Elements of the tile inside the result: 128 rows of it, or what the last tile has.
        rows = simt.smaller(simt.sub(shape.m, first_row), TMEM_LANES)
        base = simt.mul(simt.add(simt.mul(batch, shape.m), first_row), n)
        alpha = _alpha([read[factor] for factor in self._factors])
        loop = scf.ForOp(thread, simt.mul(rows, n), simt.constant(THREADS))
        with ir.InsertionPoint(loop.body):
            element = loop.induction_variable
            value = self._sum(workspace, element, begin, end)
            if alpha is not None:
                value = arith.mulf(value, alpha)
            if value.type != (kind := self.source.op.out.type.element_type):
                value = arith.truncf(kind, value)
            if self.source.after is not None:
                row = simt.add(first_row, simt.divide(element, n))
                place = (batch, row, simt.rest(element, n))
                at = [place[dim] for dim in dimensions(self.source.op)]
                value = number_at(self.source.after, read.__getitem__, at, value)
            last = self.source.after or self.source.op
            store(out, simt.wide(simt.add(base, element)), value, last.out.type.element_type)
            scf.YieldOp([])

    def _sum(
        self, workspace: ir.Value, element: ir.Value, begin: ir.Value, end: ir.Value
    ) -> ir.Value:
        """The sum of an element of the tile over segments `begin` to `end`, in this order."""
        loop = scf.ForOp(begin, end, simt.constant(1), [simt.number(0.0)])
        with ir.InsertionPoint(loop.body):
            segment, total = loop.body.arguments
            place = simt.add(simt.mul(segment, TMEM_LANES * self.shape.n), element)
            part = simt.load(simt.at(workspace, simt.mul(simt.wide(place), 4)), ir.F32Type.get())
            scf.YieldOp([arith.addf(total, part)])
        return loop.results[0]

    def _first_segment(self, tile: ir.Value) -> ir.Value:
        """The number of the first segment of a tile; its segments end at the next tile's first."""
        ranges = self.ranges
        cta = simt.divide(simt.mul(tile, ranges.ctas), ranges.tiles)
        return simt.sub(simt.add(cta, tile), simt.divide(cta, ranges.period))


def _alpha(factors: list[ir.Value]) -> ir.Value | None:
    """The product of the global scales; None if there are none."""
    loaded = [simt.load(factor, ir.F32Type.get()) for factor in factors]
    return arith.mulf(*loaded) if len(loaded) == 2 else loaded[0] if loaded else None

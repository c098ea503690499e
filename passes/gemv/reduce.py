"""Partial results of a GEMV in a workspace, and the kernel that reduces them in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import integers
from tcir.dialect.limits import TMEM_LANES
from tcir.passes.build import simt
from tcir.passes.build.emit import i64, i64s
from tcir.passes.build.gpu_module import buffer_numbers, launch_order
from tcir.passes.build.limits import ceil_div
from tcir.passes.build.scaled_shape import ScaledShape
from tcir.passes.build.tile_kernel import Source
from tcir.passes.gemv.ranges import Ranges

THREADS = 128
WORKSPACES = "tc.workspaces"


@dataclass(frozen=True)
class Partials:
    """The workspace ``[segments, 128, N]`` of f32, and its reduction.

    inputs:  numbers of the first kernel's other buffers
    factors: those of the global scales
    result:  that of the result; workspaces follow it
    order:   position of the first kernel in the sequence of launches
    """

    name: str
    location: ir.Location
    shape: ScaledShape
    ranges: Ranges
    inputs: tuple[int, ...]
    factors: tuple[int, ...]
    result: int
    order: int
    element: ir.Type

    @staticmethod
    def of(source: Source, shape: ScaledShape, ranges: Ranges) -> Partials:
        """Reads these from the source function, which is erased later."""
        op, function = source.op, source.function
        numbers = buffer_numbers(function, len(function.type.inputs) + 1)
        factors = [ir.BlockArgument(g) for g in (op.a_global, op.b_global) if g is not None]
        return Partials(
            name=function.name.value,
            location=op.location,
            shape=shape,
            ranges=ranges,
            inputs=tuple(numbers[:-1]),
            factors=tuple(numbers[g.arg_number] for g in factors),
            result=numbers[-1],
            order=launch_order(function) or 0,
            element=op.out.type.element_type,
        )

    @property
    def memref(self) -> ir.MemRefType:
        """The workspace as the first kernel sees it."""
        shape = [self.ranges.segments, TMEM_LANES, self.shape.n]
        return ir.MemRefType.get(shape, ir.F32Type.get())

    def add_up(self, module: ir.Module) -> None:
        """Makes the first kernel's output a workspace and appends the second kernel."""
        op = module.operation
        sizes = integers(op, WORKSPACES) if WORKSPACES in op.attributes else []
        workspace = self.result + 1 + len(sizes)
        sizes.append(4 * self.ranges.segments * TMEM_LANES * self.shape.n)
        op.attributes[WORKSPACES] = i64s(sizes)
        first = next(
            op
            for op in module.body.operations
            if isinstance(op, func.FuncOp) and op.name.value == self.name
        )
        first.attributes["tc.order"] = i64(self.order)
        first.attributes["tc.args"] = i64s([*self.inputs, workspace])
        self._second_kernel(module, [workspace, *self.factors, self.result])

    def _second_kernel(self, module: ir.Module, buffers: list[int]) -> None:
        grid = (ceil_div(self.shape.m, TMEM_LANES), 1, self.shape.batch)
        shape = simt.Shape(grid, THREADS, order=self.order + 1)
        name = f"{self.name}_reduce"
        with simt.simt_kernel(module, name, buffers, shape, self.location) as pointers:
            workspace, *factors, out = (pointers[buffer] for buffer in buffers)
            self._body(workspace, factors, out)

    def _body(self, workspace: ir.Value, factors: list[ir.Value], out: ir.Value) -> None:
        """Thread t reduces elements t, t + 128, … of a tile's ``[rows, N]``."""
        shape, n = self.shape, self.shape.n
        thread, tile, batch = simt.thread_index(), simt.block_index(0), simt.block_index(2)
        first_row = simt.mul(tile, TMEM_LANES)
        number = simt.add(simt.mul(batch, ceil_div(shape.m, TMEM_LANES)), tile)
        begin, end = self._first_segment(number), self._first_segment(simt.add(number, 1))
        # Elements of the tile inside the result: 128 rows of it, or what the last tile has.
        rows = simt.smaller(simt.sub(shape.m, first_row), TMEM_LANES)
        base = simt.mul(simt.add(simt.mul(batch, shape.m), first_row), n)
        alpha = _alpha(factors)
        loop = scf.ForOp(thread, simt.mul(rows, n), simt.constant(THREADS))
        with ir.InsertionPoint(loop.body):
            element = loop.induction_variable
            value = self._sum(workspace, element, begin, end)
            if alpha is not None:
                value = arith.mulf(value, alpha)
            if self.element != ir.F32Type.get():
                value = arith.truncf(self.element, value)
            place = simt.mul(simt.wide(simt.add(base, element)), tc.element_bytes(self.element))
            simt.store(simt.at(out, place), value)
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
        """`Ranges.first_segment` of a value."""
        ranges = self.ranges
        cta = simt.divide(simt.mul(tile, ranges.ctas), ranges.tiles)
        return simt.sub(simt.add(cta, tile), simt.divide(cta, ranges.period))


def _alpha(factors: list[ir.Value]) -> ir.Value | None:
    """The product of the global scales; None if there are none."""
    loaded = [simt.load(factor, ir.F32Type.get()) for factor in factors]
    return arith.mulf(*loaded) if len(loaded) == 2 else loaded[0] if loaded else None

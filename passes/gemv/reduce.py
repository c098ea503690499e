"""Partial results of a GEMV in a workspace, and the kernel that adds them up, in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tcir._mlir import arith, ir, llvm, nvvm, scf
from tcir.dialect import tc
from tcir.dialect.limits import TMEM_LANES
from tcir.passes.build.emit import i64, i64s, integer, integers
from tcir.passes.build.gpu_module import kernels_block
from tcir.passes.build.limits import ceil_div
from tcir.passes.build.tile_kernel import Source
from tcir.passes.gemv.ranges import Ranges
from tcir.passes.gemv.shapes import GemvShape
from tcir.passes.nvvm.converter import pointer_type
from tcir.target import DEFAULT_TARGET

THREADS = 128
WORKSPACES = "tc.workspaces"


@dataclass(frozen=True)
class Partials:
    """The workspace ``[segments, 128, N]`` of f32, and what becomes of it.

    inputs:  numbers of the first kernel's other buffers
    factors: those of the global scales
    result:  that of the result; workspaces come behind it
    order:   when the first kernel is launched
    """

    name: str
    location: Any
    shape: GemvShape
    ranges: Ranges
    inputs: tuple[int, ...]
    factors: tuple[int, ...]
    result: int
    order: int
    element: Any

    @staticmethod
    def of(source: Source, shape: GemvShape, ranges: Ranges) -> Partials:
        """Reads what is needed off the source, which will be gone."""
        op, function = source.op, source.function
        attributes = function.attributes
        numbers = list(range(len(function.type.inputs) + 1))
        if "tc.args" in attributes:
            numbers = integers(attributes["tc.args"])
        factors = [ir.BlockArgument(g) for g in (op.a_global, op.b_global) if g is not None]
        return Partials(
            name=function.name.value,
            location=op.location,
            shape=shape,
            ranges=ranges,
            inputs=tuple(numbers[:-1]),
            factors=tuple(numbers[g.arg_number] for g in factors),
            result=numbers[-1],
            order=integer(attributes["tc.order"]) if "tc.order" in attributes else 0,
            element=op.out.type.element_type,
        )

    @property
    def memref(self) -> Any:
        """The workspace as the first kernel sees it."""
        shape = [self.ranges.segments, TMEM_LANES, self.shape.n]
        return ir.MemRefType.get(shape, ir.F32Type.get())

    def add_up(self, module: ir.Module) -> None:
        """Makes the first kernel's output a workspace and appends the second kernel."""
        attributes = module.operation.attributes
        sizes = integers(attributes[WORKSPACES]) if WORKSPACES in attributes else []
        workspace = self.result + 1 + len(sizes)
        sizes.append(4 * self.ranges.segments * TMEM_LANES * self.shape.n)
        attributes[WORKSPACES] = i64s(sizes)
        first = next(op for op in module.body.operations if _name(op) == self.name)
        first.attributes["tc.order"] = i64(self.order)
        first.attributes["tc.args"] = i64s([*self.inputs, workspace])
        with self.location, ir.InsertionPoint(kernels_block(module)):
            self._kernel([workspace, *self.factors, self.result])

    def _kernel(self, buffers: list[int]) -> None:
        function = llvm.LLVMFuncOp(
            f"{self.name}_reduce",
            ir.TypeAttr.parse(f"!llvm.func<void ({', '.join(['!llvm.ptr<1>'] * len(buffers))})>"),
        )
        pointer = ir.StringAttr.get("pointer")
        params = [ir.DictAttr.get({"kind": pointer, "arg": i64(buffer)}) for buffer in buffers]
        tiles = ceil_div(self.shape.m, TMEM_LANES)
        for name, value in {
            "nvvm.kernel": ir.UnitAttr.get(),
            "nvvm.reqntid": ir.DenseI32ArrayAttr.get([THREADS, 1, 1]),
            "tc.grid": i64s([tiles, 1, self.shape.batch]),
            "tc.params": ir.ArrayAttr.get(params),
            "tc.order": i64(self.order + 1),
            "tc.target": ir.StringAttr.get(DEFAULT_TARGET.name),
        }.items():
            function.operation.attributes[name] = value
        block = function.operation.regions[0].blocks.append(
            *[pointer_type(1)] * len(buffers), arg_locs=[self.location] * len(buffers)
        )
        with ir.InsertionPoint(block):
            workspace, *factors, out = block.arguments
            self._body(workspace, factors, out)
            llvm.ReturnOp()

    def _body(self, workspace: Any, factors: list[Any], out: Any) -> None:
        """Thread t adds up elements t, t + 128, … of a tile's ``[rows, N]``."""
        shape, n = self.shape, self.shape.n
        thread, tile, batch = (
            read(results=[_i32()]).result
            for read in (nvvm.ThreadIdXOp, nvvm.BlockIdXOp, nvvm.BlockIdZOp)
        )
        tiles = ceil_div(shape.m, TMEM_LANES)
        first_row = _mul(tile, TMEM_LANES)
        number = _add(_mul(batch, tiles), tile)
        begin, end = self._first_segment(number), self._first_segment(_add(number, 1))
        # Elements of the tile inside the result: 128 rows of it, or what the last tile has.
        left = arith.subi(_const(shape.m), first_row)
        inside = _mul(arith.minui(left, _const(TMEM_LANES)), n)
        alpha = self._alpha(factors)
        base = _mul(_add(_mul(batch, shape.m), first_row), n)
        with _loop(thread, inside, THREADS) as (element, _):
            zero = arith.ConstantOp(ir.F32Type.get(), 0.0).result
            with _loop(begin, end, 1, zero) as (segment, total):
                place = _add(_mul(segment, TMEM_LANES * n), element)
                value = llvm.LoadOp(
                    ir.F32Type.get(), _element(workspace, place, 4), alignment=4
                ).result
                total.value = arith.addf(total.value, value)
            value = total.result
            if alpha is not None:
                value = arith.mulf(value, alpha)
            if self.element != ir.F32Type.get():
                value = arith.truncf(self.element, value)
            size = tc.element_bytes(self.element)
            llvm.StoreOp(value, _element(out, _add(base, element), size), alignment=size)

    def _first_segment(self, tile: Any) -> Any:
        """`Ranges.first_segment` of a value."""
        ranges = self.ranges
        cta = _div(_mul(tile, ranges.ctas), ranges.tiles)
        return arith.subi(arith.addi(cta, tile), _div(cta, ranges.period))

    def _alpha(self, factors: list[Any]) -> Any:
        f32 = ir.F32Type.get()
        loaded = [llvm.LoadOp(f32, factor, alignment=4).result for factor in factors]
        return arith.mulf(*loaded) if len(loaded) == 2 else loaded[0] if loaded else None


def _name(op: Any) -> str:
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes["sym_name"]).value) if "sym_name" in attributes else ""


def _i32() -> Any:
    return ir.IntegerType.get_signless(32)


def _const(number: int) -> Any:
    return arith.ConstantOp(_i32(), number).result


def _add(a: Any, b: Any) -> Any:
    return arith.addi(a, _const(b) if isinstance(b, int) else b)


def _mul(a: Any, b: int) -> Any:
    return arith.muli(a, _const(b)) if b != 1 else a


def _div(a: Any, b: int) -> Any:
    return arith.divui(a, _const(b)) if b != 1 else a


def _element(base: Any, index: Any, size: int) -> Any:
    """The address of element `index` of `size` bytes."""
    wide = arith.ExtUIOp(ir.IntegerType.get_signless(64), index).result
    offset = arith.muli(wide, arith.ConstantOp(wide.type, size).result)
    byte, flags = ir.IntegerType.get_signless(8), ir.Attribute.parse("0 : i32")
    return llvm.GEPOp(pointer_type(1), base, [offset], [-(2**31)], byte, flags).result


class _Carried:
    """The value that a loop carries: set `value` in it, read `result` behind it."""

    value: Any = None
    result: Any = None


class _loop:
    """``scf.for`` that may carry one value."""

    def __init__(self, begin: Any, end: Any, step: int, initial: Any = None) -> None:
        self.op = scf.ForOp(begin, end, _const(step), [] if initial is None else [initial])
        self.carried = _Carried()

    def __enter__(self) -> tuple[Any, _Carried]:
        arguments = list(self.op.body.arguments)
        self.point = ir.InsertionPoint(self.op.body)
        self.point.__enter__()
        if len(arguments) > 1:
            self.carried.value = arguments[1]
        return arguments[0], self.carried

    def __exit__(self, *error: object) -> None:
        values = [] if self.carried.value is None else [self.carried.value]
        if error[0] is None:
            scf.YieldOp(values)
        self.point.__exit__(*error)
        self.carried.result = next(iter(self.op.results)) if values else None

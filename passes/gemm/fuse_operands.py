"""fuse-operands: moves a launch that computes an operand of a product into the kernel of the
product."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.attributes import integers, string
from tcir.dialect.limits import TMEM_LANES
from tcir.dialect.warp_map import TCGEN05, TCGEN05_EPILOGUE_LOAD, WARP_MAP
from tcir.passes.analysis.computed import Computed, NotComputedError
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.clone import clone
from tcir.passes.emit.gpu_module import number_launches, numbered_launches, target_of
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import is_simt, replacement
from tcir.passes.gemm.dense import operands_of
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.program.workspaces import sizes_of
from tcir.target import TARGETS

MOST_TILES = 16
"""The most 128-row tiles of the other operand; each computes the operand again. A step of 128 x 64
elements takes the tensor core 128 cycles and four warps 192, at three instructions per element. A
separate launch moves 5 bytes per element through HBM, 1,500 cycles of an SM's share, so it is
faster from 1500 / (192 - 128), about 23 tiles, on."""


@register_pass
@dataclass(frozen=True)
class FuseOperands(Pass):
    """Moves the ops of a launch on CUDA cores into the function of a product, if the launch only
    computes an operand of that product: for example, weights of int8, fp8 or int4 times their
    scales.

    Before (buffers 0 to 2 are the inputs, buffer 3 is the result, and buffer 4 holds the
    dequantised weights)::

        builtin.module attributes {tc.workspaces = array<i64: 24576>}
        func.func @f_0_mulf(%w: tensor<96x128xi8>, %s: tensor<96x1xf16>) -> tensor<96x128xf16>
            attributes {tc.simt, tc.order = 0, tc.args = array<i64: 0, 1, 4>} {
          %e = linalg.generic ins(%w, %s) { arith.sitofp; arith.mulf }; return %e
        }
        func.func @f_1_matmul(%x, %e) attributes {tc.order = 1, tc.args = array<i64: 2, 4, 3>} {
          %y = "tc.matmul"(%x, %e) {a_layout = "mk", b_layout = "nk"}; return %y
        }

    After::

        func.func @f_1_matmul(%x, %w, %s)
            attributes {tc.args = array<i64: 2, 0, 1, 3>} {
          %e = linalg.generic ins(%w, %s) { arith.sitofp; arith.mulf }
          %y = "tc.matmul"(%x, %e) {a_layout = "mk", b_layout = "nk"}; return %y
        }

    tile-gemm loads the narrow numbers, and warps compute from them the tiles that the tensor core
    reads. Each element is computed by the same ops as before and therefore has the same bits. An
    operand qualifies if it is computed element by element from one tensor of i8, fp8 or i32 with K
    innermost, whose numbers hold one element or several (``w & 15`` beside ``w >> 4``), and from
    scales and zero points per row or group of k. The layout of the operand itself may be ``kn``,
    because the operand is no longer stored. Other launches remain, and a remark states the reason.
    Preserves every value, bit for bit, up to the order of the f32 sums.

    alone: whether tile-gemm's CTAs share no tiles and one warpgroup stores them; otherwise nothing
           is fused
    """

    name: ClassVar[str] = "fuse-operands"
    alone: bool = True

    def run(self, module: ir.Module) -> None:
        functions = numbered_launches(module)
        launches = _Launches.of(module, functions, self.alone)
        for product in functions:
            if any(isinstance(op, tc.MatmulOp) for op in product.entry_block):
                launches.fuse(product)
        if len(launches.functions) < len(functions):
            launches.renumber(module)


@dataclass
class _Launches:
    """The launches of a program in order.

    spaces: bytes of workspaces, by number of the buffer
    target: that the program is compiled for
    alone:  see `FuseOperands`
    """

    functions: list[func.FuncOp]
    spaces: dict[int, int]
    target: str
    alone: bool

    @staticmethod
    def of(module: ir.Module, functions: list[func.FuncOp], alone: bool) -> _Launches:
        """Reads the launches of a module."""
        sizes = sizes_of(module)
        end = 1 + max((n for f in functions for n in integers(f, "tc.args")), default=-1)
        spaces = dict(enumerate(sizes, end - len(sizes)))
        return _Launches(list(functions), spaces, target_of(module), alone)

    def fuse(self, product: func.FuncOp) -> None:
        """Moves the ops that compute an operand into the function of the product. If both operands
        are computed, it moves the ops of the larger one."""
        (op,) = (each for each in product.entry_block if isinstance(each, tc.MatmulOp))
        operands = sorted(operands_of(op), key=lambda each: -prod(each[0].type.shape))
        for operand, layout in operands:
            maker = self._maker(product, operand)
            if maker is None:
                continue
            try:
                if not self.alone:
                    raise NotComputedError(
                        "expected CTAs with tiles of their own (cta-group=1, cluster=1x1, "
                        "n-tiles=1) and epilogue-warps=4, which compute it"
                    )
                _check(op, operand, self.target)
                place = ir.BlockArgument(operand).arg_number
                made = _together(product, maker, place, layout)
            except NotComputedError as problem:
                remark(op, f"@{maker.name.value} stays a launch: {problem}")
                continue
            remark(
                op,
                f"@{maker.name.value} becomes part of this kernel, which loads its inputs and "
                f"computes {operand.type} from it tile by tile",
            )
            self.functions[self.functions.index(product)] = made
            self.functions.remove(maker)
            for old in (product, maker):
                old.operation.erase()
            return

    def _maker(self, product: func.FuncOp, operand: ir.Value) -> func.FuncOp | None:
        """The launch on CUDA cores that writes an operand for this product alone."""
        numbers = integers(product, "tc.args")
        if not isinstance(operand, ir.BlockArgument):
            return None
        number = numbers[operand.arg_number]
        others = [
            each
            for each in self.functions
            if each is not product and number in integers(each, "tc.args")
        ]
        alone = number in self.spaces and numbers.count(number) == len(others) == 1
        return others[0] if alone and is_simt(others[0]) else None

    def renumber(self, module: ir.Module) -> None:
        """Removes the workspaces that no launch uses any more, and renumbers the others."""
        every = [integers(each, "tc.args") for each in self.functions]
        used = {number for numbers in every for number in numbers}
        kept = [number for number in self.spaces if number in used]
        first = min(self.spaces)
        new = {number: first + place for place, number in enumerate(kept)}
        number_launches(self.functions)
        for function, numbers in zip(self.functions, every):
            function.attributes["tc.args"] = i64s([new.get(n, n) for n in numbers])
        module.operation.attributes["tc.workspaces"] = i64s([self.spaces[n] for n in kept])


def _check(op: tc.MatmulOp, operand: ir.Value, target: str) -> None:
    """Checks that a kernel supports a product; NotComputedError states the unsupported property."""
    function = op.operation.parent.opview
    name = string(function, WARP_MAP) if WARP_MAP in function.attributes else TCGEN05
    if not TARGETS[target].wgmma and name not in (TCGEN05, TCGEN05_EPILOGUE_LOAD):
        raise NotComputedError(
            f"expected {WARP_MAP} to be {TCGEN05} or {TCGEN05_EPILOGUE_LOAD}, got {name}: four "
            "warps compute operands"
        )
    (rows,) = (
        other.type.shape[way.index(way.replace("k", "")) - 2]
        for other, way in operands_of(op)
        if other != operand
    )
    if (tiles := ceil_div(rows, TMEM_LANES)) > MOST_TILES:
        raise NotComputedError(
            f"expected at most {MOST_TILES} tiles of {TMEM_LANES} rows by which the operand is "
            f"multiplied, got {tiles}: each of them recomputes the operand, so a separate launch "
            "is faster"
        )


def _together(product: func.FuncOp, maker: func.FuncOp, place: int, layout: str) -> func.FuncOp:
    """A function of both, before the product's, whose argument `place`, in the product's
    `layout`, is the maker's result; NotComputedError if no kernel computes it."""
    inner, outer = maker.entry_block, product.entry_block
    kept = [each for each in outer.arguments if each.arg_number != place]
    kinds = [each.type for each in (*kept, *inner.arguments)]
    *mine, made = integers(maker, "tc.args")
    numbers = integers(product, "tc.args")
    assert numbers[place] == made
    new = replacement(product, kinds, product.type.results)
    results = numbers[len(outer.arguments) :]
    left = [n for at, n in enumerate(numbers[: len(outer.arguments)]) if at != place]
    new.attributes["tc.args"] = i64s([*left, *mine, *results])
    block = new.add_entry_block([product.location] * len(kinds))
    arguments = list(block.arguments)
    known = dict(zip(kept, arguments[: len(kept)], strict=True))
    within = dict(zip(inner.arguments, arguments[len(kept) :], strict=True))
    *ops, end = inner
    with ir.InsertionPoint(block):
        for each in ops:
            clone(each, within)
        (value,) = end.operands
        with value.owner.location:
            operand = reshape(within[value], outer.arguments[place].type.shape)
        known[outer.arguments[place]] = operand
        for each in outer:
            clone(each, known)
    try:
        Computed.of(operand, layout)
    except NotComputedError:
        new.operation.erase()
        raise
    return new

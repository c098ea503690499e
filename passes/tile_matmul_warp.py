"""tile-matmul-warp: a (batched) matrix product for mma.sync, one tile of the output per CTA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tcir._mlir import arith, ir, scf
from tcir.dialect import tc
from tcir.dialect.fragments import accumulator_type, loads_for
from tcir.dialect.warp_limits import COPY_BYTES, FP8, TARGETS
from tcir.passes import index_math as math
from tcir.passes.emit import i64, i64s, text
from tcir.passes.index_math import Index
from tcir.passes.limits import ceil_div
from tcir.passes.refusal import SMALLEST_MATMUL, refuse
from tcir.passes.tile_kernel import Source, argument, block_id, find_sources, kernel
from tcir.passes.warp_swizzle import choose_swizzle
from tcir.passes.warp_tiling import Tiling, TilingOptions, choose_tiling
from tcir.pipeline import Pass, register_pass
from tcir.remarks import remark

DEFAULT_TARGET = "sm_100a"


@register_pass
@dataclass(frozen=True)
class TileMatmulWarp(Pass):
    """Turns ``tc.matmul`` into the sequential program of one CTA of warps.

    block_m, block_n, block_k: tile of a CTA, powers of two; 0 chooses (`choose_tiling`)
    warps_m, warps_n:          how many warps divide it; 0: one for every 64 rows and columns
    atom:                      the instruction as `tcir.layout` names it; "" takes the longest K.
                               Fragments, loads and swizzles all follow from it
    group_m:                   rows of tiles that CTAs go through together, for the L2 cache
    ldmatrix:                  false: plain loads from shared memory everywhere
    target:                    "" takes the module's ``tc.target``, or sm_100a

    Before::

        %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<…xf16>, …) -> …

    After (`func.func @f(%a: memref, …) attributes {tc.kernel, tc.warps = array<i64: 2, 4>, …}`)::

        %zero = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 128, 256>, f32, "C", atom>
        %d = scf.for %i = 0 to ceil(K / 64) iter_args(%acc = %zero) {
          %ta = "tc.smem_tile"() : () -> !tc.staged<…>; %tb = …
          "tc.cp_async"(%a, %m0, %k0, %ta); "tc.cp_async"(%b, %k0, %n0, %tb)
          per K step: %fa = "tc.load_fragment"(%ta) {k, via}; %fb = …; "tc.mma_sync"(%fa, %fb, %acc)
        }
        "tc.store_fragment"(%d, %c, %m0, %n0)

    Preserves the value of every output element up to the order of the sums (f32 operands are
    multiplied as tf32), and the location of the product on every op.
    """

    name: ClassVar[str] = "tile-matmul-warp"
    block_m: int = 0
    block_n: int = 0
    block_k: int = 0
    warps_m: int = 0
    warps_n: int = 0
    atom: str = ""
    group_m: int = 8
    ldmatrix: bool = True
    target: str = ""

    def run(self, module: ir.Module) -> None:
        target = self.target or _module_target(module)
        options = TilingOptions(
            self.block_m, self.block_n, self.block_k, self.warps_m, self.warps_n, self.atom
        )
        for source in find_sources(module, tc.MatmulOp, self.name):
            _check(source.op, target, self.group_m)
            _tile(source, options, target, self.group_m, self.ldmatrix)


def _module_target(module: ir.Module) -> str:
    attributes = module.operation.attributes
    return text(attributes["tc.target"]) if "tc.target" in attributes else DEFAULT_TARGET


def _check(op: Any, target: str, group_m: int) -> None:
    if target not in TARGETS:
        known = ", ".join(TARGETS)
        raise refuse(op, f"expected a target out of {known}, got {target}", SMALLEST_MATMUL)
    for value in (op.a, op.b):
        if str(value.type.element_type) in FP8 and not TARGETS[target].fp8:
            raise refuse(
                op,
                f"expected operands that mma.sync of {target} multiplies, got "
                f"{value.type.element_type} (e4m3 and e5m2 need sm_89 or newer, PTX ISA 9.7.14.5); "
                "take target sm_90, or widen the operands to f16",
                SMALLEST_MATMUL,
            )
    if group_m < 1:
        raise refuse(op, f"expected group-m of at least 1, got {group_m}; smallest accepted: 1")


@dataclass(frozen=True)
class _Operand:
    """A or B: its tile, how copies fill it and how fragments come out of it."""

    tensor: Any
    type: Any
    width: int
    tails: str
    via: str
    operand: str
    fragment: Any

    @staticmethod
    def create(
        op: Any, value: Any, tensor: Any, operand: str, major: str, sizes: tuple[int, int],
        tile: tuple[int, int], atom: Any, ldmatrix: bool,
    ) -> _Operand:  # fmt: skip
        """`sizes`: extents (mn, k) of the matrix."""
        element = tensor.type.element_type
        bytes_ = tc.element_bytes(element)
        order = (0, 1) if major == "K" else (1, 0)
        outer, inner = (sizes[i] for i in order)
        tile_outer, tile_inner = (tile[i] for i in order)
        width = _copy_width(op, operand, inner * bytes_, tile_inner * bytes_)
        via, why = loads_for(atom.name, operand, major, bytes_)
        if not ldmatrix:
            via, why = "loads", "the option ldmatrix is false"
        if via == "loads":
            remark(op, f"{operand} takes plain loads from shared memory, not ldmatrix: {why}")
        swizzle, left = choose_swizzle(list(tile), element, major, width, atom.name, operand, via)
        if left:
            remark(op, f"{operand}: no swizzle frees the tile of bank conflicts, {left} are left")
        return _Operand(
            tensor,
            tc.StagedType.build(list(tile), element, major, swizzle),
            width,
            tails(outer % tile_outer != 0, inner % tile_inner != 0),
            via,
            operand,
            tc.FragmentType.build([tile[0], atom.shape[2]], element, operand, atom.name),
        )

    def copy(self, tile: Any, batch: list[Any], mn: Index, k: Index) -> None:
        """``tc.cp_async`` of the tile at (mn, k)."""
        at = [mn, k] if self.type.major == "K" else [k, mn]
        tc.CpAsyncOp(
            self.tensor, [*batch, *math.values(at)], tile, i64(self.width),
            ir.StringAttr.get(self.tails),
        )  # fmt: skip

    def load(self, tile: Any, k: int) -> Any:
        """``tc.load_fragment`` of the columns from k."""
        return tc.LoadFragmentOp(tile, i64(k), ir.StringAttr.get(self.via), self.fragment).fragment


def tails(outer: bool, inner: bool) -> str:
    """The attribute ``tails``."""
    return " ".join(name for name, is_one in (("outer", outer), ("inner", inner)) if is_one)


def _copy_width(op: Any, operand: str, row: int, tile_row: int) -> int:
    for width in reversed(COPY_BYTES):
        if row % width == 0 and tile_row % width == 0:
            return width
    raise refuse(
        op,
        f"expected rows of {operand} of a multiple of {COPY_BYTES[0]} bytes, got {row} (cp.async "
        f"copies {COPY_BYTES} bytes from addresses that are multiples of that, PTX ISA "
        "9.7.9.25.3); pad the innermost dimension with zeros",
        SMALLEST_MATMUL,
    )


def _tile(
    source: Source, options: TilingOptions, target: str, group_m: int, ldmatrix: bool
) -> None:
    op = source.op
    *batch, m, n = op.out.type.shape
    a_layout, b_layout = text(op.a_layout), text(op.b_layout)
    k = op.a.type.shape[-1 if a_layout == "mk" else -2]
    tiling = choose_tiling(op, m, n, k, options)
    tiles_m, tiles_n = ceil_div(m, tiling.m), ceil_div(n, tiling.n)
    grid = [tiles_m * tiles_n, 1, batch[0] if batch else 1]
    with kernel(source, grid, warps=tiling.warps, target=target) as arguments:
        function = ir.InsertionPoint.current.block.owner
        function.attributes["tc.warps"] = i64s([tiling.warps_m, tiling.warps_n])
        left = _Operand.create(
            op, op.a, argument(arguments, op.a), "A", "K" if a_layout == "mk" else "MN",
            (m, k), (tiling.m, tiling.k), tiling.atom, ldmatrix,
        )  # fmt: skip
        right = _Operand.create(
            op, op.b, argument(arguments, op.b), "B", "K" if b_layout == "nk" else "MN",
            (n, k), (tiling.n, tiling.k), tiling.atom, ldmatrix,
        )  # fmt: skip
        row, column = _rasterise(tiles_m, tiles_n, group_m)
        m0, n0 = math.mul(row, tiling.m), math.mul(column, tiling.n)
        at = [block_id("z")] if batch else []
        total = _main_loop(left, right, tiling, ceil_div(k, tiling.k), at, m0, n0)
        tc.StoreFragmentOp(
            total, arguments[-1], [*at, *math.values([m0, n0])],
            ir.StringAttr.get(tails(m % tiling.m != 0, n % tiling.n != 0)),
        )  # fmt: skip


def _rasterise(tiles_m: int, tiles_n: int, group_m: int) -> tuple[Index, Index]:
    """Row and column of this CTA's tile: down `group_m` rows of tiles, then the next column.

    So the CTAs that run at one time share few rows of A and columns of B.
    """
    number = block_id("x")
    group = min(group_m, tiles_m)
    first = math.mul(math.div(number, group * tiles_n), group)
    inside = math.rem(number, group * tiles_n)
    if tiles_m % group == 0:
        return math.add(first, math.rem(inside, group)), math.div(inside, group)
    size = arith.minui(math.value(math.sub(tiles_m, first)), math.value(group))
    inside = math.value(inside)
    return math.add(first, arith.remui(inside, size)), arith.divui(inside, size)


def _main_loop(
    left: _Operand, right: _Operand, tiling: Tiling, trips: int, batch: list[Any], m0: Index,
    n0: Index,
) -> Any:  # fmt: skip
    element = ir.Type.parse(accumulator_type(str(left.type.element)))
    kind = tc.FragmentType.build([tiling.m, tiling.n], element, "C", tiling.atom.name)
    zero = tc.ZeroFragmentOp(kind).fragment
    loop = scf.ForOp(math.value(0), math.value(trips), math.value(1), [zero])
    with ir.InsertionPoint(loop.body):
        k0 = math.mul(loop.induction_variable, tiling.k)
        a, b = tc.SmemTileOp(left.type).tile, tc.SmemTileOp(right.type).tile
        left.copy(a, batch, m0, k0)
        right.copy(b, batch, n0, k0)
        total = loop.inner_iter_args[0]
        for k in range(0, tiling.k, tiling.atom.shape[2]):
            total = tc.MmaSyncOp(left.load(a, k), right.load(b, k), total, kind).d
        scf.YieldOp([total])
    return loop.results[0]

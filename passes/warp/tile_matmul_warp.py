"""tile-matmul-warp: tiles a (batched) matrix product for mma.sync; a CTA computes one or several
tiles of the output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import FP8
from tcir.errors import InputError
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, check_whole_rows, match_failure
from tcir.passes.emit.element_epilogue import check_by_element
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.tile_kernel import Source, find_sources
from tcir.passes.kernels.stores.fragment import tile_fragments
from tcir.passes.warp.core import MmaSync, StagedProduct
from tcir.passes.warp.operands import WarpMatrix, tma_obstacle
from tcir.passes.warp.tiles import GROUP, WarpTiles
from tcir.passes.warp.tiling import TilingOptions, WarpTiling, choose_tiling
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS, targets_with

COPIES = ("", "tma", "cp.async")


@register_pass
@dataclass(frozen=True)
class TileMatmulWarp(Pass):
    """Turns ``tc.matmul`` into the program of one CTA of warps, in program order.

    block_m, block_n, block_k: tile of a CTA, powers of two; 0 chooses (`choose_tiling`)
    warps_m, warps_n:          number of warps along M and N; 0: one per 64 rows and columns
    atom:                      the instruction, named as in `tcir.layout`; "": the longest K.
                               Determines fragments, loads and swizzles
    group_m:                   rows of tiles that CTAs go through together, for the L2 cache
    ldmatrix:                  false: plain loads from shared memory everywhere
    copy:                      "tma" or "cp.async" fills shared memory; "": TMA if the target has
                               it and both operands allow it, else cp.async with a remark
    ctas:                      CTAs that divide the tiles, if there are more tiles; 0: if TMA loads
                               and the sums of a tile take half an SM's registers, the fewest that
                               need no more rounds than one per SM
    target:                    "": the module's ``tc.target``, or the default

    Before::

        %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<…xf16>, …) -> …

    After (`func.func @f(%a: memref, …) attributes {tc.kernel, tc.warps = array<i64: 2, 4>, …}`)::

        %zero = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 128, 256>, f32, "C", atom>
        %d = scf.for %i = 0 to ceil(K / 64) iter_args(%acc = %zero) {
          %ta = "tc.smem_tile"() : () -> !tc.staged<…>; %tb = …
          "tc.cp_async"(%a, %m0, %k0, %ta); "tc.cp_async"(%b, %k0, %n0, %tb)   // or tc.tma_load
          per K step: %fa = "tc.load_fragment"(%ta) {k, via}; %fb = …; "tc.mma_sync"(%fa, %fb, %acc)
        }
        "tc.store_fragment"(%d, %c, %m0, %n0)

    In a CTA with several tiles a loop over them encloses everything after the tensor maps.

    A ``tc.epilogue`` of the product becomes a ``tc.fragment_epilogue`` before the store::

        %e = "tc.fragment_epilogue"(%d, %m0, %n0) ({ … })

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
    group_m: int = GROUP
    ldmatrix: bool = True
    copy: str = ""
    ctas: int = 0
    target: str = ""

    def __post_init__(self) -> None:
        if self.copy not in COPIES:
            raise InputError(f"expected copy=tma or copy=cp.async, got copy={self.copy}")

    def run(self, module: ir.Module) -> None:
        target = self.target or target_of(module)
        options = TilingOptions(
            self.block_m, self.block_n, self.block_k, self.warps_m, self.warps_n, self.atom
        )
        for source in find_sources(module, tc.MatmulOp, self.name, epilogues=True):
            check_whole_rows(source.op, self.name)
            check_by_element(source, self.name)
            _check(source.op, target, self.group_m)
            _check_fp8(source, target)
            _tile(source, options, target, self)


def _check(op: ir.OpView, target: str, group_m: int) -> None:
    if target not in TARGETS:
        known = ", ".join(TARGETS)
        raise match_failure(op, f"expected one target of {known}, got {target}", SMALLEST_MATMUL)
    for value in (op.a, op.b):
        if str(value.type.element_type) in FP8 and not TARGETS[target].fp8:
            raise match_failure(
                op,
                f"expected operands that mma.sync of {target} multiplies, got "
                f"{value.type.element_type} (e4m3 and e5m2 need sm_89 or newer, PTX ISA 9.7.14.5); "
                f"take target {' or '.join(targets_with('fp8'))}, or widen the operands to f16",
                SMALLEST_MATMUL,
            )
    if group_m < 1:
        raise match_failure(
            op, f"expected group-m of at least 1, got {group_m}; smallest accepted: 1"
        )


def _check_fp8(source: Source, target: str) -> None:
    """Rejects fp8 in an epilogue for a target that does not convert it."""
    if source.after is None or TARGETS[target].fp8:
        return
    for op in list(source.after.body.blocks[0])[:-1]:
        kind = op.operation.results[0].type
        if str(kind) in FP8:
            raise match_failure(
                op,
                f"expected f32, f16 or bf16 in an epilogue of {target}, got {kind} (cvt of e4m3 "
                "and e5m2 needs sm_89 or newer, PTX ISA 9.7.9.21); "
                f"take target {' or '.join(targets_with('fp8'))}, or store f16",
                SMALLEST_MATMUL,
            )


def _matrices(
    op: ir.OpView, tiling: WarpTiling, sizes: tuple[int, int, int], ldmatrix: bool
) -> list[WarpMatrix]:
    """A and B."""
    m, n, k = sizes
    layouts = string(op, "a_layout") == "mk", string(op, "b_layout") == "nk"
    majors = ["K" if k_inner else "MN" for k_inner in layouts]
    matrices = [
        WarpMatrix(op, value, name, major, extents, tile, tiling.atom, ldmatrix)
        for value, name, major, extents, tile in zip(
            (op.a, op.b),
            "AB",
            majors,
            ((m, k), (n, k)),
            ((tiling.m, tiling.k), (tiling.n, tiling.k)),
            strict=True,
        )
    ]
    for matrix in matrices:
        via, why = matrix.via
        if via == "loads":
            remark(
                op, f"{matrix.operand} takes plain loads from shared memory, not ldmatrix: {why}"
            )
    return matrices


def _is_by_tma(op: ir.OpView, matrices: list[WarpMatrix], copies: str, target: str) -> bool:
    """Whether TMA fills both tiles, or cp.async."""
    obstacle = _tma_obstacle(target, matrices)
    if copies == "tma" and obstacle:
        raise match_failure(
            op,
            f"expected a product that copy=tma can serve: {obstacle}; take copy=cp.async",
            SMALLEST_MATMUL,
        )
    if obstacle and not copies and TARGETS[target].tma:
        remark(op, f"the copies are cp.async, not TMA: {obstacle}")
    return not obstacle and copies != "cp.async"


def _tma_obstacle(target: str, matrices: list[WarpMatrix]) -> str:
    if not TARGETS[target].tma:
        return f"{target} has no TMA"
    return next(filter(None, (tma_obstacle(matrix, target) for matrix in matrices)), "")


def _tile(source: Source, options: TilingOptions, target: str, schedule: TileMatmulWarp) -> None:
    op = source.op
    *batch, m, n = op.out.type.shape
    k = op.a.type.shape[-1 if string(op, "a_layout") == "mk" else -2]
    tiling = choose_tiling(op, m, n, k, options)
    matrices = _matrices(op, tiling, (m, n, k), schedule.ldmatrix)
    by_tma = _is_by_tma(op, matrices, schedule.copy, target)
    tiles = WarpTiles(
        ceil_div(m, tiling.m),
        ceil_div(n, tiling.n),
        batch[0] if batch else None,
        group=schedule.group_m,
    )
    tiles = tiles.shared_out(op, tiling, schedule.ctas, by_tma, target)
    create = partial(StagedProduct.create, matrices, ceil_div(k, tiling.k), by_tma, tiles.batch)
    tile_fragments(source, create, tiles, MmaSync(tiling, target), m, n)

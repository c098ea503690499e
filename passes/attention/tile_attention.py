"""tile-attention: makes a kernel of scaled dot-product attention; each CTA computes a tile of rows
of a head."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.limits import FP8, MMA_K_BYTES, WGMMA_N, Legal
from tcir.dialect.ops.attention import LIFT, LOG2_E, PERIOD
from tcir.dialect.ops.block_scale import ROWS_PER_COLUMN
from tcir.errors import InputError
from tcir.passes.analysis.head_maps import views_of
from tcir.passes.analysis.strided import view_ops
from tcir.passes.attention.tcgen05 import (
    KEYS,
    ROWS,
    TILES,
    choose_keys,
    tile_in_tensor_memory,
)
from tcir.passes.attention.tcgen05 import choose_rows as choose_tensor_rows
from tcir.passes.attention.tiles import HeadShape, Softmax
from tcir.passes.attention.wgmma import MAPS, choose_rows, tile_by_warpgroups
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import no_kernel
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passes.emit.tile_kernel import Source
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import TARGETS

STORES = ("direct", "tma")
"""How results are stored: by threads, or by TMA."""
TAU = 8.0
"""Growth of exponents that rescales no sums, by default."""


@register_pass
@dataclass(frozen=True)
class TileAttention(Pass):
    """Turns ``tc.attention`` into the sequential program of one CTA.

    rows: queries of a tile. With wgmma it is 64 for each of one to three warpgroups; with tensor
          memory it is 128. 0 chooses
    keys: keys of a block, a multiple of 16, or of 32 for operands of 8 bits. 0 chooses 128 or 64.
          It chooses 64 with wgmma for heads of more than 128 elements, and with tensor memory if
          two CTAs then fit on an SM
    ctas: number of CTAs, each of which computes several tiles in turn; 0 chooses one CTA per SM or
          one CTA per tile. It chooses one per SM, with wgmma only, if there are more tiles than
          SMs, if the tiles have equally many blocks or a causal mask or a window limits them, and
          if there are no parts, no lengths and no tensors that scores read
    tau:  growth of exponents up to which a row keeps its maximum: the sums of earlier blocks are
          rescaled only if exponents grow by more. -1 chooses 8, or 0 for operands of 8 bits, which
          allow no other value
    polynomial: number of exponentials of every 16 keys that a polynomial computes instead of the
                special-function unit: those of the last keys. The number is even; only for tensor
                memory
    store: how results in tensor memory are stored: "direct", by threads, or "tma", by TMA from
          shared memory

    Before::

        %o, %lse = "tc.attention"(%q, %k, %v) ({}) {scale = 0.125 : f32, …}

    After, with wgmma (`func.func @f(%q: memref, …) attributes {tc.kernel, tc.grid, …}`)::

        %tq = "tc.smem_tile"(); "tc.tma_load"(%map_q, …, %tq)
        %sums, %m, %l = scf.for %j = 0 to ceil(n / 128) iter_args(%o = 0, %m = -inf, %l = 0) {
          %tk = "tc.smem_tile"(); "tc.tma_load"(%map_k, …, %tk)
          %tv = "tc.smem_tile"(); "tc.tma_load"(%map_v, …, %tv) {tc.apart}
          %s = "tc.wgmma_product"(%tq, %tk)
          %m1, %reference, %alpha = "tc.online_max"(%s, %m)
          %p = "tc.exp_fragment"(%s, %reference)
          %l1 = "tc.add_row_sums"(%l, %alpha, %p)
          %a = "tc.fragment_as_a"(%p)
          scf.yield "tc.wgmma_fragment"(%a, %tv, "tc.scale_fragment"(%o, %alpha)), %m1, %l1
        }
        "tc.store_fragment"("tc.scale_fragment"(%sums, "tc.invert_rows"(%l)), %out, …)

    After, in tensor memory, where each warp has a row in each of its threads::

        %tq = "tc.smem_tile"(); "tc.tma_load"(%map_q, …, %tq)
        %m, %l = scf.for %j = 0 to ceil(n / 128) iter_args(%m = -inf, %l = 0) {
          %tk = "tc.smem_tile"(); "tc.tma_load"(%map_k, …, %tk)
          %tv = "tc.smem_tile"(); "tc.tma_load"(%map_v, …, %tv) {tc.apart}
          "tc.mma"(%s, %tq, %tk, false) …
          scf.for %quarter = 0 to 4 iter_args(%m, %l) {
            %rows = "tc.tmem_ld"(%s, %quarter, 0)
            %m1, %reference, %alpha = "tc.row_online_max"(…, "tc.row_max"(%rows))
            %p = "tc.row_exponentials"(%rows, %reference)
            "tc.tmem_st_words"(%p in 16 bits, %tp, %quarter, 0)
            scf.if %j != 0 and "tc.rows_differ"(%alpha) {
              scf.for %column { "tc.tmem_st"("tc.tmem_ld"(%o, …) * %alpha, %o, …) }
            }
            scf.yield %m with %m1, %l with fma(%l, %alpha, "tc.row_sum"(%p)) for %quarter
          }
          "tc.mma"(%o, %tp, %tv, %j != 0) …
        }
        scf.for %quarter { … "tc.store_rows"("tc.tmem_ld"(%o, …) * "tc.row_inverse_sum"(%l), …) }

    With a causal mask, a window, or a last block that is not whole, scores go through
    ``tc.mask_fragment`` or ``tc.mask_rows``; blocks without a key of any row are not visited, and
    CTAs begin with the rows that have the most keys. The op's body is computed before the softmax:
    with wgmma in a ``tc.fragment_epilogue``, with tensor memory on register tiles, with a
    ``tc.load_rows`` for each tensor that the body reads. Keys and values in pages are loaded by one
    TMA box for each page or part of a page; ``tc.load_index`` reads the page's number. The grid is
    row tiles, heads, batch; with ``key_part`` the batch dimension also counts the parts, and a CTA
    visits only the blocks of its part.

    Scores of ``tc.block_scaled_attention`` are ``tc.mma_block_scale`` of tiles of bytes: the scales
    of a tile, and of each block of keys, are loaded beside the elements and copied to tensor memory
    by ``tc.cp_scales``.

    With sequences the grid has the largest number of row tiles that any division of the rows into
    sequences can need. A CTA finds the sequence of its tile by ``tc.find_group``, visits the blocks
    of that sequence's keys, and stores only rows of that sequence (``tc.store_fragment_group``,
    ``tc.store_lanes``); a CTA without a tile stores nothing.

    Changes the order of sums, and rounds exponentials to the type of the values, as the definition
    of the op allows. Every new op has the location of the original op.
    """

    name: ClassVar[str] = "tile-attention"
    rows: int = 0
    keys: int = 0
    ctas: int = 0
    tau: float = -1.0
    polynomial: int = 0
    store: str = "direct"

    def __post_init__(self) -> None:
        legal = sorted({*MAPS, *TILES.values})
        if self.rows not in (0, *legal):
            raise InputError(
                f"rows, the queries of a tile, must be one of {', '.join(map(str, legal))}, or 0 "
                f"to choose it, got {self.rows}: with wgmma a warpgroup computes 64 rows, and the "
                "registers of an SM suffice for three warpgroups; with tcgen05 a tile has 128 "
                "rows, one for each lane of tensor memory, whose columns suffice for two tiles; "
                "take rows=128"
            )
        if self.keys < 0 or self.keys % 16:
            raise InputError(
                "keys, those of a step, must be a multiple of 16 (K of the second product), or 0 "
                f"to choose it, got {self.keys}; take keys=128"
            )
        if self.ctas < 0:
            raise InputError(
                f"ctas must be at least 1, or 0 to choose it, got {self.ctas}; leave it out"
            )
        if self.tau != -1 and not 0 <= self.tau <= 15:
            raise InputError(
                f"tau must be from 0 to 15, got {self.tau}: the exponentials reach 2^tau, and f16 "
                "has to hold them; take tau=8, or -1 to choose it"
            )

        if self.store not in STORES:
            raise InputError(
                f"expected store to be {' or '.join(STORES)}, got {self.store!r}; leave it out"
            )
        if self.polynomial not in range(0, PERIOD + 1, 2):
            raise InputError(
                f"polynomial, the exponentials of every {PERIOD} keys that FMAs compute, must be "
                f"an even number, got {self.polynomial}: an instruction computes two; take "
                "polynomial=4"
            )

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        for source in _sources(module):
            if problem := no_kernel(source.op, target):
                raise match_failure(source.op, problem)
            if TARGETS[target].wgmma:
                self._by_warpgroups(source, target)
            else:
                self._in_tensor_memory(source, target)

    def _by_warpgroups(self, source: Source, target: str) -> None:
        heads = HeadShape.of(source.op).together(source.op.elements)
        keys = self.keys or (128 if max(heads["d"], heads["e"]) <= 128 else 64)
        _check_keys(source, keys, WGMMA_N)
        rows = self.rows or choose_rows(heads, TARGETS[target].sms)
        blocks, softmax = heads.blocks(rows, keys), self._softmax(source)
        if self.polynomial:
            raise match_failure(
                source.op,
                f"polynomial is not available for {target}, got {self.polynomial}: on this target "
                "scores are in registers, and tc.exp_fragment computes their exponentials without "
                "polynomials; leave it out",
            )
        if self.store != STORES[0]:
            raise match_failure(
                source.op,
                f"store is not available for {target}, got {self.store}: on this target threads "
                "store the sums from their registers; leave it out",
            )
        tile_by_warpgroups(source, heads, blocks, softmax, self.ctas, target)

    def _in_tensor_memory(self, source: Source, target: str) -> None:
        heads = HeadShape.of(source.op).together(source.op.elements)
        modified = source.op.modified
        rows = self.rows or choose_tensor_rows(heads, self.keys, modified)
        keys = self.keys or choose_keys(heads, rows, modified)
        _check_keys(source, keys, KEYS)
        if rows not in TILES:
            raise match_failure(
                source.op,
                f"rows must be {TILES} for {target}, got {rows}: tensor memory has {ROWS} lanes, "
                "one for each query of a tile; leave it out",
            )
        if self.ctas and rows > ROWS:
            raise match_failure(
                source.op,
                f"ctas is not available with rows={rows}, got {self.ctas}: the scores of the next "
                "tile would overwrite the columns of tensor memory that keep the softmax sums for "
                "the epilogue; take rows=128",
            )
        blocks = heads.blocks(rows, keys)
        softmax = replace(self._softmax(source), polynomial=self.polynomial)
        staged = self.store == "tma"
        if staged and heads.sequences:
            raise match_failure(
                source.op,
                "expected store=direct with sequences of different lengths, got store=tma: a TMA "
                "box always has the same number of rows, so at the end of a sequence it would "
                "overwrite rows of the next one; leave it out",
            )
        tile_in_tensor_memory(source, heads, blocks, softmax, staged, self.ctas, target)

    def _softmax(self, source: Source) -> Softmax:
        op = source.op
        scale, chosen = op.factor * LOG2_E, self.tau == -1
        if op.powers not in FP8:
            return Softmax(scale, TAU if chosen else self.tau, times=op.out_factor)
        if not chosen and self.tau:
            raise match_failure(
                op,
                f"tau must be 0 for operands of 8 bits, got {self.tau}: the exponentials in "
                f"{op.powers} already reach 2^{LIFT}, and the largest number of that type is 448; "
                "leave it out",
            )
        return Softmax(scale, 0.0, lift=LIFT, times=op.out_factor)


def _check_keys(source: Source, keys: int, legal: Legal) -> None:
    if keys not in legal:
        raise match_failure(
            source.op, f"keys must be {legal}, got {keys} ({legal.source}); leave it out"
        )
    step = MMA_K_BYTES // tc.element_bytes(ir.Type.parse(source.op.powers))
    if keys % step:
        raise match_failure(
            source.op,
            f"keys must be a multiple of {step}, the K of one instruction, got {keys}; take "
            "keys=64",
        )
    if isinstance(source.op, tc.BlockScaledAttentionOp) and keys % ROWS_PER_COLUMN:
        raise match_failure(
            source.op,
            f"keys must be a multiple of {ROWS_PER_COLUMN} for block-scaled operands, got {keys}: "
            "in tensor memory 32 rows share a column of scale factors (PTX ISA 9.7.16.10.7); take "
            "keys=64",
        )
    part = source.op.key_part
    if part is not None and part % keys:
        raise match_failure(
            source.op,
            f"key_part, the keys of a part, must be a multiple of the {keys} keys of a step, got "
            f"{part}: TMA loads the keys of a step as one box, which must not reach into the next "
            "part; take a number of keys that divides key_part",
        )


def _sources(module: ir.Module) -> list[Source]:
    """The functions of one attention that are not tiled yet."""
    found = []
    for op in list(tensor_ops(module)):
        if not isinstance(op, tc.AttentionOp):
            continue
        function = op.operation.parent.opview
        assert isinstance(function, func.FuncOp)
        views = {m for e, view in views_of(op).items() for m in view_ops(e, view.base)}
        ops = [each for each in function.entry_block if each.operation not in views]
        returned = list(ops[-1].operands)
        if len(ops) != 2 or returned not in ([op.out], [op.out, op.lse]):
            raise match_failure(
                op,
                "expected a function with one tc.attention that returns its results, and whose "
                "operands are arguments, or slices and transposes of arguments that a tensor map "
                f"can describe, got {', '.join(each.operation.name for each in ops)}; use the "
                "pipeline layers, which makes such functions",
            )
        found.append(Source(function, op))
    return found

"""tile-attention-backward: makes a kernel of the gradients of attention; each CTA computes a tile
of rows or keys of a head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import WGMMA_N
from tcir.errors import InputError
from tcir.passes.attention.backward import Backward
from tcir.passes.attention.backward_tcgen05 import tile_in_tensor_memory
from tcir.passes.attention.backward_wgmma import tile_by_warpgroups
from tcir.passes.attention.tcgen05 import KEYS
from tcir.passes.attention.wgmma import MAPS
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import BACKWARD_HEADS
from tcir.passes.emit.tile_kernel import find_sources
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import TARGETS

ROWS, BLOCK = 128, 64
"""Rows of a tile: two warpgroups have registers for both sums of 128 elements; columns of a
block."""
WIDE_BLOCK, NARROW_HEAD = 128, 64
"""Columns of a block of keys with which gradients of queries of at most so many elements are 1.1 to
1.2 times as fast with wgmma, measured on an H200; others lack registers."""


@register_pass
@dataclass(frozen=True)
class TileAttentionBackward(Pass):
    """Turns ``tc.attention_backward`` into the sequential program of one CTA.

    rows:  rows of a tile: queries for dq, keys for dk and dv. With wgmma it is 64 for each of one
           to three warpgroups; with tensor memory it is 128. 0 chooses
    block: columns of a block: keys for dq, queries for dk and dv. 0 chooses 64; for
           dq with wgmma and heads of at most 64 elements it chooses 128

    Before::

        %dk, %dv = "tc.attention_backward"(%q, %k, %v, %dout, %lse, %delta) {of = "kv", …}

    After, with wgmma (`func.func @f(%q: memref, …) attributes {tc.kernel, tc.grid, …}`)::

        %tk, %tv = the tile's keys and values
        %dk, %dv = scf.for %j = 0 to query heads of the group * ceil(m / 64) iter_args(0, 0) {
          %tq, %to = a block of queries and of the results' gradients
          %s = "tc.wgmma_product"(%tk, %tq); %dp = "tc.wgmma_product"(%tv, %to)
          %p = "tc.fragment_epilogue"(%s) of lse: exp2(fma(s, c, -lse log2 e))
          %ds = "tc.fragment_epilogue"(%dp) of %p, delta: p * (dp - delta)
          %dv1 = "tc.wgmma_fragment"("tc.fragment_as_a"(%p), "tc.smem_transposed"(%to), %dv)
          %dk1 = "tc.wgmma_fragment"("tc.fragment_as_a"(%ds), "tc.smem_transposed"(%tq), %dk)
          scf.yield %dk1, %dv1
        }
        "tc.store_fragment"(%dk * scale, …); "tc.store_fragment"(%dv, …)

    After, in tensor memory, where each warp has a row in each of its threads::

        scf.for %j = … {
          "tc.mma"(%s, %tk, %tq, false) …; "tc.mma"(%dp, %tv, %to, false) …
          scf.for %quarter = 0 to 4 {
            %p of "tc.tmem_ld"(%s, …) and "tc.load_rows"(%lse, …); "tc.tmem_st_words"(%p, %tp, …)
            %ds of %p, "tc.tmem_ld"(%dp, …) and delta; "tc.tmem_st_words"(%ds, %tds, …)
          }
          "tc.mma"(%dk, %tds, "tc.smem_transposed"(%tq), %j != 0) …
          "tc.mma"(%dv, %tp, "tc.smem_transposed"(%to), %j != 0) …
        }
        … "tc.store_rows"("tc.tmem_ld"(%dk, …) * scale, …); "tc.store_rows"("tc.tmem_ld"(%dv, …), …)

    With ``of = "q"`` rows are queries and blocks are of keys: ``s = q k^T``, ``dp = dout v^T``, and
    only ``dq += ds k``. So in both cases a score belongs to a row and a column of the tile, and the
    scores become operand A of the next product in the same registers. With a mask, scores go
    through ``tc.mask_fragment``, whose two offsets are exchanged if rows are keys, and blocks
    outside the mask are not visited. Each sum has one order, and no CTA adds to the sums of another
    CTA, so results do not depend on timing.

    Rounds p and ds to the type of the operands, as the definition of the op allows. Every new op
    has the location of the original op.
    """

    name: ClassVar[str] = "tile-attention-backward"
    rows: int = 0
    block: int = 0

    def __post_init__(self) -> None:
        if self.rows not in (0, *MAPS):
            raise InputError(
                f"rows, the queries of a tile, must be one of {', '.join(map(str, MAPS))}, or 0 "
                f"to choose it, got {self.rows}: a warpgroup computes 64 rows, and the registers "
                f"of an SM suffice for three warpgroups; take rows={ROWS}"
            )
        if self.block < 0 or self.block % 16 or self.block and self.block not in WGMMA_N:
            raise InputError(
                "block, the keys of a step, must be a multiple of 16 (K of the second product) "
                f"and at most 256, or 0 to choose it, got {self.block}; take block={BLOCK}"
            )

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        for source in find_sources(module, tc.AttentionBackwardOp, self.name, others=True):
            op = source.op
            extents = op.extents()
            for name in "de":
                if extents[name] not in BACKWARD_HEADS:
                    raise match_failure(
                        op,
                        f"head sizes must be {BACKWARD_HEADS}, got {extents[name]} "
                        f"({BACKWARD_HEADS.source}); pad the heads with zeros",
                    )
            wgmma = TARGETS[target].wgmma
            wide = wgmma and op.of_queries and max(extents["d"], extents["e"]) <= NARROW_HEAD
            block = self.block or (WIDE_BLOCK if wide else BLOCK)
            of = Backward.of(op, self.rows or ROWS, block)
            if wgmma:
                tile_by_warpgroups(source, of, target)
                continue
            if of.blocks.rows != ROWS or of.blocks.keys not in KEYS:
                raise match_failure(
                    op,
                    f"rows must be {ROWS} and block must be {KEYS} for {target}, got "
                    f"{of.blocks.rows} and {of.blocks.keys} ({KEYS.source}); leave both out",
                )
            tile_in_tensor_memory(source, of, target)

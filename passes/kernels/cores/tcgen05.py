"""A step of the main loop whose sums are in tensor memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import MMA_K_BYTES
from tcir.passes.emit.builders import mma, of_pair
from tcir.passes.emit.tile_kernel import Accumulate


def multiply(
    sums: Sequence[ir.Value],
    a: ir.Value,
    tiles: Sequence[ir.Value],
    accumulate: Accumulate,
    unsigned: tuple[int, int] = (0, 0),
    cta_group: int = 1,
    usage: Callable[[int], str] | None = None,
) -> None:
    """Adds the products of a tile of A and each of the `tiles` of B to its `sums`, slice by slice.

    unsigned: whether i8 of A, of B have no sign; cta_group: 2 for pairs; usage: what the collector
    does with A at the mma of each tile
    """
    k = a.type.shape[1] * tc.element_bytes(a.type.element)
    for j in range(k // MMA_K_BYTES):
        taken = accumulate.take()
        for number, (d, b) in enumerate(zip(sums, tiles, strict=True)):
            op = mma(d, a, b, taken, j, unsigned=unsigned)
            if cta_group == PAIR:
                of_pair(op)
            if usage is not None:
                op.attributes["collector"] = ir.StringAttr.get(usage(number))

"""Dense matrix products: operand tiles in shared memory, and one step of the main loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import string, unsigned_operands
from tcir.dialect.limits import TMEM_LANES
from tcir.dialect.ops.highlevel import k_part
from tcir.passes.analysis.computed import Computed
from tcir.passes.emit import index
from tcir.passes.emit.cluster import ALONE, ClusterShape, MulticastShare
from tcir.passes.emit.cta_pair import first_column
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.operand_tiles import TiledOperand, check_pitch, k_step, part_step
from tcir.passes.emit.tile_kernel import argument
from tcir.passes.gemm.computed_tiles import ComputedOperand
from tcir.passes.kernels.collector import ONE, SharedTiles
from tcir.passes.kernels.cores.tcgen05 import multiplied
from tcir.passes.kernels.product import Load, OfMatrices, Step, TilePlace


def check_dense(op: tc.MatmulOp | tc.GroupedMatmulOp) -> None:
    """Raises a match failure for operands that TMA or the tensor core cannot read."""
    for operand, layout in operands_of(op):
        if not isinstance(operand, ir.BlockArgument):
            continue  # computed, see fuse-operands
        name, element = layout[1].upper(), operand.type.element_type
        check_pitch(op, name, operand.type.shape[-1], SMALLEST_MATMUL, tc.element_bytes(element))
    part = k_part(op)
    step = k_step(k_of(op), tc.element_bytes(op.a.type.element_type))
    if part is not None and part % step:
        raise match_failure(
            op,
            f"expected k_part to be a multiple of {step}, got {part} ({step} elements are one "
            f"step of the main loop: a span of the swizzle); take k_part = {round_up(part, step)}",
        )


def columns_step(op: tc.MatmulOp | tc.GroupedMatmulOp) -> int:
    """The number that must divide the columns of B that one CTA loads."""
    _, (b, layout) = operands_of(op)
    return part_step("k" if layout[1] == "k" else "mn", b.type.element_type)


def check_rows(op: tc.MatmulOp, cluster: ClusterShape) -> None:
    """Raises a match failure if the CTAs of `cluster` cannot load equal parts of A's rows."""
    (a, layout), _ = operands_of(op)
    step = part_step("k" if layout[1] == "k" else "mn", a.type.element_type)
    if cluster.n * step > TMEM_LANES:
        raise match_failure(
            op,
            f"expected at most {TMEM_LANES // step} CTAs that share a tile of A, got {cluster.n}: "
            f"each loads a part of its {TMEM_LANES} rows, whole swizzle patterns of {step} where "
            f"they are innermost; take cluster={ClusterShape(cluster.m, TMEM_LANES // step)}",
        )


def k_of(op: tc.MatmulOp | tc.GroupedMatmulOp) -> int:
    """Number of elements of K."""
    return int(op.a.type.shape[string(op, "a_layout").index("k") - 2])


def operands_of(op: tc.MatmulOp | tc.GroupedMatmulOp) -> list[tuple[ir.Value, str]]:
    """The operands A and B with their layouts."""
    return [(op.a, string(op, "a_layout")), (op.b, string(op, "b_layout"))]


@dataclass(frozen=True)
class DenseProduct(OfMatrices):
    """``tc.matmul`` in tiles of `rows` rows and `n_tile` columns.

    a, b: the operands in tiles of one step
    k: elements of K in a step
    steps: number of steps that cover K, or a part of K
    sums: element type of the accumulator
    cta_group: 2 for a product of CTA pairs, whose CTAs load half of a tile of B each
    cluster: CTAs that load tiles of A and B together
    unsigned: whether i8 elements of A and of B are unsigned
    together: number of tiles of B by which a tile of A is multiplied, each with its own sums
    """

    a: TiledOperand | ComputedOperand
    b: TiledOperand | ComputedOperand
    k: int
    steps: int
    sums: ir.Type
    cta_group: int = 1
    cluster: ClusterShape = ALONE
    unsigned: tuple[int, int] = (0, 0)
    together: SharedTiles = ONE

    @classmethod
    def create(
        cls,
        op: tc.MatmulOp | tc.GroupedMatmulOp,
        arguments: list[ir.Value],
        n_tile: int,
        cta_group: int = 1,
        cluster: ClusterShape = ALONE,
        together: SharedTiles = ONE,
        rows: int = TMEM_LANES,
    ) -> Self:
        """Builds the tensor maps in a kernel of these `arguments`."""
        (a, a_layout), (b, b_layout) = operands_of(op)
        m, n = a.type.shape[a_layout.index("m") - 2], b.type.shape[b_layout.index("n") - 2]
        k = k_of(op)
        kc = k_step(k, tc.element_bytes(a.type.element_type))

        def operand(
            value: ir.Value, layout: str, extent: int, tile: int, parts: int
        ) -> TiledOperand | ComputedOperand:
            if not isinstance(value, ir.BlockArgument):
                return ComputedOperand.create(Computed.of(value, layout), arguments, tile)
            rest = {"batch": value.type.shape[0]} if value.type.rank == 3 else {}
            order = (("k", "mn") if layout[1] == "k" else ("mn", "k")) + tuple(rest)
            extents = {"mn": extent, "k": k, **rest}
            return TiledOperand.create(argument(arguments, value), order, extents, tile, kc, parts)

        integer = str(a.type.element_type) == "i8"
        return cls(
            operand(a, a_layout, m, rows, cluster.n),
            operand(b, b_layout, n, n_tile // cta_group, cluster.m),
            kc,
            ceil_div(k_part(op) or k, kc),
            ir.IntegerType.get_signless(32) if integer else ir.F32Type.get(),
            cta_group,
            cluster,
            unsigned_operands(op),
            together,
        )

    def at(self, place: TilePlace) -> Step:
        """The steps of the main loop for the tile at `place`."""
        usage = self.together.usage if self.together.collector else None
        return multiplied(self.loads(place), self.unsigned, self.cta_group, usage)

    def loads(self, place: TilePlace) -> Load:
        """Returns a function that loads the operands of a step of the tile at `place`."""
        rows = self.b.type.shape[0]
        columns = [
            first_column(
                index.add(place.column, number * rows * self.cta_group), rows, self.cta_group
            )
            for number in range(self.together.count)
        ]
        shares = self.cluster.share_of_a(), self.cluster.share_of_b()
        return partial(self._load, place, columns, shares)

    def _load(
        self,
        place: TilePlace,
        columns: Sequence[Index],
        shares: tuple[MulticastShare | None, MulticastShare | None],
        step: Index,
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Loads the tile of A of a step at `place`, and the tiles of B from each of
        `columns` on."""
        if place.part is not None:
            step = index.add(index.mul(place.part, self.steps), step)
        k0 = index.mul(step, self.k)
        a = tc.SmemTileOp(self.a.type).tile
        b = [tc.SmemTileOp(self.b.type).tile for _ in columns]
        matrix = place.batch if place.group is None else place.group
        batch: dict[str, Index] = {} if matrix is None else {"batch": matrix}
        loads = [partial(self.a.load, a, {"mn": place.row, "k": k0, **batch}, shares[0])]
        for tile, column in zip(b, columns, strict=True):
            loads.append(partial(self.b.load, tile, {"mn": column, "k": k0, **batch}, shares[1]))
        for convert in [load() for load in loads]:
            if convert is not None:
                convert()
        return a, b

"""The modelled cost of a matrix product in tiles of each width (`tcir.passes.emit.cost`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import MMA_K_BYTES, TMEM_LANES
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS
from tcir.dialect.ops.highlevel import k_part, k_parts
from tcir.passes.emit.cost import LaunchWork, epilogue_bytes
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.operand_tiles import k_major, k_step, mn_major
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passes.emit.tensor_functions import tensor_bytes
from tcir.passes.gemm.block_scaled import stage_of
from tcir.passes.gemm.dense import k_of, operands_of


@dataclass(frozen=True)
class ProductShape:
    """The sizes that determine the cost of a product in tiles of 128 rows.

    columns: number of columns of the sums
    matrices: number of matrices in the batch
    parts: number of parts of K, each with separate sums
    steps: number of steps per part
    step_bytes: bytes of one row of A or B in shared memory per step
    loaded: bytes that TMA writes per step: for A, and for a tile of B as a function of its columns
    scales: bytes of scales per step: of A, and of a tile of B as a function of its columns
    stored, read: bytes of the results, and of the tensors that the epilogue reads
    """

    rows: int
    columns: int
    matrices: int
    parts: int
    step_bytes: int
    steps: int
    loaded: tuple[int, Callable[[int], int]]
    scales: tuple[int, Callable[[int], int]]
    operands: int
    stored: int
    read: int

    @staticmethod
    def of(op: tc.MatmulOp | tc.BlockScaledMatmulOp, kind: str = "") -> ProductShape:
        """Reads the sizes from the op. kind: kind of the instruction, as in `ScaledShape`"""
        make = _scaled if isinstance(op, tc.BlockScaledMatmulOp) else _dense
        return make(op, kind)

    def work(self, n_tile: int) -> LaunchWork:
        """Numbers of instructions and bytes of the launch with tiles of `n_tile` columns."""
        tiles = ceil_div(self.rows, TMEM_LANES) * self.matrices * self.parts
        ctas = tiles * ceil_div(self.columns, n_tile)
        (a, b), (a_scales, b_scales) = self.loaded, self.scales
        scales = a_scales, b_scales(n_tile)
        each = ctas * self.steps
        return LaunchWork(
            ctas=ctas, n_tile=n_tile, lanes=tiles * TMEM_LANES,
            outputs=self.rows * self.matrices * self.parts,
            mma=each * self.step_bytes // MMA_K_BYTES, a_in_tmem=False,
            activations=each * (a + scales[0]), filters=each * (b(n_tile) + scales[1]),
            to_tmem=each * sum(scales), stored=self.stored, epilogue_reads=self.read,
            unique_bytes=self.operands + self.stored + self.read,
            stage_bytes=a + b(n_tile) + sum(scales),
        )  # fmt: skip


def _dense(op: tc.MatmulOp, kind: str) -> ProductShape:
    (a, a_layout), (b, b_layout) = operands_of(op)
    element, k = a.type.element_type, k_of(op)
    bytes_ = tc.element_bytes(element)
    step = k_step(k, bytes_)

    def tile(columns: int) -> int:
        make = k_major if b_layout[1] == "k" else mn_major
        return int(make(columns, step, b.type.element_type).nbytes)

    return ProductShape(
        a.type.shape[a_layout.index("m") - 2], b.type.shape[b_layout.index("n") - 2],
        a.type.shape[0] if a.type.rank == 3 else 1, k_parts(op) or 1, step * bytes_,
        ceil_div(k_part(op) or k, step), (TMEM_LANES * step * bytes_, tile), (0, lambda n: 0),
        *_bytes(op),
    )  # fmt: skip


def _scaled(op: tc.BlockScaledMatmulOp, kind: str) -> ProductShape:
    shape = ScaledShape.of(op, kind)
    stage = stage_of(shape)
    blocks = stage.scale_blocks * BLOCK_BYTES

    def scales(columns: int) -> int:
        step = gcd(columns, BLOCK_ROWS) if shape.n > columns else BLOCK_ROWS
        return ceil_div(BLOCK_ROWS - step + columns, BLOCK_ROWS) * blocks

    return ProductShape(
        shape.m, shape.n, shape.batch, k_parts(op) or 1, stage.row_bytes,
        ceil_div(k_part(op) or shape.k, stage.k),
        (TMEM_LANES * shape.a.row_bytes(stage.k), lambda n: n * shape.b.row_bytes(stage.k)),
        (blocks, scales), *_bytes(op),
    )  # fmt: skip


def _bytes(op: ir.OpView) -> tuple[int, int, int]:
    return sum(tensor_bytes(each.type) for each in op.operands), *epilogue_bytes(op.out)

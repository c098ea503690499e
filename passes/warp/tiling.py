"""Division of a matrix product among CTAs and warps, by a rule or by options."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.fragments import DEFAULT_ATOM, PTX_TYPE
from tcir.dialect.limits import BLOCK_THREADS, FP8, WARP
from tcir.layout.atoms import MmaAtom, mma_atom
from tcir.layout.int_tuple import LayoutError
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, match_failure

BLOCK_M, BLOCK_N, BLOCK_K_BYTES = 128, 256, 128
"""The largest tile of a CTA. Rows of 128 bytes of K touch every bank once."""
WARP_TILE = 64
"""Rows and columns of a warp's tile: 128 accumulators a thread, and A and B are read from shared
memory half as often as with 32."""
WARP_TILE_N_FP8 = 32
"""Columns for e4m3 and e5m2, which sm_90 widens to f16 in registers: half as many accumulators."""
LEAST = 16
MOST_ACCUMULATORS = 128
"""The most accumulators of a thread's 255 registers; the rest holds operands and addresses."""


@dataclass(frozen=True)
class WarpTiling:
    """The tile of a CTA, the numbers of warps along M and N, and the instruction."""

    m: int
    n: int
    k: int
    warps_m: int
    warps_n: int
    atom: MmaAtom

    @property
    def warps(self) -> int:
        """Number of warps of a CTA."""
        return self.warps_m * self.warps_n

    @property
    def warp_m(self) -> int:
        """Number of rows of a warp's tile."""
        return self.m // self.warps_m

    @property
    def warp_n(self) -> int:
        """Number of columns of a warp's tile."""
        return self.n // self.warps_n


@dataclass(frozen=True)
class TilingOptions:
    """Options of a tiling. With 0 or "" the tiling pass chooses."""

    block_m: int = 0
    block_n: int = 0
    block_k: int = 0
    warps_m: int = 0
    warps_n: int = 0
    atom: str = ""


def power_of_two(extent: int) -> int:
    """The smallest power of two that is at least `extent`."""
    return 1 << max(extent - 1, 0).bit_length()


def choose_tiling(op: ir.OpView, m: int, n: int, k: int, options: TilingOptions) -> WarpTiling:
    """The tiling of the product `op`.

    The extents of a CTA's tile are powers of two: M up to 128, N up to 256, and K up to 128 bytes.
    They are no larger than the problem needs, but at least 16 x 16 x the K of one instruction.
    There is a warp for every 64 x 64 elements. For e4m3 and e5m2, N is up to 128, and there is a
    warp for every 64 x 32 elements.
    """
    element = op.a.type.element_type
    atom = _atom(op, options.atom or DEFAULT_ATOM[str(element)])
    step = atom.shape[2]
    bytes_ = tc.element_bytes(element)
    tile_m = options.block_m or min(BLOCK_M, max(LEAST, power_of_two(m)))
    warp_n = WARP_TILE_N_FP8 if str(element) in FP8 else WARP_TILE
    widest = BLOCK_N * warp_n // WARP_TILE
    tile_n = options.block_n or min(widest, max(LEAST, power_of_two(n)))
    tile_k = options.block_k or max(step, min(BLOCK_K_BYTES // bytes_, power_of_two(k)))
    tiling = WarpTiling(
        tile_m,
        tile_n,
        tile_k,
        options.warps_m or max(1, tile_m // WARP_TILE),
        options.warps_n or max(1, tile_n // warp_n),
        atom,
    )
    problem = _problem(tiling, bytes_)
    if problem:
        raise match_failure(op, problem, SMALLEST_MATMUL)
    return tiling


def _atom(op: ir.OpView, name: str) -> MmaAtom:
    try:
        atom = mma_atom(name)
    except LayoutError as error:
        raise match_failure(op, f"option atom: {error}", SMALLEST_MATMUL) from error
    kinds = [PTX_TYPE[str(v.type.element_type)] for v in (op.a, op.b)]
    if atom.threads.size != WARP or not set(kinds) <= set(atom.a_types):
        raise match_failure(
            op,
            f"expected an mma.sync atom of {' and '.join(dict.fromkeys(kinds))} operands, got "
            f"{atom.name} ({', '.join(atom.a_types)}); the default is "
            f"{DEFAULT_ATOM[str(op.a.type.element_type)]}",
            SMALLEST_MATMUL,
        )
    return atom


def _problem(t: WarpTiling, element_bytes: int) -> str:
    numbers = {
        "block-m": t.m, "block-n": t.n, "block-k": t.k, "warps-m": t.warps_m, "warps-n": t.warps_n,
    }  # fmt: skip
    for name, number in numbers.items():
        if number < 1 or number & (number - 1):
            return (
                f"expected {name} to be a power of two, got {number} (the address of a thread is "
                "an XOR of the bits of its number); smallest accepted: block-m=16, block-n=16"
            )
    m, n, k = t.atom.shape
    least = max(k, 16 // element_bytes)
    if t.k < least:
        return (
            f"expected block-k of at least {least}, got {t.k} (one {t.atom.name}, and rows of 16 "
            "bytes for ldmatrix)"
        )
    if t.warp_m < m or t.warp_n < n or t.m * element_bytes < 16 or t.n * element_bytes < 16:
        return (
            f"expected a warp's tile of at least {m} x {n} and a CTA's of {LEAST} x {LEAST}, got "
            f"{t.m} x {t.n} over {t.warps_m} x {t.warps_n} warps; take fewer warps or a larger tile"
        )
    if t.warps * WARP > BLOCK_THREADS:
        return f"expected at most {BLOCK_THREADS // WARP} warps (launch limit), got {t.warps}"
    accumulators = t.warp_m * t.warp_n // WARP
    if accumulators > MOST_ACCUMULATORS:
        return (
            f"expected at most {MOST_ACCUMULATORS} accumulators a thread (of 255 registers), got "
            f"{accumulators}: a warp's tile is {t.warp_m} x {t.warp_n}; take more warps"
        )
    return ""

"""Hardware limits of sm_100a as tables, each with its source.

Sections are those of the PTX ISA 9.1; "driver API" is the CUDA driver API's tensor-map encoding
(``cuTensorMapEncodeTiled``, ``cuTensorMapEncodeIm2col``). Verifiers, passes and the generated
``docs/reference/ops.md`` read these tables; no limit is stated anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcir.target import DEFAULT_TARGET


@dataclass(frozen=True)
class Legal:
    """The legal values of one quantity: ``values`` in ``unit``; ``source`` is the document that
    states them."""

    values: range | tuple[int, ...]
    unit: str
    source: str

    def __contains__(self, value: object) -> bool:
        return value in self.values

    def __str__(self) -> str:
        if isinstance(self.values, tuple):
            return "one of " + ", ".join(map(str, self.values))
        low, high, step = self.values[0], self.values[-1], self.values.step
        return f"in [{low}, {high}]" if step == 1 else f"a multiple of {step} in [{low}, {high}]"

    def nearest(self, value: int) -> str:
        """The legal values nearest to an illegal ``value``, as text for an error message: ``"16 or
        24"``."""
        if isinstance(self.values, tuple):
            below = max((v for v in self.values if v < value), default=None)
            above = min((v for v in self.values if v > value), default=None)
        else:
            low, high, step = self.values[0], self.values[-1], self.values.step
            down = min(high, low + (value - low) // step * step)
            below = down if value > low else None
            above = None if value >= high else low if value < low else down + step
        return " or ".join(str(v) for v in (below, above) if v is not None)


# --- tensor memory ---------------------------------------------------------------------------

TMEM_LANES = 128
"""Lanes of tensor memory; a warp accesses the 32 of its sub-partition (PTX ISA 9.7.16.1)."""
TMEM_COLUMNS = 512
"""32-bit columns of tensor memory per SM (PTX ISA 9.7.16.1)."""
TMEM_ALLOCATION = Legal((32, 64, 128, 256, 512), "columns", "PTX ISA 9.7.16.7")
"""Column counts accepted by ``tcgen05.alloc``."""
QUARTER_LANES = 32
"""Lanes one warp accesses, those of sub-partition ``warp mod 4`` (PTX ISA 9.7.16.8); ops and
options call a sub-partition's lanes a *quarter*."""
QUARTERS = TMEM_LANES // QUARTER_LANES
"""Sub-partitions of tensor memory."""

_X128 = (1, 2, 4, 8, 16, 32, 64, 128)
TMEM_LD_NUM = {
    "32x32b": Legal(_X128, ".num", "PTX ISA 9.7.16.8, table 49"),
    "16x64b": Legal(_X128, ".num", "PTX ISA 9.7.16.8, table 49"),
    "16x32bx2": Legal(_X128, ".num", "PTX ISA 9.7.16.8, table 49"),
    "16x128b": Legal(_X128[:7], ".num", "PTX ISA 9.7.16.8, table 49"),
    "16x256b": Legal(_X128[:6], ".num", "PTX ISA 9.7.16.8, table 49"),
}
"""Legal ``.num`` of ``tcgen05.ld``/``st`` by shape."""
TMEM_LD_REGISTERS = {"32x32b": 1, "16x64b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
"""32-bit registers per thread and ``.num`` (at most 128 in all; PTX ISA 9.7.16.8, table 49)."""

CP_SHAPES = {
    "128x256b": (128, 32, ("",)),
    "128x128b": (128, 16, ("",)),
    "4x256b": (4, 32, ("",)),
    "64x128b": (64, 16, ("warpx2::02_13", "warpx2::01_23")),
    "32x128b": (32, 16, ("warpx4",)),
}
"""``tcgen05.cp``: (source rows, bytes per row, legal multicasts) (PTX ISA 9.7.16.9)."""


# --- tcgen05.mma -----------------------------------------------------------------------------


@dataclass(frozen=True)
class MmaKind:
    """Shapes and types of one dense ``tcgen05.mma`` kind. ``m`` and ``n`` map each cta_group to the
    legal extents."""

    a_types: tuple[str, ...]
    d_types: tuple[str, ...]
    k: int
    m: dict[int, Legal]
    n: dict[int, Legal]


_SHAPES = "PTX ISA 9.7.16.2, table 39"
_M = {1: Legal((64, 128), "rows", _SHAPES), 2: Legal((128, 256), "rows", _SHAPES)}
_M_SCALED = {1: Legal((128,), "rows", _SHAPES), 2: Legal((128, 256), "rows", _SHAPES)}
_N = {
    1: Legal(range(8, 257, 8), "columns", _SHAPES),
    2: Legal(range(16, 257, 16), "columns", _SHAPES),
}
_N_I8 = {
    1: Legal((8, 16, 24, *range(32, 257, 16)), "columns", _SHAPES),
    2: Legal(range(32, 257, 32), "columns", _SHAPES),
}
_F8F6F4 = ("f8E4M3FN", "f8E5M2", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN")

MMA_KINDS = {
    "f16": MmaKind(("f16", "bf16"), ("f32", "f16"), 16, _M, _N),
    "tf32": MmaKind(("tf32",), ("f32",), 8, _M, _N),
    "f8f6f4": MmaKind(_F8F6F4, ("f32", "f16"), 32, _M, _N),
    "i8": MmaKind(("si8", "ui8"), ("i32",), 32, _M, _N_I8),
    "mxf8f6f4": MmaKind(_F8F6F4, ("f32",), 32, _M_SCALED, _N),
    "mxf4": MmaKind(("f4E2M1FN",), ("f32",), 64, _M_SCALED, _N),
    "mxf4nvf4": MmaKind(("f4E2M1FN",), ("f32",), 64, _M_SCALED, _N),
}
"""Dense kinds: operand types, D types, K per instruction, M and N by cta_group."""

MMA_KIND_OF = {
    "f16": "f16", "bf16": "f16", "f32": "tf32", "f8E4M3FN": "f8f6f4", "f8E5M2": "f8f6f4",
    "i8": "i8",
}  # fmt: skip
"""The kind of ``tc.mma`` by element type of its operands: f32 is read as tf32 (its low 13 bits are
ignored), i8 as signed or unsigned."""

MMA_K_BYTES = 32
"""Bytes of K that one dense instruction reads of each row of A and B (PTX ISA 9.7.16.2)."""
WGMMA_TRANSPOSED_BYTES = 2
"""Bytes of the elements that wgmma transposes, PTX ISA 9.7.15.5.1.2."""
SLICE_COLUMNS = MMA_K_BYTES // 4
"""Tensor-memory columns of one K slice of A; ``.ashift`` moves as many."""


LANE_MASK_BYTES = 16
LAUNCH_RESPONSE_BYTES = 16
"""Bytes of one ``disable-output-lane``: a bit for each of 128 lanes (PTX ISA 9.7.16.10.9)."""


# --- shared memory ---------------------------------------------------------------------------

SMEM_BYTES = DEFAULT_TARGET.smem_per_cta
"""Shared memory one CTA can use (`tcir.target`)."""
SMEM_TILE_ALIGNMENT = 1024
"""Alignment of planned tiles: the repeat of the 128-byte swizzle (PTX ISA 9.7.16.4.1)."""
ATOM_32B = "128B_ATOM_32B"
"""The 128-byte swizzle that moves 32 bytes as a whole, other modes 16 (PTX ISA 5.5.7)."""
SWIZZLE_SPANS = {"NONE": 16, "32B": 32, "64B": 64, "128B": 128, ATOM_32B: 128}
"""Bytes of one swizzled row, by mode; also the largest inner box of a tensor map
(PTX ISA 9.7.16.10.6, driver API). Without a swizzle rows are 16 bytes, the width of a core matrix
(9.7.16.10.5), and a tensor map's inner box has no such limit."""
SWIZZLE_OF_SPAN = {span: mode for mode, span in SWIZZLE_SPANS.items() if mode != ATOM_32B}
"""The mode with atoms of 16 bytes, by span."""
SWIZZLE_ATOM_ROWS = 8
"""Rows after which every swizzle pattern repeats (PTX ISA 9.7.16.4.1, table 41: 1024 bytes in the
128-byte modes)."""
MN_MAJOR_GROUP = {"32B": 8, "64B": 8, "128B": 8, ATOM_32B: 4}
"""Rows of K from one stride dimension byte offset of an MN-major tile to the next, by swizzle (PTX
ISA 9.7.16.3.2; with 32-byte atoms CUTLASS, `Layout_MN_SW128_32B_Atom`)."""
SWIZZLE_MAJORNESS: dict[int, dict[str, tuple[str, ...]]] = {
    1: {"K": ("NONE", "32B", "64B", "128B"), "MN": ("32B", "64B", "128B")},
    2: {"K": ("NONE", "32B", "64B", "128B"), "MN": ("32B", "64B", "128B")},
    4: {"K": ("NONE", "32B", "64B", "128B"), "MN": (ATOM_32B,)},
}
"""Legal swizzles by bytes per element and majorness (PTX ISA 9.7.16.10.5, table 54). MN-major tiles
without a swizzle are also legal, but ``!tc.smem`` does not have them."""


# --- TMA -------------------------------------------------------------------------------------

_DRIVER = "CUDA driver API, cuTensorMapEncodeTiled"
_IM2COL = "CUDA driver API, cuTensorMapEncodeIm2col"
_WIDE = "CUDA driver API, cuTensorMapEncodeIm2colWide"
TMA_RANK = {
    "tiled": Legal(range(1, 6), "dimensions", _DRIVER),
    "im2col": Legal(range(3, 6), "dimensions", _IM2COL),
    "im2col_w": Legal(range(3, 6), "dimensions", _WIDE),
    "im2col_w128": Legal(range(3, 6), "dimensions", _WIDE),
}
TMA_DIM = Legal(range(1, 2**32 + 1), "elements", _DRIVER)
TMA_STRIDE = Legal(range(16, 2**40, 16), "bytes", _DRIVER)
TMA_BOX = Legal(range(1, 257), "elements", _DRIVER)
TMA_INNER_BOX_MULTIPLE = 16
"""The innermost box extent in bytes is a multiple of this (driver API)."""
TMA_ELEMENT_STRIDE = Legal(range(1, 9), "elements", _DRIVER)
TMA_CHANNELS = Legal(range(1, 257), "channels per pixel", _IM2COL)
TMA_PIXELS = Legal(range(1, 1025), "pixels per column", _IM2COL)
TMA_CORNER = {
    3: Legal(range(-(2**15), 2**15), "pixels", _IM2COL),
    4: Legal(range(-(2**7), 2**7), "pixels", _IM2COL),
    5: Legal(range(-(2**4), 2**4), "pixels", _IM2COL),
}
"""Corners of the im2col bounding box, by rank."""
TMA_OFFSET = {
    3: Legal(range(2**16), "pixels", "PTX ISA 5.5.4"),
    4: Legal(range(2**8), "pixels", "PTX ISA 5.5.4"),
    5: Legal(range(2**5), "pixels", "PTX ISA 5.5.4"),
}
"""im2col offsets of the instruction, unsigned, by rank of the map."""
TMA_WIDE_PIXELS = 128
"""Pixels of a load of mode im2col::w::128, its halo not counted (PTX ISA 5.5.5)."""
TMA_WIDE_CORNER = Legal(range(-(2**15), 2**15), "pixels", _WIDE)
"""Corners of the w modes' bounding box, which has a width only."""
TMA_WIDE_SWIZZLES = ("64B", "128B")
"""Swizzles of the w modes (same source); their tiles are K-major, so not 128B_ATOM_32B."""
TMA_HALO = {
    "im2col_w": Legal(range(512), "pixels", "PTX ISA 9.7.9.27"),
    "im2col_w128": Legal(range(32), "pixels", "PTX ISA 9.7.9.27"),
}
"""wHalo of the w modes."""
TMA_W_OFFSET = Legal(range(32), "pixels", "PTX ISA 9.7.9.27")
"""wOffset of the w modes."""


# --- barriers and launch ---------------------------------------------------------------------

MBARRIER_BYTES = 8
"""Size and alignment of an mbarrier object (PTX ISA 9.7.13.15)."""
MBARRIER_ARRIVALS = Legal(range(1, 2**20), "arrivals", "PTX ISA 9.7.13.15")
MBARRIER_TX = Legal(range(1, 2**20), "bytes", "PTX ISA 9.7.13.15")
"""Transaction bytes one ``expect_tx`` may announce."""
WARP = 32
"""Threads of a warp."""
BLOCK_THREADS = 1024
"""Threads of one CTA (CUDA C++ Programming Guide, technical specifications)."""
CTA_BARRIERS = 16
"""Named barriers of a CTA, 0 to 15 (PTX ISA 9.7.13.1)."""
WARPGROUP = 4 * WARP
"""Threads of a warpgroup: warps 4n to 4n + 3 (PTX ISA 9.7.15.1)."""
SETMAXNREG = Legal(range(24, 257, 8), "registers", "PTX ISA 9.7.19, setmaxnreg")
"""Registers per thread that ``setmaxnreg`` can set."""
GRID = (2**31 - 1, 65535, 65535)
"""Largest grid (CUDA C++ Programming Guide, technical specifications)."""
CLUSTER_CTAS = 8
"""CTAs of a cluster that every device with clusters can launch (CUDA C++ Programming Guide, thread
block clusters); 16 need a function attribute and fewer CTAs in flight."""


def launch_registers(threads: int) -> int:
    """Registers per thread if a CTA of `threads` threads has an SM to itself, a multiple of 8 and
    at most 255. This is ``.maxnreg`` of a kernel whose warpgroups redistribute their registers."""
    return min(DEFAULT_TARGET.registers // threads, 255) // 8 * 8


# --- warp level ------------------------------------------------------------------------------

FP8 = ("f8E4M3FN", "f8E5M2")
"""8-bit float operands; mma.sync has them from sm_89 on (PTX ISA 9.7.14.5, target notes)."""
WGMMA_M = 64
"""Rows of A that a warpgroup multiplies at once (PTX ISA 9.7.15.2)."""
WGMMA_N = Legal(range(8, 257, 8), "columns", "PTX ISA 9.7.15.2")
"""N of ``wgmma`` for floats."""
WGMMA_N_INTEGERS = Legal((8, 16, 24, *range(32, 257, 16)), "columns", "PTX ISA 9.7.15.2")
"""N of ``wgmma`` for integers."""
WGMMA_PENDING = Legal(range(8), "groups", "PTX ISA 9.7.15.7.3")
"""Groups that ``wgmma.wait_group`` can leave pending."""
COPY_BYTES = (4, 8, 16)
"""Sizes of cp.async (PTX ISA 9.7.9.25.3)."""

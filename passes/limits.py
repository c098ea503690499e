"""Hardware limits that the passes decide by, each with its source."""

from __future__ import annotations

SM_SHARED_BYTES = 228 * 1024
"""Shared memory of one SM of sm_100 (CUDA C++ Programming Guide, compute capability 10.0)."""

CTA_RESERVED_BYTES = 1024
"""Of that, what the system keeps for every CTA (same source)."""

SHARED_BYTES = SM_SHARED_BYTES - CTA_RESERVED_BYTES
"""Shared memory that one CTA can have: 227 KB."""

TMEM_COLUMNS = 512
"""Columns of tensor memory of one SM (PTX ISA 9.7.16.1)."""

TMEM_ALLOCATION_UNIT = 32
"""Least number of columns of ``tcgen05.alloc``; more come in powers of two (PTX ISA 9.7.16.7)."""

TILE_ALIGNMENT = 1024
"""Where a 128B swizzle pattern starts, so that a descriptor's base offset is 0 (PTX ISA 9.7.16.5)."""

MMA_ROWS = 128
"""M of ``tcgen05.mma.cta_group::1`` as used here: one row per lane (PTX ISA 9.7.16.2.1)."""

MMA_N_STEP, MMA_N_MAX = 16, 256
"""N of ``tcgen05.mma`` at M = 128: multiples of 16 up to 256 (PTX ISA 9.7.16.2.1, in the stricter
reading of CUTLASS `cute/arch/mma_sm100_umma.hpp`)."""

MMA_K_BYTES = 32
"""Bytes of K of A and B that one ``tcgen05.mma`` multiplies (PTX ISA 9.7.16.2.1)."""

QUARTER = 32
"""Lanes of tensor memory that one warp reads, and that one ``.ashift`` moves as a unit
(PTX ISA 9.7.16.8, 9.7.16.10.9)."""

TMA_STRIDE_BYTES = 16
"""Strides of a tensor map are multiples of this (CUDA driver API, cuTensorMapEncodeTiled)."""

TMA_MAX_ELEMENT_STRIDE = 8
"""Largest traversal stride of a tensor map (CUDA driver API, cuTensorMapEncodeTiled)."""

IM2COL_CORNER = range(-128, 128)
"""Box corners of a rank-4 im2col map (CUDA driver API, cuTensorMapEncodeIm2col)."""

IM2COL_OFFSET_MAX = 255
"""Largest tap offset of a rank-4 im2col load (PTX ISA 5.5.5)."""

GRID_YZ_MAX = 65535
"""Largest grid size in y and z (CUDA C++ Programming Guide, compute capabilities)."""

GRID_X_MAX = 2**31 - 1
"""Largest grid size in x (CUDA C++ Programming Guide, compute capabilities)."""


def ceil_div(a: int, b: int) -> int:
    """Quotient rounded up."""
    return -(-a // b)


def round_up(a: int, step: int) -> int:
    """`a` rounded up to a multiple of `step`."""
    return ceil_div(a, step) * step


def tmem_allocation(columns: int) -> int:
    """Columns to allocate so that `columns` are available: a power of two of at least 32."""
    size = TMEM_ALLOCATION_UNIT
    while size < columns:
        size *= 2
    return size

"""Micro-kernels (see `micro_kernels`) for assumptions about tensor memory and about the sums of
`tcgen05.mma`.

All kernels have the same structure: the program writes words to tensor memory and bytes to shared
memory, one thread issues the instructions under test, and the words of tensor memory are read back.
Each CTA of a pair has its own words and bytes; the first CTA issues the instructions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tcir.runtime.micro_kernel import HEADER, Array, MicroKernel

COLUMNS = 32
M, N = 128, 16
B_OFFSET = 8192
"""Offset of the tile of B in shared memory; A, 128 rows, precedes it."""
SHARED = B_OFFSET + 4096
#: K-major without swizzle: units of 16 bytes; 128 bytes to the next unit of a row, 512 bytes to the
#: next eight rows of 64 bytes each (PTX ISA 9.7.16.5.1).
_TILE = 128 >> 4 << 16 | 512 >> 4 << 32 | 1 << 46
#: Columns of A, and of the scale factors of A and B, when they are in tensor memory.
A_COLUMN, SFA_COLUMN, SFB_COLUMN = 16, 16, 24
META_COLUMN = 24
"""Column of the metadata when A is in tensor memory."""

_TEXT = """
.visible .entry ask(.param .u64 words, .param .u64 tiles, .param .u64 out)
.reqntid 128
{
 .reg .pred %p<6>; .reg .b32 %r<16>; .reg .b32 %w<WIDTH>; .reg .b64 %d<8>;
 .reg .b16 %h<1>;
 .shared .align 8 .b64 done; .shared .align 4 .b32 base; .shared .align 1024 .b8 memory[SHARED];
 mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r1, 0;
 setp.eq.u32 %p4, %r1, %r1;
 mov.u32 %r6, done; mov.u32 %r7, memory; mov.u32 %r12, %ctaid.x;
 ld.param.u64 %d0, [words]; ld.param.u64 %d1, [tiles]; ld.param.u64 %d2, [out];
 mul.wide.u32 %d3, %r12, SHARED; add.s64 %d1, %d1, %d3; mad.lo.u32 %r13, %r12, 128, %r1;
 mul.wide.u32 %d3, %r13, ROW; add.s64 %d0, %d0, %d3; add.s64 %d2, %d2, %d3;
 shl.b32 %r8, %r1, 2;
FILL: setp.ge.u32 %p3, %r8, SHARED; @%p3 bra FILLED;
 cvt.u64.u32 %d3, %r8; add.s64 %d3, %d1, %d3; ld.global.b32 %r9, [%d3];
 add.u32 %r10, %r7, %r8; st.shared.b32 [%r10], %r9; add.u32 %r8, %r8, 512; bra FILL;
FILLED:
 fence.proxy.async.shared::cta;
 BARRIER
 @!%p1 bra SET;
 tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [base], WIDTH;
 tcgen05.relinquish_alloc_permit.cta_group::GROUP.sync.aligned;
 @%p2 mbarrier.init.shared::cta.b64 [done], 1;
 @%p2 fence.mbarrier_init.release.cluster;
SET:
 tcgen05.fence::before_thread_sync;
 BARRIER
 tcgen05.fence::after_thread_sync;
 ld.shared.b32 %r3, [base]; shl.b32 %r4, %r2, 21; add.u32 %r4, %r4, %r3;
LOADS
 tcgen05.st.sync.aligned.32x32b.xWIDTH.b32 [%r4], {WORDS};
 tcgen05.wait::st.sync.aligned;
 ALL
 tcgen05.fence::before_thread_sync;
 BARRIER
 tcgen05.fence::after_thread_sync;
 setp.eq.u32 %p2, %r13, 0; @!%p2 bra FINISH;
 shr.u32 %r8, %r7, 4; cvt.u64.u32 %d4, %r8; or.b64 %d4, %d4, TILE; add.s64 %d5, %d4, B_AT;
 ONE
 COMMIT
FINISH: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r6], 0; @!%p3 bra FINISH;
 tcgen05.fence::after_thread_sync;
 tcgen05.ld.sync.aligned.32x32b.xWIDTH.b32 {WORDS}, [%r4];
 tcgen05.wait::ld.sync.aligned;
STORES
 tcgen05.fence::before_thread_sync;
 BARRIER
 tcgen05.fence::after_thread_sync;
 @%p1 tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %r3, WIDTH;
 ret;
}
"""


_CTA = ("1", "bar.sync 0;",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];")  # fmt: skip
_PAIR = ("2", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
         "mov.b16 %h0, 3; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
         ".multicast::cluster.b64 [%r6], %h0;")  # fmt: skip
"""GROUP, BARRIER and COMMIT of a CTA pair; `_CTA` has those of a single CTA."""


def _kernel(
    data: Any,
    *,
    one: str = "",
    all_threads: str = "",
    then: MicroKernel | None = None,
    columns: int = COLUMNS,
    ctas: int = 1,
) -> MicroKernel:
    """Kernel with the given instructions under test.

    data:        returns words uint32 [128, columns] and the bytes of shared memory, for every CTA
    one:         executed by one thread: tensor memory begins at %r3, A and B have the descriptors
                 %d4 and %d5, %p4 is true
    all_threads: executed by every thread before `one`; %r4 is its warp's address
    """
    registers = [f"%w{n}" for n in range(columns)]
    text = _TEXT.replace(
        "LOADS", "\n".join(f" ld.global.b32 {w}, [%d0+{4 * n}];" for n, w in enumerate(registers))
    ).replace(
        "STORES", "\n".join(f" st.global.b32 [%d2+{4 * n}], {w};" for n, w in enumerate(registers))
    )
    group, barrier, commit = _PAIR if ctas == 2 else _CTA
    for name, value in (
        ("GROUP", group), ("BARRIER", barrier), ("COMMIT", commit),
        ("WORDS", ", ".join(registers)), ("WIDTH", columns), ("ROW", 4 * columns),
        ("SHARED", SHARED), ("TILE", hex(_TILE)), ("B_AT", B_OFFSET >> 4), ("ALL", all_threads),
        ("ONE", one),
    ):  # fmt: skip
        text = text.replace(name, str(value))

    def make() -> tuple[list[Any], list[Array]]:
        words, tiles = data()
        out = np.zeros((ctas * 128, columns), np.uint32)
        return [words, tiles, out], [out]

    return MicroKernel(HEADER + text, 128, make, then=then, ctas=ctas)


def _tiles(a: Array, b: Array) -> Array:
    """Contents of shared memory with the rows of A and of B, 8 · n rows of up to 64 bytes each."""
    memory = np.zeros(SHARED, np.uint8)
    for at, rows in ((0, a), (B_OFFSET, b)):
        units = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows) // 8, 8, -1, 16)
        laid = np.zeros((len(units), 4, 8, 16), np.uint8)
        laid[:, : units.shape[2]] = units.transpose(0, 2, 1, 3)
        memory[at : at + laid.size] = laid.reshape(-1)
    return memory


def _no_words() -> Array:
    return np.zeros((128, COLUMNS), np.uint32)


def _mma(
    opcode: str,
    types: int,
    *,
    a: str = "%d4",
    before: str = "",
    after: str = "",
    m: int = M,
    n: int = N,
) -> str:
    """Text of a ``tcgen05.mma``.

    before, after: operands before and after the instruction descriptor
    """
    descriptor = types | n // 8 << 17 | m // 16 << 24  # PTX ISA 9.7.16.4.2
    return f"""mov.b32 %r9, {descriptor:#x};
 tcgen05.mma.{opcode} [%r3], {a}, %d5, {before}%r9, {after};"""


# --- zero_terms ----------------------------------------------------------------------------------


def _bf16(exponent: int, sign: int = 0) -> int:
    return sign << 15 | exponent + 127 << 7


def _near_nothing() -> tuple[Array, Array]:
    """Data for the sums 2^-149 - 2^-160 and 2^-149 - 2^-155; D and the other products are zero.

    An accumulation window below 2^-149 keeps both small terms, and the sums round to 0; one below
    2^-133 keeps only the second; one below 2^-126 keeps none, and both sums are 2^-149.
    """
    a, b = np.zeros((M, 16), np.uint16), np.zeros((N, 16), np.uint16)
    a[:, 0], a[:, 1] = _bf16(-74), _bf16(-80, 1)
    b[0, :2] = _bf16(-75), _bf16(-80)
    b[1, :2] = _bf16(-75), _bf16(-75)
    return _no_words(), _tiles(a.view(np.uint8), b.view(np.uint8))


# --- fp4_sums ------------------------------------------------------------------------------------


def _block_scaled() -> tuple[Array, Array]:
    """Data for the sum (4·4 - 3·4) · 2^16 + column · 2^-19 - 2^18. An accumulation window below the
    products keeps all bits.

    The first block of 16 has the largest scales, 2^8 each, the second the smallest, 2^-9 each. D
    is between the largest scales and the largest product.
    """
    a, b = np.zeros((M, 64), np.uint8), np.zeros((N, 64), np.uint8)
    one, three, four, minus_four = 2, 5, 6, 14  # codes of e2m1; 1 is 0.5
    a[:, 0], a[:, 1] = four, three
    b[:, 0], b[:, 1] = four, minus_four
    a[:, 16:32] = 1
    for column in range(N):  # products of 0.5 · 1
        b[column, 16 : 16 + column] = one
    words = _no_words()
    words[:, SFA_COLUMN : SFA_COLUMN + 4] = 0x38380178
    words[:, SFB_COLUMN] = 0x38380178
    words[:, :N] = (127 + 18) << 23 | 1 << 31
    packed = (x[:, 0::2] | x[:, 1::2] << 4 for x in (a, b))
    return words, _tiles(*packed)


# --- fp6_holder ----------------------------------------------------------------------------------


def _shifted_bytes() -> tuple[Array, Array]:
    """Data with bytes 2c for c below 32, which hold e2m3 code c in bits 6..1, and code 2c in bits
    5..0. B is all 1."""
    words = _no_words()
    rows = (np.arange(M * 32, dtype=np.uint8).reshape(M, 32) % 32 * 2).view(np.uint32)
    words[:, A_COLUMN : A_COLUMN + 8] = rows
    return words, _tiles(np.zeros((M, 32), np.uint8), np.full((N, 32), 0x38, np.uint8))


# --- atom_32b_rows -------------------------------------------------------------------------------

#: MN-major, 128-byte swizzle with atoms of 32 bytes: 1024 bytes to the next rows of K.
_FAR_ROWS = 1024 >> 4 << 32 | 1 << 46 | 1 << 61


def _groups_apart() -> tuple[Array, Array]:
    """Data in which each 512 bytes of B along K hold another number; A sums 8 of them."""
    memory = _tiles(np.ones((M, 8), np.float32), np.zeros((N, 32), np.uint8))
    rows = 2.0 ** np.arange((SHARED - B_OFFSET) // 512, dtype=np.float32)
    memory[B_OFFSET:] = rows.repeat(512 // 4).view(np.uint8)
    return _no_words(), memory


# --- sparse A ------------------------------------------------------------------------------------

#: Selectors of two in four; with B = 1, 2, 4, 8, 1, … they select sums of 3, 5, 6, 9, 10, 12.
_TWO_OF_FOUR = np.array([0x4, 0x8, 0x9, 0xC, 0xD, 0xE], np.uint32) * np.uint32(0x11111111)


def _sparse(by_lane: bool) -> tuple[Array, Array]:
    """Data with A of ones, and with metadata that differ by column, or (`by_lane`) by 16 lanes."""
    words = _no_words()
    if by_lane:
        words[:, A_COLUMN : A_COLUMN + 4] = _TWO_OF_FOUR[np.arange(M)[:, None] // 16 % 6]
    else:
        words[:, A_COLUMN : A_COLUMN + 4] = _TWO_OF_FOUR[:4]
    a = np.ones((M, 16), np.float16)
    b = np.tile(np.array([1, 2, 4, 8], np.float16), (N, 8))
    return words, _tiles(a, b)


# --- zero columns --------------------------------------------------------------------------------


def _ones() -> tuple[Array, Array]:
    """Data with A and B of ones, for 64 columns of D."""
    a, b = np.ones((M, 16), np.float16), np.ones((64, 16), np.float16)
    return np.zeros((128, 64), np.uint32), _tiles(a, b)


#: Alternating spans of 3 and 5 columns, none left out: 9.7.16.4.3.
_SPANS = 1 << 39 | 1 << 32 | (3 - 1) << 40 | (5 - 1) << 48


# --- pairs of CTAs -------------------------------------------------------------------------------


def _bytes_of_two() -> tuple[Array, Array]:
    """Data of two CTAs whose rows of shared memory differ."""
    tiles = [
        _tiles(np.full((M, 32), 1 + cta, np.uint8) + np.arange(M, dtype=np.uint8)[:, None], _ROWS)
        for cta in range(2)
    ]
    return np.zeros((256, COLUMNS), np.uint32), np.stack(tiles)


_ROWS = np.zeros((N, 32), np.uint8)


def _rows_twice() -> tuple[Array, Array]:
    """Data with 64 rows of A per CTA, both on lanes 0..63 and on lanes 64..127; each element is the
    number of its row."""
    words = np.zeros((2, 2, 64, COLUMNS), np.uint32)
    a = np.arange(128, dtype=np.float16).reshape(2, 64, 1).repeat(16, axis=2)
    words[..., A_COLUMN : A_COLUMN + 8] = a.view(np.uint32)[:, None]
    tiles = _tiles(np.zeros((M, 32), np.uint8), np.ones((N, 16), np.float16))
    return words.reshape(256, COLUMNS), np.stack([tiles, tiles])


def _lanes_of_two() -> tuple[Array, Array]:
    """Data in which A holds the lane's number on every lane, and metadata select two of four
    elements."""
    words = np.zeros((256, COLUMNS), np.uint32)
    a = np.arange(256, dtype=np.float16).reshape(256, 1).repeat(16, axis=1)
    words[:, A_COLUMN : A_COLUMN + 8] = a.view(np.uint32)
    words[:, META_COLUMN : META_COLUMN + 4] = _TWO_OF_FOUR[0]
    tiles = _tiles(np.zeros((M, 32), np.uint8), np.ones((N, 32), np.float16))
    return words, np.stack([tiles, tiles])


# --- tcgen05.st, tcgen05.ld ----------------------------------------------------------------------


def _numbered() -> tuple[Array, Array]:
    """Data in which every word differs from the others in both halves."""
    words = np.arange(128 * COLUMNS, dtype=np.uint32).reshape(128, COLUMNS)
    return words * np.uint32(0x10001) + np.uint32(0x40000001), np.zeros(SHARED, np.uint8)


_UNPACK = """tcgen05.st.sync.aligned.32x32b.x4.unpack::16b.b32 [%r4], {%w0, %w1, %w2, %w3};
 tcgen05.wait::st.sync.aligned;"""


def _lane(lane: int) -> str:
    """Text in which warp 1 stores words at an address that names `lane`."""
    return f"""setp.ne.u32 %p5, %r2, 1; @%p5 bra STORED;
 add.u32 %r9, %r3, {(lane << 16) + 8};
 tcgen05.st.sync.aligned.32x32b.x4.b32 [%r9], {{%w0, %w1, %w2, %w3}};
 tcgen05.wait::st.sync.aligned;
STORED:"""


def mma_kernels() -> dict[str, MicroKernel]:
    """Maps each assumption to the kernel that tests it."""
    bf16 = 1 << 4 | 1 << 7 | 1 << 10  # D f32, A and B bf16
    e2m1 = 1 << 7 | 1 << 10
    f16 = "cta_group::1.kind::f16"
    nvfp4 = "cta_group::1.kind::mxf4nvf4.block_scale.block16"
    e2m3 = 1 << 4 | 3 << 7  # D f32, A e2m3, B e4m3
    scales = "[%r10], [%r11], "
    places = f"add.u32 %r10, %r3, {SFA_COLUMN}; add.u32 %r11, %r3, {SFB_COLUMN}; "
    in_memory = f"add.u32 %r10, %r3, {A_COLUMN}; "
    sparse = partial(_mma, "sp.cta_group::1.kind::f16", before="[%r10], ", after="%p4")
    elsewhere = _kernel(_numbered, all_threads=_lane(64))
    return {
        "zero_terms": _kernel(_near_nothing, one=_mma(f16, bf16, after="%p4")),
        "fp4_sums": _kernel(
            _block_scaled,
            one=places + _mma(nvfp4, e2m1, after=scales + "%p4"),
        ),
        "scaled_n8": _kernel(
            _block_scaled,
            one=places + _mma(nvfp4, e2m1, after=scales + "%p4", n=8),
        ),
        "fp6_holder": _kernel(
            _shifted_bytes,
            one=in_memory + _mma("cta_group::1.kind::f8f6f4", e2m3, a="[%r10]", after="%p4"),
        ),
        "sparsity_selector": _kernel(
            partial(_sparse, by_lane=False),
            one=in_memory + sparse(1 << 4 | 1 << 2 | 2),
        ),
        "metadata_column": _kernel(
            partial(_sparse, by_lane=False),
            one=f"add.u32 %r10, %r3, {A_COLUMN + 1}; " + sparse(1 << 4 | 1 << 2),
        ),
        "half_lane_metadata": _kernel(
            partial(_sparse, by_lane=True),
            one=in_memory + sparse(1 << 4 | 1 << 2, m=64),
        ),
        "zero_column_spans": _kernel(
            _ones,
            one=f"mov.b64 %d6, {_SPANS:#x}; "
            + _mma("ws.cta_group::1.kind::f16", 1 << 4, after="%p4, %d6", n=64),
            columns=64,
        ),
        "cp_pair_source": _kernel(
            _bytes_of_two, one="tcgen05.cp.cta_group::2.128x256b [%r3], %d4;", ctas=2
        ),
        "ashift_copies": _kernel(
            _rows_twice,
            one=in_memory
            + _mma("cta_group::2.kind::f16.ashift", 1 << 4, a="[%r10]", after="%p4", n=2 * N),
            ctas=2,
        ),
        "ashift_half_lanes": _kernel(
            _lanes_of_two,
            one=in_memory
            + f"add.u32 %r11, %r3, {META_COLUMN}; "
            + _mma(
                "sp.cta_group::2.kind::f16.ashift",
                1 << 4 | 1 << 2,
                a="[%r10]",
                before="[%r11], ",
                after="%p4",
            ),
            ctas=2,
        ),
        "atom_32b_rows": _kernel(
            _groups_apart,
            one=f"and.b64 %d5, %d5, 0x3fff; or.b64 %d5, %d5, {_FAR_ROWS:#x}; "
            + _mma("cta_group::1.kind::tf32", 1 << 4 | 2 << 7 | 2 << 10 | 1 << 16, after="%p4"),
        ),
        "unpack_upper": _kernel(_numbered, all_threads=_UNPACK),
        "ld_st_lane": _kernel(_numbered, all_threads=_lane(0), then=elsewhere),
    }

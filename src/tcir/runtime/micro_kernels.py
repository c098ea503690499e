"""Kernels that test on hardware the assumptions of `tcir.machine.assumptions`; there is one kernel
for each assumption.

On the simulated machine, each kernel writes different bytes under each alternative of its
assumption. Therefore the bytes that a GPU writes show which alternative is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir.machine import TensorMap
from tcir.runtime.micro_kernel import HEADER, Array, MicroKernel
from tcir.runtime.micro_kernels_convert import convert_kernels
from tcir.runtime.micro_kernels_mma import mma_kernels

# Fills `region` bytes of shared memory with 0xCB, runs one TMA load of `nbytes` announced bytes,
# and writes the region out; its last word says whether the announced bytes came.
_LOAD = """
.extern .shared .align 1024 .b8 tiles[];
.visible .entry ask(.param .align 64 .b8 map[128], .param .u32 nbytes, .param .u32 region,
 .param .u64 out)
{
 .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<8>; .reg .b16 %h<4>;
 .shared .align 8 .b64 full;
 mov.u32 %r1, %tid.x; ld.param.u32 %r4, [nbytes]; ld.param.u32 %r5, [region];
 ld.param.u64 %d2, [out]; mov.u32 %r6, tiles; mov.u32 %r7, full; mov.b32 %r11, 0xCBCBCBCB;
 shl.b32 %r10, %r1, 2;
FILL: setp.ge.u32 %p1, %r10, %r5; @%p1 bra FILLED;
 add.u32 %r12, %r6, %r10; st.shared.b32 [%r12], %r11; add.u32 %r10, %r10, 128; bra FILL;
FILLED:
 fence.proxy.async.shared::cta;
 setp.eq.u32 %p2, %r1, 0;
 @%p2 mbarrier.init.shared::cta.b64 [%r7], 1;
 @%p2 fence.mbarrier_init.release.cluster;
 bar.sync 0;
 @!%p2 bra WAIT;
 mov.b64 %d4, map; cvta.param.u64 %d4, %d4; mov.b32 %r8, 0; mov.b32 %r9, 1;
 mov.b16 %h0, HALO; mov.b16 %h1, 0;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], %r4;
 INSTRUCTION
WAIT: mov.b32 %r13, 0;
SLEEP: nanosleep.u32 10000;
 add.u32 %r13, %r13, 1; setp.lt.u32 %p4, %r13, 200; @%p4 bra SLEEP;
 mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r7], 0;
 selp.u32 %r13, 1, 0, %p3; add.u32 %r14, %r6, %r5;
 @%p2 st.shared.b32 [%r14+-4], %r13;
 bar.sync 0;
 shl.b32 %r10, %r1, 2;
COPY: setp.ge.u32 %p1, %r10, %r5; @%p1 bra END;
 add.u32 %r12, %r6, %r10; ld.shared.b32 %r11, [%r12];
 cvt.u64.u32 %d5, %r10; add.s64 %d6, %d2, %d5; st.global.b32 [%d6], %r11;
 add.u32 %r10, %r10, 128; bra COPY;
END: ret;
}
"""
_FORM = "cp.async.bulk.tensor.{}.shared::cta.global{}.mbarrier::complete_tx::bytes [%r6], [%d4, {}]"


def _load(instruction: str, halo: int = 0) -> str:
    text = _LOAD.replace("INSTRUCTION", f"{instruction};").replace("HALO", str(halo))
    return HEADER + text


def _tile(dtype: str, size: int, swizzle: str, nbytes: int) -> MicroKernel:
    """Kernel that loads a tile of four rows of 128 elements (a row has `size` bytes in global
    memory)."""

    def make() -> tuple[list[Any], list[Array]]:
        data = np.random.default_rng(1).integers(0, 256, 8 * size, np.uint8)
        tensor = TensorMap.tiled(
            data,
            dtype=dtype,
            dims=(128 if dtype != "u8" else size, 8),
            strides_bytes=(size,),
            box=(128 if dtype != "u8" else size, 4),
            swizzle=swizzle,
        )
        out = np.zeros(2048, np.uint8)
        return [tensor, np.uint32(nbytes), np.uint32(2048), out], [out]

    ptx = _load(_FORM.format("2d", ".tile", "{%r8, %r9}") + ", [%r7]")
    return MicroKernel(ptx, 32, make, 2048)


def _wide(mode: str, pixels: int, halo: int, nbytes: int, width: int = 9) -> MicroKernel:
    """Kernel with an im2col load in a w mode from NHWC 3 x 2 x width x 32 (u16), with `halo` halo
    pixels."""

    def make() -> tuple[list[Any], list[Array]]:
        data = np.random.default_rng(2).integers(0, 256, 3 * 2 * width * 64, np.uint8)
        tensor = TensorMap.im2col_wide(
            data,
            mode=mode,
            dtype="u16",
            dims=(32, width, 2, 3),
            strides_bytes=(64, 64 * width, 128 * width),
            lower_corner_width=0,
            upper_corner_width=0,
            channels_per_pixel=32,
            pixels_per_column=pixels,
            swizzle="64B",
        )
        out = np.zeros(16384, np.uint8)
        return [tensor, np.uint32(nbytes), np.uint32(16384), out], [out]

    spelled = {"W": ".im2col::w", "W128": ".im2col::w::128"}[mode]
    ptx = _load(_FORM.format("4d", spelled, "{%r8, %r9, %r8, %r8}") + ", [%r7], {%h0, %h1}", halo)
    return MicroKernel(ptx, 32, make, 16384)


_STORE = """
.extern .shared .align 1024 .b8 tiles[];
.visible .entry ask(.param .align 64 .b8 map[128], .param .u64 source)
{
 .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<8>;
 mov.u32 %r1, %tid.x; ld.param.u64 %d2, [source]; mov.u32 %r6, tiles; shl.b32 %r10, %r1, 2;
FILL: setp.ge.u32 %p1, %r10, 512; @%p1 bra FILLED;
 cvt.u64.u32 %d5, %r10; add.s64 %d6, %d2, %d5; ld.global.b32 %r11, [%d6];
 add.u32 %r12, %r6, %r10; st.shared.b32 [%r12], %r11; add.u32 %r10, %r10, 128; bra FILL;
FILLED:
 fence.proxy.async.shared::cta;
 bar.sync 0;
 setp.ne.u32 %p2, %r1, 0; @%p2 bra END;
 mov.b64 %d4, map; cvta.param.u64 %d4, %d4; mov.b32 %r8, 0; mov.b32 %r9, 1;
 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d4, {%r8, %r9}], [%r6];
 cp.async.bulk.commit_group;
 cp.async.bulk.wait_group 0;
END: ret;
}
"""


def _u6_store() -> MicroKernel:
    def make() -> tuple[list[Any], list[Array]]:
        tensor = np.zeros(8 * 96, np.uint8)
        tensor_map = TensorMap.tiled(
            tensor, dtype="u6_align16b", dims=(128, 8), strides_bytes=(96,), box=(128, 4)
        )
        source = np.random.default_rng(3).integers(0, 256, 512, np.uint8)
        return [tensor_map, source], [tensor]

    return MicroKernel(HEADER + _STORE, 32, make, 512)


def _tensor_memory(columns: int, act: str, numbered: bool = False) -> MicroKernel:
    """Kernel that writes the word 256 · lane + column to 128 lanes x `columns` of tensor memory,
    lets one thread execute `act`, and reads all words back.

    `act` finds the address of the words in %r3, and 8 KB of shared memory at %r7: alternating f16
    values 2^-14 and 0, or (`numbered`) the number of each word, with bit 15 set.
    """
    value = "sub.u32 %r10, %r8, %r7; shr.u32 %r10, %r10, 2; or.b32 %r10, %r10, 0x8000;"
    registers = ", ".join(f"%w{n}" for n in range(columns))
    fill = "\n".join(f" mad.lo.u32 %w{n}, %r1, 256, {n};" for n in range(columns))
    # The upper half of a word with an f16 D is unspecified.
    stores = "\n".join(
        f" and.b32 %w{n}, %w{n}, 0xFFFF; st.global.b32 [%d1+{4 * n}], %w{n};"
        for n in range(columns)
    )
    text = f"""
.visible .entry ask(.param .u64 out)
.reqntid 128
{{
 .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b32 %w<{columns}>; .reg .b64 %d<8>;
 .shared .align 8 .b64 done; .shared .align 4 .b32 base; .shared .align 1024 .b8 tiles[8192];
 mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r1, 0;
 mov.u32 %r6, done; ld.param.u64 %d0, [out];
 mul.wide.u32 %d1, %r1, {4 * columns}; add.s64 %d1, %d0, %d1;
 mov.u32 %r7, tiles; shl.b32 %r8, %r1, 2; add.u32 %r8, %r8, %r7; mov.b32 %r9, 0;
 mov.b32 %r10, 0x400;
FILL: {value if numbered else ""} st.shared.b32 [%r8], %r10;
 add.u32 %r8, %r8, 512; add.u32 %r9, %r9, 1;
 setp.lt.u32 %p3, %r9, 16; @%p3 bra FILL;
 fence.proxy.async.shared::cta;
 @!%p1 bra SET;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
 @%p2 mbarrier.init.shared::cta.b64 [done], 1;
 @%p2 fence.mbarrier_init.release.cluster;
SET:
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 ld.shared.b32 %r3, [base]; shl.b32 %r4, %r2, 21; add.u32 %r4, %r4, %r3;
{fill}
 tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%r4], {{{registers}}};
 tcgen05.wait::st.sync.aligned;
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 @!%p2 bra FINISH;
 {act}
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];
FINISH: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r6], 0; @!%p3 bra FINISH;
 tcgen05.fence::after_thread_sync;
 tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {{{registers}}}, [%r4];
 tcgen05.wait::ld.sync.aligned;
{stores}
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
 ret;
}}
"""

    def make() -> tuple[list[Any], list[Array]]:
        out = np.zeros((128, columns), np.uint32)
        return [out], [out]

    return MicroKernel(HEADER + text, 128, make)


#: f16 D, A and B, both K-major, M = 128, N = 16 (PTX ISA 9.7.16.4.2).
_IDESC = 16 // 8 << 17 | 128 // 16 << 24
#: No swizzle, offsets of 128 and 256 bytes; A and B are the same wherever they lie (9.7.16.5.1).
_DESCRIPTOR = 128 >> 4 << 16 | 256 >> 4 << 32 | 1 << 46
#: D is 2^-25 + D / 2: half an odd subnormal and 2^-25 make 2^-24, unless it was rounded before.
_HALVE = f"""shr.u32 %r8, %r7, 4; cvt.u64.u32 %d3, %r8; or.b64 %d3, %d3, {_DESCRIPTOR:#x};
 mov.b32 %r9, {_IDESC:#x}; setp.eq.u32 %p3, %r7, %r7;
 tcgen05.mma.cta_group::1.kind::f16 [%r3], %d3, %d3, %r9, %p3, 1;"""


#: K-major, no swizzle: eight rows of 16 bytes behind each other, 32 bytes wide by an LBO of 4 KB.
_FOUR_ROWS = """shr.u32 %r8, %r7, 4; cvt.u64.u32 %d3, %r8; or.b64 %d3, %d3, {:#x};
 add.u32 %r9, %r3, {:#x};
 tcgen05.cp.cta_group::1.4x256b [%r9], %d3;"""
_ROWS = 4096 >> 4 << 16 | 128 >> 4 << 32 | 1 << 46
#: K-major, swizzle 128B, from row 4 on.
_AMID = 512 >> 4 | 1024 >> 4 << 32 | 1 << 46 | 2 << 61


def micro_kernels() -> dict[str, MicroKernel]:
    """Maps each assumption to the kernel that tests it."""
    return {
        "shift_quarters": _tensor_memory(8, "tcgen05.shift.cta_group::1.down [%r3];"),
        "cp4x256b_rows": _tensor_memory(8, _FOUR_ROWS.format(_ROWS, 0), numbered=True),
        "cp4x256b_lane": _tensor_memory(8, _FOUR_ROWS.format(_ROWS, 5 << 16), numbered=True),
        "cp_row_phase": _tensor_memory(8, _FOUR_ROWS.format(_AMID, 0), numbered=True),
        "flip_8b_lines": _tile("u8", 128, "128B_ATOM_32B_FLIP_8B", 4 * 128),
        "scale_input_d": _tensor_memory(16, _HALVE),
        "im2col_w_halo": _wide("W", 8, 4, 12 * 64),
        "im2col_w_row_end": _wide("W", 24, 0, 24 * 64),
        "im2col_w128_halo": _wide("W128", 128, 2, 136 * 64, width=200),
        "im2col_w_bytes": _wide("W", 8, 4, 12 * 64),
        "padded_bytes": _tile("u4_align16b", 64, "NONE", 4 * 128),
        "u6_store": _u6_store(),
        "atom_64b_load": _tile("u8", 128, "128B_ATOM_64B", 4 * 128),
        **mma_kernels(),
        **convert_kernels(),
    }


NOT_ASKED = {
    "pipe_order": "the order of two instructions shows only when it is violated",
    "ashift_then_cp": "the order of two instructions shows only when it is violated",
    "pair_dealloc": "whether it waits may differ from run to run",
    "alloc_content": "the contents depend on what ran before",
    "alloc_place": "the places of some allocations do not show all allowed ones",
    "cta_order": "the order in which some CTAs started shows nothing about others",
    "shared_start": "one start address does not show which others are allowed",
    "elected_lane": "the lane that is elected does not show which others may be",
    "handed_over": "an order shows only when it is violated; wgmma is an instruction of sm_90a",
    "alloc_permit": "a launch cannot request two CTAs on one SM",
}
"""Assumptions without a micro-kernel, and why."""

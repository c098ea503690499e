"""A small kernel around tcgen05 instructions: all that they may read holds 0x44444444.

That is a finite number in every format, a legal selector of sparse metadata and a scale. Four warps
of one CTA, or of both CTAs of a pair; 512 columns of tensor memory at %t0; descriptors of 256 rows
without swizzle in %a0; the mbarrier in %m0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir.run import RunReport, Uninitialized, run_ptx

from .conftest import HEADER

FILL = 0x44444444
DESCRIPTOR = 1024 >> 4 | 128 >> 4 << 16 | 512 >> 4 << 32 | 1 << 46
SHARED = 1024 + 256 // 8 * 512
A, META, SFA, SFB = 256, 320, 352, 384
"""Columns for what is no accumulator."""

HEAD = """
.extern .shared .align 1024 .b8 tiles[];
.visible .entry k(.param .u64 out)
.reqntid 128
{
 .reg .pred %p<9>; .reg .b32 %t<8>; .reg .b32 %w<8>; .reg .b32 %d<136>; .reg .b32 %i<4>;
 .reg .b64 %a<4>; .reg .b64 %o<4>; .reg .b32 %m<4>; .reg .b16 %h<4>; .reg .b32 %f;
 .shared .align 8 .b64 done; .shared .align 4 .b32 base;
 mov.u32 %w0, %tid.x; shr.u32 %w1, %w0, 5; setp.eq.u32 %p1, %w1, 0; setp.eq.u32 %p2, %w0, 0;
 mov.u32 %w2, %cluster_ctarank; setp.eq.and.u32 %p3, %w2, 0, %p2;
 mov.u32 %m0, done; mov.u32 %m1, base; mov.b32 %f, FILL;
 barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
 @!%p1 bra SET;
 tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [%m1], 512;
 tcgen05.relinquish_alloc_permit.cta_group::GROUP.sync.aligned;
 @!%p2 bra SET;
 mbarrier.init.shared::cta.b64 [%m0], 1;
 fence.mbarrier_init.release.cluster;
SET:
 mov.u32 %w3, tiles; shl.b32 %w4, %w0, 4; add.u32 %w3, %w3, %w4;
FILLS
 fence.proxy.async;
 tcgen05.fence::before_thread_sync;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 tcgen05.fence::after_thread_sync;
 ld.shared.b32 %t0, [%m1];
 shl.b32 %t1, %w1, 21; add.u32 %t1, %t1, %t0;
WORDS
 tcgen05.wait::st.sync.aligned;
 tcgen05.fence::before_thread_sync;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 tcgen05.fence::after_thread_sync;
 mov.u32 %w5, tiles; and.b32 %w5, %w5, 0x3FFFF; shr.u32 %w5, %w5, 4; cvt.u64.u32 %a0, %w5;
 add.s64 %a0, %a0, DESCRIPTOR; mov.b64 %a1, 0; setp.eq.u32 %p4, %w0, %w0;
 add.u32 %t2, %t0, A_COLUMN; add.u32 %t3, %t0, META; add.u32 %t4, %t0, SFA; add.u32 %t5, %t0, SFB;
"""

ISSUE = """
 @!%p3 bra WAIT;
BODY
 mov.u16 %h1, MASK;
 tcgen05.commit.cta_group::GROUP.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
   [%m0], %h1;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%m0], 0; @!%p5 bra WAIT;
 tcgen05.fence::after_thread_sync;
 tcgen05.ld.sync.aligned.32x32b.x8.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [%t1];
 tcgen05.wait::ld.sync.aligned;
 ld.param.u64 %o0, [out]; mad.lo.u32 %w6, %w2, 128, %w0; mul.wide.u32 %o1, %w6, 32;
 add.s64 %o0, %o0, %o1;
 st.global.v4.b32 [%o0], {%d0, %d1, %d2, %d3};
 st.global.v4.b32 [%o0+16], {%d4, %d5, %d6, %d7};
"""

TAIL = """
 tcgen05.fence::before_thread_sync;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 tcgen05.fence::after_thread_sync;
 @%p1 tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %t0, 512;
 ret;
}
"""


def _finished(text: str, group: int) -> str:
    fills = "\n".join(
        f" st.shared.v4.b32 [%w3+{at}], {{%f, %f, %f, %f}};" for at in range(0, SHARED, 2048)
    )
    many = ", ".join(["%f"] * 128)
    words = "\n".join(
        f" tcgen05.st.sync.aligned.32x32b.x128.b32 [%t1+{column}], {{{many}}};"
        for column in range(0, 512, 128)
    )
    values = {
        "GROUP": group, "FILLS": fills, "WORDS": words, "FILL": FILL, "DESCRIPTOR": DESCRIPTOR,
        "A_COLUMN": A, "META": META, "SFA": SFA, "SFB": SFB, "MASK": 2 * group - 1,
    }  # fmt: skip
    for word, value in values.items():
        text = text.replace(word, str(value))
    return HEADER + text


def issued(body: str, group: int = 1) -> str:
    """A kernel whose first thread runs `body`; D, at column 0, goes to `out`."""
    return _finished(HEAD + ISSUE.replace("BODY", body) + TAIL, group)


def collective(body: str) -> str:
    """A kernel all of whose warps run `body`, with the address of their own lanes in %t1."""
    return _finished(HEAD + body + TAIL, 1)


def launch(text: str, group: int = 1, **options: Any) -> tuple[RunReport, np.ndarray]:
    """The report, and `out`: eight columns of D, uint32 [128 · CTAs, 8]."""
    out = np.zeros((128 * group, 8), np.uint32)
    report = run_ptx(
        text, grid=group, block=128, cluster=(group, 1, 1), dynamic_smem=SHARED + 2048,
        args=[Uninitialized(out)], **options,
    )  # fmt: skip
    return report, out

"""Algorithm 3 of the convolution document as a PTX program, loop by loop, on CUDA cores.

MMA_B is an array in shared memory with a row for every (n, q); a warp's lane is an output channel.
The document's shift is ``for n = 1 .. N - 1: B[n] = B[n - 1]``, then the new pixel into row 0. With
``corrected`` it is ``for n = 0 .. N - 2: B[n] = B[n + 1]``, then the new pixels into the last row
of each image, and nothing else differs.
"""

from __future__ import annotations

from tcir.program.launch import Launch, LaunchSequence

from .linalg_text import Conv

EXAMPLE = Conv(2, 9, 9, 8, 32, 3, 3, (0, 0, 1, 1))
"""One output row of both images: 18 rows of B; 8 channels are 16 bytes."""
ROWS, Q, WIDTH, ROW_BYTES = 18, 9, 9, 16
SUMS = ROWS * ROW_BYTES
"""Where D[n][k] lies behind B."""

LAUNCHES = LaunchSequence(
    (
        Launch(
            name="algorithm3",
            grid=(EXAMPLE.p, 1, 1),
            block=(32, 1, 1),
            dynamic_smem=0,
            params=tuple({"kind": "pointer", "arg": arg} for arg in range(3)),
        ),
    )
)


def program(corrected: bool = False) -> str:
    """The PTX text."""
    first = "\n".join(_fill(n, 0) for n in range(ROWS))
    body = ["  mov.u32 %r10, 0;  // r", "ROW:", "  add.u32 %r11, %r1, %r10;  // h", first]
    for s in range(3):
        if s:
            if corrected:
                body += [_move(n, n + 1) for n in range(ROWS - 1)]
                body += [_fill(n, s) for n in (Q - 1, ROWS - 1)]
            else:
                body += [_move(n, n - 1) for n in range(1, ROWS)]
                body.append(_fill(0, s))
        body.append(_multiply(s))
    body += ["  add.u32 %r10, %r10, 1;", "  setp.lt.u32 %p1, %r10, 3;", "  @%p1 bra ROW;"]
    zero = "\n".join(f"  st.shared.f32 [%r3+{SUMS + 128 * n}], 0f00000000;" for n in range(ROWS))
    out = "\n".join(_store(n) for n in range(ROWS))
    return _FRAME.format(bytes=SUMS + 128 * ROWS, body="\n".join([zero, *body, out]))


def _fill(n: int, s: int) -> str:
    """Row n of B: the pixel (image, h, q - 1 + s), zeros outside. Lanes 0 to 7 bring a channel."""
    image, q = divmod(n, Q)
    w = q - 1 + s
    if not 0 <= w < WIDTH:
        return (
            f"  mov.b16 %h1, 0; @%p2 st.shared.b16 [%r2+{n * ROW_BYTES}], %h1;\n  bar.warp.sync -1;"
        )
    return f"""  mad.lo.u32 %r12, %r11, {WIDTH}, {image * WIDTH * WIDTH + w};
  shl.b32 %r12, %r12, 4; cvt.u64.u32 %d4, %r12; add.s64 %d4, %d1, %d4; add.s64 %d4, %d4, %d5;
  @%p2 ld.global.b16 %h1, [%d4]; @%p2 st.shared.b16 [%r2+{n * ROW_BYTES}], %h1;
  bar.warp.sync -1;"""


def _move(to: int, of: int) -> str:
    return f"""  @%p2 ld.shared.b16 %h1, [%r2+{of * ROW_BYTES}];
  @%p2 st.shared.b16 [%r2+{to * ROW_BYTES}], %h1;"""


def _multiply(s: int) -> str:
    """D[n][lane] += sum over c of B[n][c] * W[r][s][c][lane]."""
    lines = [
        f"  bar.warp.sync -1; mad.lo.u32 %r12, %r10, 3, {s}; mul.wide.u32 %d4, %r12, 512;",
        "  add.s64 %d4, %d2, %d4; add.s64 %d4, %d4, %d5;",
    ]
    lines += [f"  ld.global.b16 %h1, [%d4+{64 * c}]; cvt.f32.f16 %w{c}, %h1;" for c in range(8)]
    for n in range(ROWS):
        lines.append(f"  ld.shared.f32 %f1, [%r3+{SUMS + 128 * n}];")
        for c in range(8):
            at = n * ROW_BYTES + 2 * c
            lines.append(f"  ld.shared.b16 %h1, [%r4+{at}]; cvt.f32.f16 %f2, %h1;")
            lines.append(f"  fma.rn.f32 %f1, %f2, %w{c}, %f1;")
        lines.append(f"  st.shared.f32 [%r3+{SUMS + 128 * n}], %f1;")
    return "\n".join([*lines, "  bar.warp.sync -1;"])


def _store(n: int) -> str:
    """D[n] to output (image, p, q)."""
    image, q = divmod(n, Q)
    return f"""  ld.shared.f32 %f1, [%r3+{SUMS + 128 * n}];
  mad.lo.u32 %r12, %r1, {Q}, {image * EXAMPLE.p * Q + q};
  mul.wide.u32 %d4, %r12, 128; add.s64 %d4, %d3, %d4; add.s64 %d4, %d4, %d6;
  st.global.f32 [%d4], %f1;"""


_FRAME = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry algorithm3(.param .u64 x, .param .u64 w, .param .u64 y)
.reqntid 32, 1, 1
{{
  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<8>;
  .reg .f32 %f<4>; .reg .f32 %w<8>;
  .shared .align 16 .b8 tiles[{bytes}];
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [w]; ld.param.u64 %d3, [y];
  mov.u32 %r1, %ctaid.x;  // p
  mov.u32 %r5, %tid.x; setp.lt.u32 %p2, %r5, 8;
  mov.u32 %r4, tiles; shl.b32 %r6, %r5, 1; add.u32 %r2, %r4, %r6;
  shl.b32 %r7, %r5, 2; add.u32 %r3, %r4, %r7;
  cvt.u64.u32 %d5, %r6; cvt.u64.u32 %d6, %r7;
{body}
  ret;
}}
"""

"""Constant expressions: values as ptxas writes them, and as operands."""

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.parser import parse

VALUES = {
    # as ptxas 13.0 writes `.global .u64 v = …;` into a cubin
    "(1+2)*3": 9, "1+2*3": 7, "7 % 3": 1, "-1/2": 0, "-1U/2": 0x7FFFFFFFFFFFFFFF,
    "~0": -1, "~0/2": 0x7FFFFFFFFFFFFFFF, "!5": 0, "-1>>1": -1, "-1U>>1": 0x7FFFFFFFFFFFFFFF,
    "~0>>1": 0x7FFFFFFFFFFFFFFF, "1<<64": 1, "1<<70": 64, "1<<-1": 1 << 63, "1<2": 1, "-1<0U": 0,
    "1?2:3": 2, "(.s64)-1/2": 0, "(.u64)-1/2": 0x7FFFFFFFFFFFFFFF, "-8/(.s64)2": -4, "1==1": 1,
    "3&&0": 0, "6&3|8": 10, "6^3": 5, "-1&-1": -1, "(-1&-1)/2": 0,
    "0xffffffffffffffff/2": 0x7FFFFFFFFFFFFFFF, "9223372036854775807+1": 1 << 63, "1?-1:0U": -1,
    "(1?-1:0U)/2": 0, "+5": 5, "- -5": 5, "!0+1": 2, "1.5<2.5": 1, "4-1-1": 2, "1?2:0?3:4": 2,
    "2*-3": -6, "010+1": 9, "0b11*2": 6, "WARP_SZ*2": 64, "WARP_SZ": 32, "((5))": 5,
    "-9223372036854775808/-1": 0, "-9223372036854775808 % -1": 1 << 63, "8>>1<<2": 16,
    "1|2==2": 1, "!(1==2)": 1, "~(.s64)0/2": 0x7FFFFFFFFFFFFFFF, "1<<63>>63": -1,
    "5%(3)": 2, "5 % -3": 5, "-5 % 3": 2, "-5 / 3": -1, "(3&-1U)/2": 1,
    "(-2|-1U)/2": 0x7FFFFFFFFFFFFFFF, "(-1<<0U)/2": 0, "(-1>>1U)/2": 0, "-1<1U": 0,
    "(-1==18446744073709551615)": 1, "0?5:-1U>>1": 0x7FFFFFFFFFFFFFFF, "(!0U-2)/2": 0,
    "((1<2)-2)/2": 0, "(1&&1)-2<0": 1, "--5": 5, "5-(-3)": 8, "+(-3)/2": -1,
    "(-5 % 3 - 3)/2": 0x7FFFFFFFFFFFFFFF, "(-4/2U)": 0x7FFFFFFFFFFFFFFE,
    "(-1+0U)/2": 0x7FFFFFFFFFFFFFFF, "(-3^0)/2": -1, "1 ? 0U-1 : 2 >> 1": -1, "(0 || 0)": 0,
    "~-1": 0, "(1<<63)/2": 0xC000000000000000, "0xFFFFFFFF+1": 1 << 32,
    "4294967296*4294967296": 0, "07U+1": 8, "-1 > 0": 0, "-1 >= 0U": 1, "1 != 1": 0,
    "10 - 2 * 3 << 1 & 0xff": 8,
}  # fmt: skip
FLOATS = {
    "1.5*2.0": 3.0, "-1.5": -1.5, "1.5-0.25*2.0": 1.0, "(1.5+1.0)*2.0": 5.0, "-(1.5)": -1.5,
    "+1.5": 1.5, "0d3FF0000000000000+1.0": 2.0,
}  # fmt: skip
REFUSED = (
    "7%3", "5/0", "2 % 0", "0?1/0:3", "0&&1/0", "1+1.5", "1.5/0.0", "0f3F800000+1.0", "1?1.5:2.5",
    "!1.5", "~1.5", "1.5&1", "1.5<<1", "(.s64)1.5", "1?1:2.5", "1<1.5", "(1+2", "1+", "1 < < 2",
    "1?2", "(.u32)1", "*2", "(" * 5000, "-" * 5000 + "1",
)  # fmt: skip
HEAD = ".version 8.6\n.target sm_100a\n.address_size 64\n"


def initial(text: str, kind: str = "u64") -> int:
    (found,) = parse(f"{HEAD}.global .{kind} v = {text};\n").variables["v"].initial or ()
    return int(found.value)  # type: ignore[union-attr]


@pytest.mark.parametrize("text", VALUES)
def test_integers(text: str) -> None:
    assert initial(text) & (1 << 64) - 1 == VALUES[text] & (1 << 64) - 1


@pytest.mark.parametrize("text", FLOATS)
def test_floats(text: str) -> None:
    assert np.uint64(initial(text, "f64")).view(np.float64) == FLOATS[text]


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_refused_as_by_ptxas(text: str) -> None:
    with pytest.raises(PtxSyntaxError, match="expected"):
        initial(text)


KERNEL = f"""{HEAD}
.global .align 16 .b8 w[64];
.global .u64 p = w+4*4-(2+2);
.global .u32 q[3] = {{1+1, (2), 7 % 4}};
.func (.reg .u32 r) plus (.reg .u32 a, .reg .u32 b) {{ add.u32 r, a, b; ret; }}
.visible .entry k(.param .u64 o) {{
  .reg .b64 %a<5>; .reg .b32 %r<9>; .reg .pred %p<3>; .reg .f32 %f<2>;
  ld.param.u64 %a1, [o+(1-1)];
  mov.u32 %r1, (1+2)*3;         st.global.u32 [%a1], %r1;
  add.u32 %r2, %r1, (3|4)<<2;   st.global.u32 [%a1+2*2], %r2;
  call (%r3), plus, ((1+2)*3, 5); st.global.u32 [%a1+(4+4)], %r3;
  call (%r4), plus, (3, -1);    st.global.u32 [%a1+4*4-4], %r4;
  setp.eq.u32 %p1|%p2, %r1, 8|1; selp.u32 %r5, 1?70:80, 3, %p1; st.global.u32 [%a1+16], %r5;
  mov.u32 %r6, ~0>>32;          st.global.u32 [%a1+20], %r6;
  ld.global.u64 %a2, [p];       mov.u64 %a3, w+2*4; sub.u64 %a2, %a2, %a3;
  st.global.v2.u32 [%a1+6*4], {{WARP_SZ/2, (2)}};
  st.global.u64 [%a1+32], %a2;
  ld.global.u32 %r7, [q+2*4];   st.global.u32 [%a1+40], %r7;
  mov.f32 %f1, 1.5+1.0;         st.global.f32 [%a1+44], %f1;
  @!%p2 mov.u32 %r8, 6;         st.global.u32 [%a1+48], %r8;
  ret;
}}
"""


def test_as_operands() -> None:
    out = np.zeros(13, np.uint32)
    report = tcir.run_ptx(KERNEL, entry="k", grid=1, block=1, args=[out])
    assert report.ok, report
    assert out[:11].tolist() == [9, 37, 14, 2, 70, 0xFFFFFFFF, 16, 2, 4, 0, 3]
    assert out[11:12].view(np.float32)[0] == 2.5 and out[12] == 6

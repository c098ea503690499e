"""Constants of LLVM IR as newer and older releases spell them."""

from tcir.codegen.ptx import _older_floats, emit_ptx


def test_floats_that_no_decimal_is() -> None:
    newer = "splat (float f0x3FB8AA3B) half f0x3C01 bfloat f0x3F80 double f0x3FF0000000000000"
    older = "splat (float 0x3FF7154760000000) half 0xH3C01 bfloat 0xR3F80 double 0x3FF0000000000000"
    assert _older_floats(newer) == older
    assert _older_floats("float 1.0") == "float 1.0"


def test_the_back_end_reads_them() -> None:
    body = "%y = fmul float %x, f0x3FB8AA3B\n%z = fadd float f0x3DCCCCCD, %y\nret float %z"
    ptx = emit_ptx(f"define float @f(float %x) {{\n{body}\n}}\n")
    assert "0f3FB8AA3B" in ptx and "0f3DCCCCCD" in ptx


def test_infinities() -> None:
    newer = "fcmp olt float %x, +inf, half -inf, bfloat +qnan"
    older = "fcmp olt float %x, 0x7FF0000000000000, half 0xHFC00, bfloat 0xR7FC0"
    assert _older_floats(newer) == older
    body = "%y = fcmp olt float %x, +inf\nret i1 %y"
    assert "0f7F800000" in emit_ptx(f"define i1 @f(float %x) {{\n{body}\n}}\n")


def test_decimals_that_are_no_float() -> None:
    newer = (
        "fmul float %x, 4.471500e-02, float -5.000000e-01, half 1.001000e-01, double 1.000000e-05"
    )
    older = (
        "fmul float %x, 0x3FA6E4E260000000, float -5.000000e-01, half 0xH2E68, double 1.000000e-05"
    )
    assert _older_floats(newer) == older
    assert _older_floats("bfloat 1.001000e-01") == "bfloat 0xR3DCD"
    body = "%y = fmul float %x, 4.471500e-02\nret float %y"
    assert "0f3D372713" in emit_ptx(f"define float @f(float %x) {{\n{body}\n}}\n")

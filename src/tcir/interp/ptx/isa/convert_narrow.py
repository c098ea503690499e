"""cvt to and from packed 8-, 6- and 4-bit floats and scales, and cvt.pack (PTX ISA 9.7.9 "cvt").

Two values go into one register, the first operand into the upper half. An 8-bit or 6-bit code takes
one byte each (the upper bits of the byte of a 6-bit code are zero), a 4-bit code half a byte.
"""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.values.elementwise import elementwise
from tcir.interp.ptx.isa.values.rounding import decode_float, encode_float, rectified
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import S32, U32, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES
from tcir.machine.numerics.formats import FLOATS, decode

#: Packed type: element, bits of it in the register, code of a NaN.
NARROW: dict[str, tuple[str, int, int]] = {
    "e4m3x2": ("e4m3", 8, 0x7F),
    "e5m2x2": ("e5m2", 8, 0x7F),
    # These have no NaN: the largest positive number takes its place.
    "e2m3x2": ("e2m3", 8, 0x1F),
    "e3m2x2": ("e3m2", 8, 0x1F),
    "e2m1x2": ("e2m1", 4, 0x07),
    "ue8m0x2": ("ue8m0", 8, 0xFF),
}
_HALVES = {"f16x2": "f16", "bf16x2": "bf16"}


def _finite(name: str) -> np.ndarray:
    """The non-negative finite values of a format, by code."""
    values, _ = decode(np.arange(1 << FLOATS[name].bits - 1, dtype=np.uint8), name)
    return values[np.isfinite(values)]


def encode_narrow(exact: np.ndarray, name: str, relu: bool = False) -> np.ndarray:
    """Converts float64 values to uint8 codes: rounded to nearest even, and saturated to the largest
    finite number.
    """
    f = FLOATS[name]
    table = _finite(name)
    magnitude = np.minimum(np.where(np.isnan(exact), 0.0, np.abs(exact)), table[-1])
    exponent = np.maximum(np.frexp(magnitude)[1] - 1, f.smallest_exponent)
    step = np.ldexp(1.0, exponent - f.mantissa_bits)
    code = np.searchsorted(table, np.minimum(np.rint(magnitude / step) * step, table[-1]))
    negative = np.signbit(exact) & ~np.isnan(exact)
    code = np.where(negative, 0 if relu else code | 1 << f.bits - 1, code)
    nan = next(n for element, _, n in NARROW.values() if element == name)
    return np.where(np.isnan(exact), nan, code).astype(np.uint8)


def encode_scale(exact: np.ndarray, mode: str, saturate: bool) -> np.ndarray:
    """Converts float64 values to uint8 codes of ue8m0: the magnitude is rounded down (rz) or up
    (rp) to a power of two, and is at least 2^-127.
    """
    magnitude = np.where(np.isfinite(exact) & (exact != 0), np.abs(exact), 1.0)
    mantissa, exponent = np.frexp(magnitude)
    power = exponent - 1 + ((mode == "rp") & (mantissa > 0.5))
    power = np.where(exact == 0, -127, np.maximum(power, -127))
    above = 0xFE if saturate else 0xFF
    code = np.where(np.isinf(exact) | (power > 127), above, power + 127)
    return np.where(np.isnan(exact), 0xFF, code).astype(np.uint8)


def decode_narrow(codes: np.ndarray, name: str) -> np.ndarray:
    """Converts uint8 codes to float64 values; bits above the format's width are ignored."""
    if name == "ue8m0":
        return np.where(codes == 0xFF, np.nan, np.ldexp(1.0, codes.astype(np.int32) - 127))
    return decode(codes & np.uint8((1 << FLOATS[name].bits) - 1), name)[0]


def convert_narrow(d: Decode) -> Op:
    """Decodes a cvt whose source or destination type is in NARROW."""
    if d.modifiers[-1] in NARROW:
        return _widen(d, *NARROW[d.modifiers.pop()])
    name = next(m for m in d.modifiers if m in NARROW)
    element, bits, _ = NARROW[name]
    d.take(name)
    mode = d.require("rn", "rz", "rp")
    saturate, relu = d.take("satfinite") is not None, d.take("relu") is not None
    scale = element == "ue8m0"
    if scale != (mode != "rn") or scale and relu or not scale and not saturate:
        raise d.incomplete("no rule for this form of cvt")
    source = d.require("f32", "f16x2", "bf16x2")
    d.done(3 if source == "f32" else 2)
    out = TYPES["b8" if bits == 4 else "b16"]
    kind = TYPES["f32"]

    def encode(values: np.ndarray) -> np.ndarray:
        if scale:
            return encode_scale(values, mode, saturate)
        return encode_narrow(values, element, relu)

    def run(*sources: np.ndarray) -> np.ndarray:
        if source == "f32":
            high, low = (encode(decode_float(x, "f32")) for x in sources)
        else:
            halves = sources[0].view(np.uint16)
            high, low = (encode(decode_float(halves[n::2].copy(), _HALVES[source])) for n in (1, 0))
        return (high.astype(np.uint16) << np.uint16(bits) | low).astype(f"u{out.size}")

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(d, run, d.dst(d.operands[0], out), view(out), sources, (U32,) * len(sources))


def _widen(d: Decode, element: str, bits: int, _nan: int) -> Op:
    """cvt.rn{.relu}.f16x2.e4m3x2 and its like: exact, but for ue8m0 to bf16 subnormals none."""
    d.require("rn")
    relu = d.take("relu") is not None
    out = d.require("f16x2", "bf16x2")
    if out == "f16x2" and element == "ue8m0":
        raise d.incomplete(f"no rule for cvt from {element} to .{out}")
    d.done(2)
    source = TYPES["b8" if bits == 4 else "b16"]

    def run(a: np.ndarray) -> np.ndarray:
        codes = a & np.uint8(15), a >> np.uint8(4)
        if bits == 8:
            codes = (a & np.uint16(0xFF)).astype(np.uint8), (a >> np.uint16(8)).astype(np.uint8)
        low, high = (decode_narrow(c, element) for c in codes)
        if relu:
            low, high = (rectified(x) for x in (low, high))
        low, high = (encode_float(x, _HALVES[out]).astype(np.uint32) for x in (low, high))
        return low | high << np.uint32(16)

    dst = d.dst(d.operands[0], TYPES["b32"])
    return elementwise(d, run, dst, U32, (d.src(d.operands[1], source),), (view(source),))


@instruction("cvt.pack")
def pack(d: Decode) -> Op:
    """Saturates two s32 and packs them into the low bits of d, a above b. If the elements have
    fewer than 16 bits, the low bits of c are above both.
    """
    d.require("sat")
    d.take("b32")
    d.require("s32")
    name = d.require("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2")
    width = int(name[1:])
    low = -(1 << width - 1) if name[0] == "s" else 0
    high = low + (1 << width) - 1
    d.done(3 if width == 16 else 4)

    mask = np.uint32((1 << width) - 1)

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        upper, lower = (
            np.clip(x, low, high).astype(np.int32).view(np.uint32) & mask for x in (a, b)
        )
        out = upper << np.uint32(width) | lower
        return out if c is None else c << np.uint32(2 * width) | out

    kind = TYPES["b32"]
    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    dst = d.dst(d.operands[0], kind)
    return elementwise(d, run, dst, U32, sources, (S32, S32, U32)[: len(sources)])

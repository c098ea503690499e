"""cvt.rs: converts f32 to narrower floats, with stochastic rounding by random bits of the caller
(PTX ISA 9.7.9.21).

The random bits are added to the discarded fraction, highest bit to highest bit; a carry rounds away
from zero. For two halves (`cvt.rs.f16x2.f32 d, a, b, rbits`) each half has 13 or 16 random bits of
its own, which are in the same half of `rbits` as the result in `d`. For four narrow floats (`{a, b,
e, f}`, with `a` in the highest bits of `d`) a and b share random bits, and so do e and f: see the
assumptions `rs_pair_bits` and `rs_fp4_bits`.
"""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import mixed
from tcir.interp.ptx.isa.convert_narrow import encode_narrow
from tcir.interp.ptx.isa.values.rounding import decode_float, encode_float, rectified
from tcir.interp.ptx.lanes import LANE_MASK
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32, view
from tcir.interp.ptx.syntax import TYPES
from tcir.interp.ptx.warp import Warp
from tcir.machine import Assumptions
from tcir.machine.numerics.formats import FLOATS

_HALVES = ("f16x2", "bf16x2")
_QUARTERS = ("e4m3x4", "e5m2x4", "e3m2x4", "e2m3x4", "e2m1x4")
_LARGEST = {"f16": 65504.0, "bf16": float(2**128 - 2**120)}


def rounded_by(exact: np.ndarray, random: np.ndarray, bits: int, name: str) -> np.ndarray:
    """Rounds values stochastically to the grid of the format `name`, in float64; results may exceed
    the largest finite number of the format. random: integers below 2^bits
    """
    f = FLOATS[name]
    magnitude = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    exponent = np.maximum(np.frexp(magnitude)[1] - 1, f.smallest_exponent)
    step = np.ldexp(1.0, exponent - f.mantissa_bits)
    whole = np.floor(magnitude / step)
    discarded = np.floor((magnitude / step - whole) * 2.0**bits)
    up = discarded + random >= 2.0**bits
    return np.where(np.isfinite(exact), np.copysign((whole + up) * step, exact), exact)


def _reversed16(x: np.ndarray) -> np.ndarray:
    bits = np.unpackbits(np.ascontiguousarray(x.astype("<u2")).view(np.uint8), bitorder="little")
    return np.packbits(bits.reshape(-1, 16)[:, ::-1], axis=1, bitorder="little").view("<u2")[:, 0]


def random_bits(name: str, rbits: np.ndarray, assumed: Assumptions) -> tuple[int, list[np.ndarray]]:
    """Number of random bits for each operand, and these bits of each operand, taken from `rbits`
    (uint32).
    """
    high, low = rbits >> np.uint32(16), rbits & np.uint32(0xFFFF)
    if name in _HALVES:
        width = 13 if name == "f16x2" else 16
        mask = np.uint32((1 << width) - 1)
        return width, [high & mask, low & mask]
    if name != "e2m1x4":
        first = _reversed16 if assumed.rs_pair_bits == "reversed" else (lambda x: x)
        return 16, [first(high), high, first(low), low]
    byte = np.uint32(0xFF)
    upper, lower = (high >> np.uint32(8), high & byte), (low >> np.uint32(8), low & byte)
    if assumed.rs_fp4_bits == "reversed":
        pairs = [u << np.uint32(8) | v for u, v in zip(upper, lower, strict=True)]
        return 16, [_reversed16(pairs[0]), pairs[0], _reversed16(pairs[1]), pairs[1]]
    if assumed.rs_fp4_bits == "lower-first":
        upper, lower = lower, upper
    return 8, [upper[0], lower[0], upper[1], lower[1]]


def convert_stochastic(d: Decode) -> Op:
    """Decodes a cvt.rs."""
    d.require("rs")
    name = d.require(*_HALVES, *_QUARTERS)
    relu, finite = d.take("relu") is not None, d.take("satfinite") is not None
    d.require("f32")
    halves = name in _HALVES
    if not halves and not finite:
        raise d.malformed(f"expected .satfinite with .{name}")
    d.done(4 if halves else 3)
    element = name.split("x")[0]
    width = 16 if halves else 4 if element == "e2m1" else 8
    kind, b32 = TYPES["f32"], TYPES["b32"]
    values = d.operands[1:3] if halves else d.vector(d.operands[1], 4)
    sources = tuple(d.src(o, kind) for o in values)
    rbits = d.src(d.operands[-1], b32)
    out = TYPES["b16" if element == "e2m1" else "b32"]
    dst, target = d.dst(d.operands[0], out), view(out)
    site = d.site

    def code(exact: np.ndarray, random: np.ndarray, bits: int) -> np.ndarray:
        result = rounded_by(exact, random, bits, element)
        if not halves:
            return encode_narrow(result, element, relu)
        if finite:
            result = np.clip(result, -_LARGEST[element], _LARGEST[element])
        return encode_float(rectified(result) if relu else result, element)

    def run(w: Warp, m: int) -> None:
        lost = w.result((*sources, rbits), m, site, mixed(out.size))
        bits, random = random_bits(name, w.v[U32][rbits], w.agent.machine.assumptions)
        packed = np.zeros(32, np.uint32)
        for source, drawn in zip(sources, random, strict=True):
            exact = decode_float(w.v[U32][source], "f32")
            packed = packed << np.uint32(width) | code(exact, drawn, bits)
        np.copyto(w.v[target][dst], packed, where=LANE_MASK[m], casting="unsafe")
        w.define(dst, m, lost)

    return d.computing(run)

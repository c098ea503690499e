"""cvt between integers, f16, bf16, tf32, f32, f64 and packed pairs (PTX ISA 9.7.9 "cvt")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import bitwise, packed, whole
from tcir.interp.ptx.isa.convert_narrow import NARROW, convert_narrow
from tcir.interp.ptx.isa.convert_stochastic import convert_stochastic
from tcir.interp.ptx.isa.values.elementwise import elementwise
from tcir.interp.ptx.isa.values.rounding import (
    UNSIGNED,
    add_odd,
    decode_float,
    encode_float,
    flush,
    pass_on_nan,
    rectified,
    saturated,
)
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32, VIEW_DTYPES, unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import Type

_FLOATS = ("f64", "f32", "f16", "bf16")
_FRACTION = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}
_WIDTH = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
_INTS = tuple(f"{k}{8 * n}" for k in "us" for n in (1, 2, 4, 8))
_MAX_FINITE = {"f16": 65504.0, "bf16": float(2**128 - 2**120), "f32": float(2**128 - 2**104)}


@dataclass(frozen=True)
class _Rounding:
    """The modifiers of cvt. integral: .rni and the like; mode: .rn and the like."""

    integral: str | None
    mode: str | None
    ftz: bool
    sat: bool
    satfinite: bool
    relu: bool


def _rounding(d: Decode) -> _Rounding:
    return _Rounding(
        d.take("rni", "rzi", "rmi", "rpi"),
        d.take("rn", "rz", "rm", "rp", "rna"),
        d.take("ftz") is not None,
        d.take("sat") is not None,
        d.take("satfinite") is not None,
        d.take("relu") is not None,
    )


def _require_mode(d: Decode, how: _Rounding) -> str:
    """How floats are rounded. PtxSyntaxError if it is not said: ptxas has no default."""
    if how.mode is None:
        raise d.malformed("expected a rounding modifier (.rn, .rz, .rm, .rp or .rna), got none")
    return how.mode


@instruction("cvt")
def cvt(d: Decode) -> Op:
    if "rs" in d.modifiers:
        return convert_stochastic(d)
    if any(m in NARROW for m in d.modifiers):
        return convert_narrow(d)
    how = _rounding(d)
    packed = d.take("f16x2", "bf16x2")
    if packed is not None:
        if d.modifiers != ["f32"] or len(d.operands) != 3 or how.ftz or how.sat or how.integral:
            raise d.incomplete(f"no rule for this form of cvt to .{packed}")
        _require_mode(d, how)
        return _packed(d, packed.removesuffix("x2"), how)
    kinds = d.types(*_INTS, *_FLOATS, "tf32")
    d.done(2)
    if len(kinds) != 2:
        raise d.malformed("expected two types")
    out, source = kinds
    if out.name == "tf32":
        return _tf32(d, _require_mode(d, how), source, how.relu, how.satfinite)
    if source.name == "tf32":
        raise d.incomplete("no rule for cvt from .tf32")
    run = _function(d, out, source, how)
    # Results go to registers of the destination's size or wider, sign- or zero-extended.
    destination = d.operands[0]
    size = getattr(getattr(destination, "type", out), "size", out.size)
    dst = d.dst(destination, out, wider=True)
    wide = view(f"{'s' if out.kind == 's' else 'u'}{8 * max(size, out.size)}")
    narrow = d.src(d.operands[1], source, wider=True)
    held = d.slots.sizes[narrow]
    if source.kind == "f" and held != source.size:
        raise d.malformed(f"expected a {8 * source.size}-bit source for .{source.name}")
    held_view = unsigned_view(held)
    bits = np.dtype(f"u{source.size}")

    def convert(a: np.ndarray) -> np.ndarray:
        return run(a.astype(bits) if held != source.size else a)

    integers = source.kind != "f" and out.kind != "f" and not how.sat
    flow = bitwise(1) if integers else whole
    return elementwise(d, convert, dst, wide, (narrow,), (held_view,), flow, int(integers))


def _function(
    d: Decode, out: Type, source: Type, how: _Rounding
) -> Callable[[np.ndarray], np.ndarray]:
    """Converts unsigned bits of `source` to values of `out` (floats as unsigned bits)."""
    if source.kind != "f" and out.kind != "f":
        dtype = VIEW_DTYPES[view(source)]
        target = VIEW_DTYPES[view(out)]
        if not how.sat:
            return lambda a: a.view(dtype).astype(target)
        low, high = np.iinfo(target).min, np.iinfo(target).max

        def clamp(a: np.ndarray) -> np.ndarray:
            values = a.view(dtype)
            small = np.minimum(values, high) if np.iinfo(dtype).max > high else values
            if np.iinfo(dtype).min < low:
                small = np.maximum(small, low)
            return small.astype(target)

        return clamp
    if source.kind != "f":
        _require_mode(d, how)
        dtype = VIEW_DTYPES[view(source)]

        def from_integer(a: np.ndarray) -> np.ndarray:
            values = a.view(dtype)
            if how.mode == "rn" and not how.sat and out.name in ("f32", "f64"):
                return values.astype(VIEW_DTYPES[view(out)]).view(UNSIGNED[out.name])
            if source.size < 8:
                exact = values.astype(np.float64)
            else:
                high = (values >> 32).astype(np.float64) * 2.0**32
                low = (values & dtype.type(0xFFFFFFFF)).astype(np.float64)
                exact = _sum64(high, low, how.mode) if out.name == "f64" else add_odd(high, low)
            if how.sat:
                exact = np.clip(exact, 0.0, 1.0)
            return encode_float(exact, out.name, how.mode or "rn")

        return from_integer
    if out.kind != "f":
        if how.integral is None:
            raise d.malformed("expected .rni, .rzi, .rmi or .rpi")
        rounding = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[how.integral]
        target = VIEW_DTYPES[view(out)]
        low, high = int(np.iinfo(target).min), int(np.iinfo(target).max)
        nan = 1 << (8 * out.size - 1) if source.name == "f64" or out.size == 8 else 0
        nan_value = np.array(nan, f"u{out.size}").view(target)

        def to_integer(a: np.ndarray) -> np.ndarray:
            values = decode_float(a.view(UNSIGNED[source.name]), source.name)
            if how.ftz:
                values = flush(values, source.name)
            whole = rounding(values)
            above, below = whole >= float(high) + (out.size < 8), whole <= float(low)
            inside = np.where(above | below | np.isnan(whole), 0.0, whole).astype(target)
            clamped = np.where(above, target.type(high), np.where(below, target.type(low), inside))
            return np.where(np.isnan(values), nan_value, clamped)

        return to_integer
    return _float_to_float(d, out, source, how)


def _sum64(a: np.ndarray, b: np.ndarray, mode: str | None) -> np.ndarray:
    """a + b of float64 values, a the larger one, in any rounding."""
    total = a + b
    rest = b - (total - a)  # exact
    down = {"rm": rest < 0, "rz": (rest < 0) & (total > 0)}.get(mode or "rn", False)
    up = {"rp": rest > 0, "rz": (rest > 0) & (total < 0)}.get(mode or "rn", False)
    step = np.where(down, -np.inf, np.inf)
    return np.where(np.logical_or(down, up), np.nextafter(total, step), total)


def _float_to_float(
    d: Decode, out: Type, source: Type, how: _Rounding
) -> Callable[[np.ndarray], np.ndarray]:
    if out.size < source.size:
        _require_mode(d, how)
    rounding = {
        "rni": np.rint,
        "rzi": np.trunc,
        "rmi": np.floor,
        "rpi": np.ceil,
        None: None,
    }[how.integral]

    def run(a: np.ndarray) -> np.ndarray:
        exact = decode_float(a.view(UNSIGNED[source.name]), source.name)
        if how.ftz and source.name == "f32":
            exact = flush(exact, "f32")
        if rounding is not None:
            exact = rounding(exact)
        found = _finish(exact, out.name, how)
        return found if how.sat else np.where(np.isnan(exact), _nan(a, source, out, found), found)

    return run


def _nan(a: np.ndarray, source: Type, out: Type, canonical: np.ndarray) -> np.ndarray:
    """Result of converting a NaN: f64, and bf16 to f32, keep its sign and as much of its payload as
    fits."""
    if source.name == out.name == "f64":
        return pass_on_nan(canonical, a.view(np.uint64))
    if "f64" in (source.name, out.name):
        return _payload(a.astype(np.uint64), source.name, out.name).astype(UNSIGNED[out.name])
    if (source.name, out.name) == ("bf16", "f32"):
        return a.astype(np.uint32) << np.uint32(16)
    return canonical


def _finish(exact: np.ndarray, name: str, how: _Rounding) -> np.ndarray:
    if how.sat:
        exact = saturated(exact)
    if how.relu:
        exact = rectified(exact)
    if how.satfinite:
        exact = np.clip(exact, -_MAX_FINITE[name], _MAX_FINITE[name])
    if how.ftz and name == "f32":
        exact = flush(exact, "f32")
    return encode_float(exact, name, how.mode or "rn")


def _packed(d: Decode, name: str, how: _Rounding) -> Op:
    """cvt.rn.f16x2.f32 d, a, b: a goes to the upper half."""
    f32 = d.type("f32")
    d.done(3)

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        halves = [_finish(decode_float(x, "f32"), name, how) for x in (b, a)]
        return halves[0].astype(np.uint32) | halves[1].astype(np.uint32) << np.uint32(16)

    sources = (d.src(d.operands[1], f32), d.src(d.operands[2], f32))
    return elementwise(d, run, d.dst(d.operands[0], f32), U32, sources, (U32, U32), packed(2))


def _payload(a: np.ndarray, source: str, out: str) -> np.ndarray:
    """Bits of `a`, a NaN, in another format: the fraction's upper end, made quiet."""
    held, kept = _FRACTION[source], _FRACTION[out]
    fraction = a & np.uint64((1 << held) - 1)
    if kept > held:
        fraction = fraction << np.uint64(kept - held)
    else:
        fraction = fraction >> np.uint64(held - kept)
    width, wide = _WIDTH[source], _WIDTH[out]
    sign = a >> np.uint64(width - 1) << np.uint64(wide - 1)
    exponent = np.uint64((1 << wide - 1) - (1 << kept))
    return sign | exponent | fraction | np.uint64(1 << kept - 1)


def _tf32(d: Decode, mode: str, source: Type, relu: bool, finite: bool) -> Op:
    """f32 with the low 13 bits rounded away: rna (ties away from zero), rn, rz."""
    if source.name != "f32":
        raise d.malformed(f"expected .f32 to convert to .tf32, got .{source.name}")
    largest = np.uint32(0x7F7FE000)

    def run(a: np.ndarray) -> np.ndarray:
        half = {"rna": 0x1000, "rz": 0, "rn": 0xFFF + (a >> 13 & 1)}[mode]
        magnitude, sign = a & np.uint32(0x7FFFFFFF), a & np.uint32(0x80000000)
        nan = magnitude > 0x7F800000
        special = magnitude >= 0x7F800000
        out = np.where(special, a, (a + half).astype(np.uint32)) & np.uint32(0xFFFFE000)
        if finite and mode == "rna":
            # One step below infinity, or below the NaN: what an H200 makes of it.
            return np.where((out & 0x7FFFFFFF) >= 0x7F800000, out - np.uint32(0x2000), out)
        if finite:
            out = np.where((out & 0x7FFFFFFF) >= 0x7F800000, sign | largest, out)
        if relu:
            out = np.where(sign != 0, 0, out)
        # .rna keeps what it can of a NaN; the others write one pattern.
        return np.where(nan, a & np.uint32(0xFFFFE000) if mode == "rna" else 0x7FFFE000, out)

    return elementwise(
        d, run, d.dst(d.operands[0], source), U32, (d.src(d.operands[1], source),), (U32,)
    )

"""Floating-point arithmetic: f64, f32, f32x2, f16, f16x2, bf16, bf16x2 (PTX ISA 9.7.3, 9.7.4).

`rounding` defines how results are rounded, and their NaNs. The approximations (.approx, .full, ex2,
lg2, sin, cos, tanh, rcp, rsqrt) are computed in float64 and rounded to nearest. They are more
accurate than the hardware's, and are never compared with it bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import elements
from tcir.interp.ptx.isa.values.elementwise import counted, elementwise, predicate
from tcir.interp.ptx.isa.values.rational import (
    Excess,
    directed64,
    fma64,
    fused_excess,
    product_excess,
    quotient_excess,
    root_excess,
    sum_excess,
)
from tcir.interp.ptx.isa.values.rounding import (
    CANONICAL,
    MIN_NORMAL,
    SIGN,
    UNSIGNED,
    add_odd,
    decode_float,
    element,
    encode_float,
    exp2,
    flush,
    fused,
    log2,
    minmax_bits,
    odd_quotient,
    odd_root,
    pass_on_nan,
    rectified,
    saturated,
    settled,
)
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32, unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Type

_OOB_NAN = 0x7FF7
"""What TMA fills with under NaN fill; an fma with .oob that meets it in a or b gives +0."""
_TYPES = ("f64", "f32", "f32x2", "f16", "f16x2", "bf16", "bf16x2")


def _downwards(
    d: Decode, compute: Callable[..., np.ndarray], *signs: int
) -> Callable[..., np.ndarray]:
    """A sum whose exact zeros are -0 under .rm: it negates the sum of the negated operands."""
    if "rm" not in d.modifiers:
        return compute
    return lambda *values: -compute(*(v * s for v, s in zip(values, signs, strict=True)))


def _wrap(
    d: Decode, compute: Callable[..., np.ndarray], count: int, excess: Excess | None = None
) -> Op:
    """An operation on exact float64 values, rounded and finished as the modifiers say.

    `excess`: for f64 in directed rounding; None where the operation has no f64 form.
    """
    mode = d.take("rn", "rz", "rm", "rp") or "rn"
    ftz = d.take("ftz") is not None
    saturate = d.take("sat") is not None
    relu = d.take("relu") is not None
    oob = count == 3 and d.take("oob") is not None
    kinds = d.types(*_TYPES)
    if [k.name for k in kinds] in (["f32", "f16"], ["f32", "bf16"]) and count > 1:
        return _mixed(d, compute, count, kinds[1], mode, saturate and not (ftz or relu))
    if len(kinds) != 1:
        raise d.malformed(f"expected one type, got {len(kinds)}")
    kind = kinds[0]
    d.done(count + 1)
    name = element(kind)
    if oob and name not in ("f16", "bf16"):
        raise d.malformed("expected f16 or bf16 operands with .oob")
    if name == "f64" and excess is None:
        raise d.incomplete("no rule for type .f64")
    unsigned = UNSIGNED[name]
    n = unsigned_view(kind.size)
    register = np.dtype(f"u{kind.size}")

    def run(*sources: np.ndarray) -> np.ndarray:
        values = [decode_float(s.view(unsigned), name) for s in sources]
        if ftz:
            values = [flush(v, name) for v in values]
        exact = compute(*values)
        if name == "f64":
            assert excess is not None
            if mode != "rn":
                exact = directed64(exact, excess, mode, *values)
            # Of two NaNs the last one goes on; of a division, which is a subroutine, the first.
            heard = sources[::-1] if excess is quotient_excess else sources
            return pass_on_nan(encode_float(exact, name), *heard)
        if ftz:
            exact = flush(exact, name)
        if saturate:
            exact = saturated(exact)
        if relu:
            exact = rectified(exact)
        out = encode_float(exact, name, mode)
        if oob:
            filled = [s.view(unsigned) == _OOB_NAN for s in sources[:2]]
            out = np.where(filled[0] | filled[1], unsigned(0), out)
        return out.view(register)

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    flow = elements(np.dtype(unsigned).itemsize)
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n,) * count, flow)


def _mixed(
    d: Decode,
    compute: Callable[..., np.ndarray],
    count: int,
    narrow: Type,
    mode: str,
    saturate: bool,
) -> Op:
    """add, sub and fma of f32 with f16 or bf16 operands (sm_100): all but the last are narrow."""
    d.done(count + 1)
    f32 = TYPES["f32"]
    kinds = [narrow] * (count - 1) + [f32]

    def run(*sources: np.ndarray) -> np.ndarray:
        values = [decode_float(s, k.name) for s, k in zip(sources, kinds, strict=True)]
        exact = compute(*values)
        if saturate:
            exact = saturated(exact)
        return encode_float(exact, "f32", mode)

    sources = tuple(d.src(o, k) for o, k in zip(d.operands[1:], kinds, strict=True))
    views = tuple(unsigned_view(k.size) for k in kinds)
    return elementwise(d, run, d.dst(d.operands[0], f32), U32, sources, views)


def _direct(d: Decode, fn: Callable[..., np.ndarray], *types: str, count: int = 2) -> Op | None:
    """The common case on whole arrays of f32 or f64, or of `types`: round to nearest, no other
    modifier."""
    if [m for m in d.modifiers if m != "rn"] not in [[name] for name in types or ("f32", "f64")]:
        return None
    d.skip("rn")
    kind = d.type(*types)
    d.done(count + 1)
    n, name = view(kind), kind.name

    def run(*operands: np.ndarray) -> np.ndarray:
        found = fn(*operands)
        if isinstance(found, np.ndarray) and not np.isnan(np.minimum.reduce(found)):
            return found  # most arrays have no NaN
        return settled(found, name, *operands)

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n,) * count)


def _add(d: Decode) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return _downwards(d, np.add if "f64" in d.modifiers else add_odd, -1, -1)


def float_add(d: Decode) -> Op:
    return _direct(d, np.add) or _wrap(d, _add(d), 2, sum_excess)


def float_sub(d: Decode) -> Op:
    def subtract(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return add(a, -b)

    add = _add(d)
    return _direct(d, np.subtract) or _wrap(d, subtract, 2, lambda v, a, b: v - (a - b))


def float_mul(d: Decode) -> Op:
    return _direct(d, np.multiply) or _wrap(d, np.multiply, 2, product_excess)


def require_rounding(d: Decode, *others: str) -> None:
    """Raises PtxSyntaxError unless the instruction has a rounding modifier or one of `others`:
    ptxas assumes no default rounding here.
    """
    if not {"rn", "rz", "rm", "rp", *others} & set(d.modifiers):
        words = ", ".join(f".{word}" for word in (*others, "rn", "rz", "rm"))
        raise d.malformed(f"expected a rounding modifier ({words} or .rp), got none")


@instruction("fma")
def float_fma(d: Decode) -> Op:
    """Fused multiply-add, rounded once."""
    require_rounding(d)
    products = 2 if {"f16x2", "bf16x2", "f32x2"} & set(d.modifiers) else 1
    if "f64" in d.modifiers:
        op = _wrap(d, _downwards(d, fma64, -1, 1, -1), 3, fused_excess)
    else:
        op = _direct(d, fused, "f32", count=3) or _wrap(
            d, _downwards(d, lambda a, b, c: add_odd(a * b, c), -1, 1, -1), 3
        )
    return counted(op, products)


def float_div(d: Decode) -> Op:
    """Decodes a division, with every rounding modifier; .approx and .full round to nearest."""
    require_rounding(d, "approx", "full")
    d.skip("approx", "full")
    return _direct(d, np.divide, "f32") or _wrap(
        d, np.divide if "f64" in d.modifiers else odd_quotient, 2, quotient_excess
    )


def float_minmax(d: Decode, largest: bool) -> Op:
    """Decodes the minimum or maximum of two or three inputs. With .xorsign.abs the result is the
    minimum or maximum of the magnitudes, and its sign is the xor of the inputs' signs.
    """
    ftz = d.take("ftz") is not None
    propagate = d.take("NaN") is not None
    product = d.take("xorsign") is not None
    magnitudes = d.take("abs") is not None
    kind = d.type(*_TYPES)
    d.done((3, 4) if kind.name == "f32" else 3)
    if product and not magnitudes:
        raise d.malformed("expected .xorsign.abs")
    name = element(kind)
    unsigned = UNSIGNED[name]
    sign = unsigned(SIGN[name])
    register = np.dtype(f"u{kind.size}")
    n = unsigned_view(kind.size)

    def pick(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return minmax_bits(a, b, name, largest, propagate)

    def run(*operands: np.ndarray) -> np.ndarray:
        parts = [x.view(unsigned) for x in operands]
        if ftz:
            parts = [encode_float(flush(decode_float(x, name), name), name) for x in parts]
        either = np.bitwise_or if propagate else np.bitwise_and
        nan = reduce(either, [np.isnan(decode_float(x, name)) for x in parts])
        signs = np.where(nan, unsigned(0), reduce(np.bitwise_xor, parts) & sign)
        if magnitudes:
            parts = [x & ~sign for x in parts]
        out = reduce(pick, parts)
        return (out | signs if product else out).astype(unsigned).view(register)

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    flow = elements(np.dtype(unsigned).itemsize)
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n,) * len(sources), flow)


def _sign_bits(d: Decode, fn: Callable[..., np.ndarray]) -> Op:
    ftz = d.take("ftz") is not None
    kind = d.type(*_TYPES)
    d.done(2)
    name = element(kind)
    unsigned = UNSIGNED[name]
    register = np.dtype(f"u{kind.size}")
    n = unsigned_view(kind.size)

    def run(x: np.ndarray) -> np.ndarray:
        a = x.view(unsigned)
        values = decode_float(a, name)
        if ftz:
            a = encode_float(flush(values, name), name)
        nan = a | unsigned(1 << 51) if name == "f64" else unsigned(CANONICAL[name])
        return np.where(np.isnan(values), nan, fn(a, unsigned(SIGN[name]))).view(register)

    sources, flow = (d.src(d.operands[1], kind),), elements(np.dtype(unsigned).itemsize)
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n,), flow)


def float_abs(d: Decode) -> Op:
    return _sign_bits(d, lambda a, sign: a & ~sign)


def float_neg(d: Decode) -> Op:
    return _sign_bits(d, lambda a, sign: a ^ sign)


@instruction("copysign")
def copysign(d: Decode) -> Op:
    """d has the sign of a and the magnitude of b."""
    kind = d.type("f32", "f64")
    d.done(3)
    n = unsigned_view(kind.size)
    sign = UNSIGNED[kind.name](SIGN[kind.name])
    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(
        d, lambda a, b: a & sign | b & ~sign, d.dst(d.operands[0], kind), n, sources, (n, n)
    )


@instruction("testp")
def testp(d: Decode) -> Op:
    what = d.require("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    kind = d.type("f32", "f64")
    d.done(2)
    tests: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        # An H200 has zeros among the normal numbers.
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= MIN_NORMAL[kind.name]) | (a == 0)),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < MIN_NORMAL[kind.name]),
    }
    source = d.src(d.operands[1], kind)
    return predicate(d, tests[what], (source,), view(kind), d.pred_dst(d.operands[0]))


def _unary(
    name: str,
    fn: Callable[[np.ndarray], np.ndarray],
    odd: Callable[[np.ndarray], np.ndarray] | None = None,
    excess: Excess = lambda v, a: v - v,
) -> None:
    """`odd`: f32 rounded to odd; `excess`: of f64. Both for directed rounding."""

    @instruction(name)
    def decode(d: Decode) -> Op:
        directed = {"rz", "rm", "rp"} & set(d.modifiers)
        if directed and odd is None:
            raise d.malformed(f"{name} has no directed rounding")
        if odd is not None:
            require_rounding(d, "approx")
        elif "approx" not in d.modifiers:
            raise d.malformed("expected .approx, got none")
        d.skip("approx")
        return _wrap(d, odd if directed and odd and "f64" not in d.modifiers else fn, 1, excess)

    decode.__doc__ = f"{name}: computed in float64, rounded to nearest."


_unary("rcp", lambda a: 1.0 / a, lambda a: odd_quotient(np.ones_like(a), a), lambda v, a: v - 1 / a)
_unary("sqrt", np.sqrt, odd_root, root_excess)
_unary("rsqrt", lambda a: 1.0 / np.sqrt(a))
_unary("ex2", exp2)
_unary("lg2", log2)
_unary("sin", np.sin)
_unary("cos", np.cos)
_unary("tanh", np.tanh)

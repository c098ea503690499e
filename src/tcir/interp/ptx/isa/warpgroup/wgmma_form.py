"""Form of a wgmma.mma_async, derived from its modifiers and immediates (PTX ISA 9.7.15.5,
9.7.15.6).
"""

from __future__ import annotations

import re
from dataclasses import replace

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.syntax import Operand
from tcir.machine.numerics.types import MmaTypes
from tcir.machine.wgmma.unit import WgmmaForm

_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
_D_TYPES = {"f16": ("f32", "f16"), "bf16": ("f32",), "tf32": ("f32",), "e4m3": ("f32", "f16"),
            "e5m2": ("f32", "f16"), "s8": ("s32",), "u8": ("s32",), "b1": ("s32",)}  # fmt: skip
_FAMILIES = ({"e4m3", "e5m2"}, {"s8", "u8"})
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_DENSE = (
    "for example wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, adesc, bdesc, "
    "p, 1, 1, 0, 0;"
)
_SPARSE = (
    "for example wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {f0, f1, f2, f3}, adesc, "
    "bdesc, metadata, 0, p, 1, 1, 0, 0;"
)


def example(d: Decode) -> str:
    """Text of a correct wgmma for error messages, with a sparse A if the decoded instruction has
    one.
    """
    return _SPARSE if is_sparse(d) else _DENSE


def is_sparse(d: Decode) -> bool:
    """Whether the decoded instruction has a sparse A."""
    return d.name.endswith(".sp")


def form_of(d: Decode) -> WgmmaForm:
    """Returns the form that the modifiers give; `with_immediates` later adds the negations and the
    transpositions of the operands.
    """
    sparse = is_sparse(d)
    for word in ("sync", "aligned"):
        if d.take(word) is None:
            raise d.malformed(f"expected .{word}, {example(d)}")
    shape = next((m for m in d.modifiers if _SHAPE.fullmatch(m)), "")
    d.take(shape)
    found = _SHAPE.fullmatch(shape)
    saturate = d.take("satfinite") is not None
    names = [m for m in d.modifiers if m in _BITS or m in ("f32", "s32")]
    d.modifiers = [m for m in d.modifiers if m not in names]
    if found is None or len(names) != 3:
        raise d.malformed(f"expected a shape and the types of D, A and B, {example(d)}")
    types = MmaTypes(names[1], names[2], names[0])
    _check_types(d, types)
    m, n, k = (int(part) for part in found.groups())
    _check_shape(d, types, shape, (m, n, k))
    if saturate and types.a_type not in ("s8", "u8"):
        raise d.malformed(f"expected no .satfinite with .{types.a_type}: only .s8 and .u8 take it")
    if types.a_type == "b1":
        d.require("and")
        d.require("popc")
    return WgmmaForm(n, k, _BITS[types.a_type], types, saturate=saturate, sparse=sparse)


def _check_types(d: Decode, types: MmaTypes) -> None:
    a, b, of_d = types.a_type, types.b_type, types.d_type
    if a not in _BITS or of_d not in _D_TYPES.get(a, ()):
        allowed = "; ".join(f"{a}: {' or '.join(ds)}" for a, ds in _D_TYPES.items())
        raise d.malformed(
            f"expected a D of A's type ({allowed}), got .{of_d} of .{a}, {example(d)}"
        )
    if a != b and not any({a, b} <= family for family in _FAMILIES):
        raise d.malformed(
            f"expected A and B of one type (e4m3 and e5m2, s8 and u8 may be mixed), got .{a} and "
            f".{b}, {example(d)}"
        )
    if a == "b1" and is_sparse(d):
        raise d.malformed(f"expected no sparse A of .b1: it has no metadata, {example(d)}")


def _check_shape(d: Decode, types: MmaTypes, shape: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    row = 64 if is_sparse(d) else 32
    deep = 8 * row // _BITS[types.a_type]
    if (m, k) != (64, deep):
        zeros = ", half of them zeros that are not stored" * is_sparse(d)
        raise d.malformed(
            f"expected m64n{n}k{deep} of .{types.a_type}: M is 64, K is {row} bytes of a row"
            f"{zeros}, got {shape}, {example(d)}"
        )
    integer = types.d_type == "s32"
    if n % 8 or not 8 <= n <= 256 or integer and n > 32 and n % 16:
        steps = "8, 16, 24, 32 and multiples of 16 to 256" if integer else "multiples of 8 to 256"
        raise d.malformed(f"expected N of .{types.a_type} in {steps}, got {n}, {example(d)}")


def with_immediates(d: Decode, form: WgmmaForm, rest: list[Operand], registers: bool) -> WgmmaForm:
    """Returns the form with the negations and transpositions that the immediates after scale-d
    give.
    """
    wide = form.bits == 16
    count = 0 if form.types.d_type == "s32" else 2 + (wide and (1 if registers else 2))
    if len(rest) != count:
        words = "imm-scale-a, imm-scale-b" if count else ""
        words += ", imm-trans-a" * (wide and not registers) + ", imm-trans-b" * wide
        raise d.malformed(
            f"expected {count} immediates after scale-d ({words or 'none of integers'}), got "
            f"{len(rest)}, {example(d)}"
        )
    values = [d.immediate(operand) for operand in rest]
    if any(value not in (1, -1) for value in values[:2]):
        raise d.malformed(f"expected 1 or -1 for imm-scale-a and imm-scale-b, got {values[:2]}")
    if any(value not in (0, 1) for value in values[2:]):
        raise d.malformed(f"expected 0 or 1 for imm-trans-a and imm-trans-b, got {values[2:]}")
    majors = [0] * registers + values[2:] if wide else [0, 0]
    negate_a, negate_b = [value == -1 for value in values[:2]] or [False, False]
    types = replace(form.types, negate_a=negate_a, negate_b=negate_b)
    first, second = ("MN" if value else "K" for value in majors)
    return replace(form, types=types, major=(first, second))

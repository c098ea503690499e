"""wgmma.mma_async, fence, commit_group and wait_group (PTX ISA 9.7.15), as each warp has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.sync import uniform
from tcir.interp.ptx.isa.values.fragments import elements, fragment_a
from tcir.interp.ptx.lanes import FULL
from tcir.interp.ptx.op import Blocking, Op
from tcir.interp.ptx.registers import U32, U64
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Operand, Vector
from tcir.interp.ptx.warp import Warp
from tcir.machine.numerics.types import MmaTypes
from tcir.machine.wgmma.unit import WgmmaForm

_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
_D_TYPES = {"f16": ("f32", "f16"), "bf16": ("f32",), "tf32": ("f32",), "e4m3": ("f32", "f16"),
            "e5m2": ("f32", "f16"), "s8": ("s32",), "u8": ("s32",), "b1": ("s32",)}  # fmt: skip
_FAMILIES = ({"e4m3", "e5m2"}, {"s8", "u8"})
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_EXAMPLE = (
    "for example wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, adesc, bdesc, "
    "p, 1, 1, 0, 0;"
)


@dataclass(frozen=True)
class WgmmaOperands:
    """The registers that a wgmma holds until a wait."""

    d: tuple[int, ...]
    a: tuple[int, ...]


def _form(d: Decode) -> tuple[WgmmaForm, str, str, str, bool]:
    """Takes the modifiers."""
    for word in ("sync", "aligned"):
        if d.take(word) is None:
            raise d.malformed(f"expected .{word}, {_EXAMPLE}")
    shape = next((m for m in d.modifiers if _SHAPE.fullmatch(m)), "")
    d.take(shape)
    found = _SHAPE.fullmatch(shape)
    saturate = d.take("satfinite") is not None
    names = [m for m in d.modifiers if m in _BITS or m in ("f32", "s32")]
    d.modifiers = [m for m in d.modifiers if m not in names]
    if found is None or len(names) != 3:
        raise d.malformed(f"expected a shape and the types of D, A and B, {_EXAMPLE}")
    d_type, a_type, b_type = names
    if a_type not in _BITS or d_type not in _D_TYPES.get(a_type, ()):
        allowed = "; ".join(f"{a}: {' or '.join(ds)}" for a, ds in _D_TYPES.items())
        raise d.malformed(
            f"expected a D of A's type ({allowed}), got .{d_type} of .{a_type}, {_EXAMPLE}"
        )
    if a_type != b_type and not any({a_type, b_type} <= family for family in _FAMILIES):
        raise d.malformed(
            f"expected A and B of one type (e4m3 and e5m2, s8 and u8 may be mixed), got .{a_type} "
            f"and .{b_type}, {_EXAMPLE}"
        )
    m, n, k = (int(part) for part in found.groups())
    if (m, k) != (64, 256 // _BITS[a_type]):
        raise d.malformed(
            f"expected m64n{n}k{256 // _BITS[a_type]} of .{a_type}: M is 64, K is 32 bytes of a "
            f"row, got {shape}, {_EXAMPLE}"
        )
    integer = d_type == "s32"
    if n % 8 or not 8 <= n <= 256 or integer and n > 32 and n % 16:
        steps = "8, 16, 24, 32 and multiples of 16 to 256" if integer else "multiples of 8 to 256"
        raise d.malformed(f"expected N of .{a_type} in {steps}, got {n}, {_EXAMPLE}")
    if saturate and (not integer or a_type == "b1"):
        raise d.malformed(f"expected no .satfinite with .{a_type}: it is of .s8 and .u8")
    if a_type == "b1":
        d.require("and")
        d.require("popc")
    form = WgmmaForm(n, k, _BITS[a_type], MmaTypes(a_type, b_type, d_type), saturate=saturate)
    return form, d_type, a_type, b_type, integer


def _immediates(
    d: Decode, form: WgmmaForm, rest: list[Operand], integer: bool, registers: bool
) -> WgmmaForm:
    """The form with its signs and majors."""
    wide = form.bits == 16
    count = 0 if integer else 2 + (wide and (1 if registers else 2))
    if len(rest) != count:
        words = "imm-scale-a, imm-scale-b" if count else ""
        words += ", imm-trans-a" * (wide and not registers) + ", imm-trans-b" * wide
        raise d.malformed(
            f"expected {count} immediates behind scale-d ({words or 'none of integers'}), got "
            f"{len(rest)}, {_EXAMPLE}"
        )
    values = [d.immediate(operand) for operand in rest]
    if any(value not in (1, -1) for value in values[:2]):
        raise d.malformed(f"expected 1 or -1 for imm-scale-a and imm-scale-b, got {values[:2]}")
    if any(value not in (0, 1) for value in values[2:]):
        raise d.malformed(f"expected 0 or 1 for imm-trans-a and imm-trans-b, got {values[2:]}")
    majors = [0] * registers + values[2:] if wide else [0, 0]
    negate = [value == -1 for value in values[:2]] or [False, False]
    types = MmaTypes(form.types.a_type, form.types.b_type, form.types.d_type, *negate)
    first, second = ("MN" if value else "K" for value in majors)
    return WgmmaForm(form.n, form.k, form.bits, types, (first, second), form.saturate)


def _d_places(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of every element of D that a lane holds: [n / 2, 32]."""
    lane, v = np.arange(32), np.arange(n // 2)[:, None]
    return lane // 4 + 8 * (v // 2 % 2), 2 * (lane % 4) + v % 2 + 8 * (v // 4)


@instruction("wgmma.mma_async")
def mma_async(d: Decode) -> Op:
    """`{d}, adesc | {a}, bdesc, scale-d {, imm-scale-a, -b {, imm-trans-a, -b}}`"""
    if d.take("sp"):
        raise d.incomplete("no rule for a sparse A of wgmma yet")
    form, d_type, _, _, integer = _form(d)
    if len(d.operands) < 4:
        raise d.malformed(f"expected D, A, B and scale-d, {_EXAMPLE}")
    d.done(range(4, 9))
    half = d_type == "f16"
    kind = TYPES["b32"]
    targets = d.vector(d.operands[0], form.n // (4 if half else 2))
    sources = tuple(d.src(o, kind) for o in targets)
    slots = tuple(d.dst(o, kind) for o in targets)
    registers = isinstance(d.operands[1], Vector)
    a_slots: tuple[int, ...] = ()
    if registers:
        a_slots = tuple(d.src(o, kind) for o in d.vector(d.operands[1], 4))
    adesc = -1 if registers else d.src(d.operands[1], TYPES["b64"])
    bdesc = d.src(d.operands[2], TYPES["b64"])
    scale, flip = d.pred(d.operands[3])
    form = _immediates(d, form, list(d.operands[4:]), integer, registers)
    site = d.site
    d_at = _d_places(form.n)
    a_at = fragment_a(form.bits, 16, form.k)
    code = {32: np.uint32, 16: np.uint16}.get(form.bits, np.uint8)

    def held_d(w: Warp) -> np.ndarray:
        matrix = np.zeros((16, form.n), np.uint32)
        words = np.stack([w.v[U32][slot] for slot in sources])
        matrix[d_at] = elements(words, 16) if half else words
        return matrix

    def put(w: Warp, result: np.ndarray) -> None:
        words = result[d_at]
        if half:
            words = words[0::2] | words[1::2] << np.uint32(16)
        for slot, row in zip(slots, words, strict=True):
            w.v[U32][slot][:] = row
            w.define(slot, FULL, None)

    def run(w: Warp, m: int) -> None:
        if w.undef[scale] & m:
            w.read_undefined(site, (scale,), m)
        chosen = (w.p[scale] ^ flip) & m
        if chosen not in (0, m):
            raise w.error("not-uniform", "expected one scale-d for all lanes", site)
        state = w.wgmma
        before = state.take(w, slots, a_slots, site)
        read = a_slots if before is not None or not chosen else (*sources, *a_slots)
        if any(w.undef[slot] & m for slot in read):
            w.read_undefined(site, read, m)
        a: int | np.ndarray
        if registers:
            a = np.zeros((16, form.k), code)
            a[a_at] = elements(np.stack([w.v[U32][slot] for slot in a_slots]), form.bits)
        else:
            a = uniform(w, adesc, m, site, "descriptor of A", U64)
        b = uniform(w, bdesc, m, site, "descriptor of B", U64)
        d_in = None if not chosen else before if before is not None else held_d(w)
        flight = w.agent.wgmma.issue(form, a, b, d_in, site=site)
        state.fly(w, slots, a_slots, flight, partial(put, w))

    op = d.plain(run, aligned=True)
    op.form = WgmmaOperands(slots, a_slots)
    return op


@instruction("wgmma.fence")
def fence(d: Decode) -> Op:
    d.require("sync")
    d.require("aligned")
    d.done(0)
    return d.plain(lambda w, m: w.wgmma.fence(), aligned=True)


@instruction("wgmma.commit_group")
def commit_group(d: Decode) -> Op:
    d.require("sync")
    d.require("aligned")
    d.done(0)
    site = d.site
    return d.plain(lambda w, m: w.agent.wgmma.commit(site=site), aligned=True)


@instruction("wgmma.wait_group")
def wait_group(d: Decode) -> Op:
    """`N`: all but the last N groups."""
    d.require("sync")
    d.require("aligned")
    d.done(1)
    pending = d.immediate(d.operands[0])
    site = d.site

    def run(w: Warp, m: int) -> Blocking:
        yield from w.agent.wgmma.wait(pending, site=site)
        w.wgmma.land(w.agent.wgmma.complete)

    return d.blocking(run, aligned=True)

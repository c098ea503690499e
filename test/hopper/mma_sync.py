"""`mma.sync` in chains over k, on silicon and on the machine: one entry for each form.

A warp multiplies STEPS fragments into one accumulator, and writes the accumulator after each. The
registers' words are the inputs and the outputs, so the places of elements count, too. Inputs come
from a seed, in flavours that reach each rule of the arithmetic.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tcir.run import RunReport, run_ptx

from .float_inputs import FLAVOURS, LAYOUT, Array, accumulator, exponents, operand

HERE = Path(__file__).resolve().parent
STEPS, WARPS = 4, 32
"""Chain length; chains of one flavour."""
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e5m2": 8, "e4m3": 8, "s8": 8, "u8": 8}


@dataclass(frozen=True)
class Form:
    """One shape and types of `mma.sync.aligned.m16n8k<k>.row.col`."""

    k: int
    d: str
    a: str
    b: str
    saturate: bool = False

    @property
    def name(self) -> str:
        """The entry's name, for example ``k16_f32_f16_f16``."""
        return f"k{self.k}_{self.d}_{self.a}_{self.b}" + "_sat" * self.saturate

    @property
    def integer(self) -> bool:
        """Whether the sums are exact."""
        return self.d == "s32"

    @property
    def registers(self) -> tuple[int, int, int]:
        """Registers of A, of B, and of C or D."""
        bits = BITS[self.a]
        return self.k * bits // 64, self.k * bits // 128, 2 if self.d == "f16" else 4

    @property
    def instruction(self) -> str:
        """The opcode."""
        saturate = ".satfinite" * self.saturate
        types = f"{self.d}.{self.a}.{self.b}.{self.d}"
        return f"mma.sync.aligned.m16n8k{self.k}.row.col{saturate}.{types}"


FLOATS = (
    *(Form(k, d, "f16", "f16") for k in (8, 16) for d in ("f32", "f16")),
    *(Form(k, "f32", "bf16", "bf16") for k in (8, 16)),
    *(Form(k, "f32", "tf32", "tf32") for k in (4, 8)),
    *(
        Form(k, d, a, b)
        for k in (16, 32)
        for d in ("f32", "f16")
        for a in ("e4m3", "e5m2")
        for b in ("e4m3", "e5m2")
    ),
)
INTEGERS = tuple(
    Form(k, "s32", a, b, saturate)
    for k in (16, 32)
    for a, b in (("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8"))
    for saturate in (False, True)
)
FORMS = {form.name: form for form in (*FLOATS, *INTEGERS)}


# --- the kernels ---------------------------------------------------------------------------------

_ENTRY = """
.visible .entry {name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd,
 .param .u32 steps)
{{
 .reg .pred %p; .reg .b32 %a<4>, %b<2>, %c<4>, %r<8>; .reg .b64 %d<8>;
 ld.param.u64 %d0, [pa]; ld.param.u64 %d1, [pb]; ld.param.u64 %d2, [pc]; ld.param.u64 %d3, [pd];
 ld.param.u32 %r0, [steps]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.lo.u32 %r3, %r2, %r0;
 shl.b32 %r1, %r1, 2;
 mad.lo.u32 %r4, %r3, {a_bytes}, %r1; cvt.u64.u32 %d4, %r4; add.s64 %d0, %d0, %d4;
 mad.lo.u32 %r4, %r3, {b_bytes}, %r1; cvt.u64.u32 %d4, %r4; add.s64 %d1, %d1, %d4;
 mad.lo.u32 %r4, %r2, {c_bytes}, %r1; cvt.u64.u32 %d4, %r4; add.s64 %d2, %d2, %d4;
 mad.lo.u32 %r4, %r3, {c_bytes}, %r1; cvt.u64.u32 %d4, %r4; add.s64 %d3, %d3, %d4;
{load_c}
STEP:
{load_a}
{load_b}
 {instruction} {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};
{store}
 add.s64 %d0, %d0, {a_bytes}; add.s64 %d1, %d1, {b_bytes}; add.s64 %d3, %d3, {c_bytes};
 sub.u32 %r0, %r0, 1; setp.ne.u32 %p, %r0, 0; @%p bra STEP;
 ret;
}}
"""


def _words(register: str, count: int) -> str:
    return ", ".join(f"%{register}{n}" for n in range(count))


def _loads(register: str, base: str, count: int) -> str:
    lines = (f" ld.global.b32 %{register}{n}, [{base}+{128 * n}];" for n in range(count))
    return "\n".join(lines)


def entry(form: Form) -> str:
    """PTX of the kernel of one form."""
    a, b, c = form.registers
    return _ENTRY.format(
        name=form.name, instruction=form.instruction,
        a=_words("a", a), b=_words("b", b), c=_words("c", c),
        a_bytes=128 * a, b_bytes=128 * b, c_bytes=128 * c,
        load_a=_loads("a", "%d0", a), load_b=_loads("b", "%d1", b), load_c=_loads("c", "%d2", c),
        store="\n".join(f" st.global.b32 [%d3+{128 * n}], %c{n};" for n in range(c)),
    )  # fmt: skip


@cache
def ptx(target: str = "sm_90") -> str:
    """One module with a kernel for each form."""
    head = f".version 8.7\n.target {target}\n.address_size 64\n"
    return head + "".join(entry(form) for form in FORMS.values())


# --- the inputs ----------------------------------------------------------------------------------


def _fragments(codes: Array, bits: int) -> Array:
    """Matrices [..., rows, k] as registers [..., r, 32] (PTX ISA 9.7.14.5).

    16 rows of A, or 8 columns of B: a lane has row g = lane / 4 (and g + 8), and a register the
    k that start at its c = lane % 4.
    """
    per = 32 // bits
    rows, k = codes.shape[-2:]
    lane = np.arange(32)
    g, c = lane // 4, lane % 4
    registers = []
    for block in range(0, k, 4 * per):
        for half in range(rows // 8):
            word = np.zeros((*codes.shape[:-2], 32), np.int64)
            for i in range(per):
                word |= codes[..., g + 8 * half, block + c * per + i] << (bits * i)
            registers.append(word)
    return np.stack(registers, axis=-2).astype(np.uint32)


def _floats(rng: Any, form: Form, flavour: str) -> tuple[Array, Array, Array]:
    xa, xb, spread = exponents(rng, form, flavour, WARPS)
    a = operand(rng, form.a, (WARPS, STEPS, 16, form.k), xa, spread, flavour)
    b = operand(rng, form.b, (WARPS, STEPS, 8, form.k), xb, spread, flavour)
    if flavour == "cancelling":  # neighbours in k cancel but for a bit, sometimes
        e, m, _, ignored = LAYOUT[form.a]
        odd = rng.random(a[..., 1::2].shape) < 0.3
        a[..., 1::2] = a[..., 0::2] ^ 1 << (e + m + ignored) ^ odd.astype(np.int64) << ignored
        b[..., 1::2] = b[..., 0::2]
    c = accumulator(rng, form, (WARPS, 16, 8), xa + xb, flavour)
    lane = np.arange(32)
    g, column = lane // 4, lane % 4 * 2
    parts = np.stack([c[:, g + 8 * (n // 2), column + n % 2] for n in range(4)], axis=1)
    if form.d == "f16":
        parts = parts[:, 0::2] | parts[:, 1::2] << 16
    bits_a, bits_b = BITS[form.a], BITS[form.b]
    return _fragments(a, bits_a), _fragments(b, bits_b), parts.astype(np.uint32)


def inputs(form: Form, seed: int = 0) -> tuple[Array, Array, Array]:
    """Registers of A [chains, steps, r, 32], of B alike, and of C [chains, r, 32]."""
    rng = np.random.default_rng([seed, zlib.crc32(form.name.encode())])
    if not form.integer:
        made = [_floats(rng, form, flavour) for flavour in FLAVOURS]
        joined = (np.concatenate(parts) for parts in zip(*made, strict=True))
        a, b, c = (np.ascontiguousarray(part) for part in joined)
        return a, b, c
    chains = WARPS * len(FLAVOURS)
    ra, rb, rc = form.registers
    a = rng.integers(0, 1 << 32, (chains, STEPS, ra, 32), np.uint32)
    b = rng.integers(0, 1 << 32, (chains, STEPS, rb, 32), np.uint32)
    a[::4] = rng.choice(np.array([0x7F7F7F7F, 0x80808080, 0xFFFFFFFF], np.uint32), a[::4].shape)
    b[::4] = rng.choice(np.array([0x7F7F7F7F, 0x80808080, 0xFFFFFFFF], np.uint32), b[::4].shape)
    c = rng.integers(0, 1 << 32, (chains, rc, 32), np.uint32)
    near = rng.integers(0, 1 << 20, c.shape, np.uint32)
    c[1::2] = (np.where(near & 1, 0x7FFFFFFF, 0x80000000) ^ near)[1::2]
    return a, b, c


def elements(form: Form) -> int:
    """Elements of D that a launch writes."""
    return WARPS * len(FLAVOURS) * STEPS * 128


# --- running -------------------------------------------------------------------------------------


def _arguments(form: Form, seed: int) -> tuple[list[Any], Array]:
    a, b, c = inputs(form, seed)
    d = np.zeros((len(c), STEPS, *c.shape[1:]), np.uint32)
    return [a, b, c, d, np.uint32(STEPS)], d


def on_machine(form: Form, seed: int = 0, target: str = "sm_90") -> tuple[RunReport, Array]:
    """The report, and D after each step [chains, steps, r, 32]."""
    args, d = _arguments(form, seed)
    report = run_ptx(ptx(target), entry=form.name, grid=len(d), block=32, args=args, hazards="off")
    return report, d


def on_gpu(form: Form, cubin: bytes, seed: int = 0) -> Array:
    """The result words from a GPU."""
    from tcir.runtime import run_cubin

    args, d = _arguments(form, seed)
    run_cubin(cubin, entry=form.name, grid=len(d), block=32, args=args)
    return d


def digest(data: Array) -> str:
    """Digest of a result, as `mma_sync.json` stores it."""
    return hashlib.sha256(data.tobytes()).hexdigest()[:16]

"""The data of the probes of `wgmma_forms`: what lies in shared memory and registers, and where.

Every case has its own image of shared memory, descriptors and registers. Needs numpy alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

try:
    from .float_inputs import FLAVOURS, LAYOUT, Array, accumulator, exponents, operand
    from .wgmma_forms import BITS, FORMS, Form
except ImportError:  # beside one another, where no package is installed
    from float_inputs import (  # type: ignore[no-redef]
        FLAVOURS,
        LAYOUT,
        Array,
        accumulator,
        exponents,
        operand,
    )
    from wgmma_forms import BITS, FORMS, Form  # type: ignore[no-redef]

CHAINS = 8
"""Cases of one flavour."""
A_AT, B_AT = 0, 4096
SELECTOR_AT = 24576
RECORD = np.dtype(
    [("a", "<u8"), ("b", "<u8"), ("image", "<u4"), ("scale_d", "<u4"), ("smem", "<u4"), ("", "<u4")]
)
SPANS = {0: 16, 1: 128, 2: 64, 3: 32}
"""Code of a descriptor's swizzle -> bytes of a row of its pattern."""


Metadata = Callable[[Any, Form, int], Array]
"""Draws the words [cases, 128] of a sparse A."""


@dataclass(frozen=True)
class Probe:
    """One launch of a form's kernel.

    d: registers [cases, words, 128] before; a: registers of A [cases, 4, 128]; m: of metadata
    [cases, 128]; expected: of D, where numpy knows it.
    """

    name: str
    form: Form
    cases: Array
    images: Array
    d: Array
    a: Array
    m: Array
    expected: Array | None = None


# --- layouts -------------------------------------------------------------------------------------


def descriptor(start: int, lbo: int, sbo: int, swizzle: int = 0, base: int = 0) -> int:
    """Bits of a descriptor, of byte offsets."""
    return start >> 4 | (lbo >> 4) << 16 | (sbo >> 4) << 32 | base << 49 | swizzle << 62


def lanes() -> tuple[Array, Array]:
    """Row of the first element, and pair of columns, of every thread of a warpgroup."""
    thread = np.arange(128)
    return 16 * (thread // 32) + thread % 32 // 4, thread % 4


def d_places(form: Form) -> tuple[Array, Array]:
    """Row and column of element v of thread t: [64 * n / 128, 128]."""
    row, pair = lanes()
    v = np.arange(form.n // 2)[:, None]
    return row + 8 * (v // 2 % 2), 2 * pair + v % 2 + 8 * (v // 4)


def to_d(codes: Array, form: Form) -> Array:
    """Matrices [cases, 64, n] as registers of D."""
    parts = codes[(slice(None), *d_places(form))].astype(np.int64)
    if form.d == "f16":
        parts = parts[:, 0::2] | parts[:, 1::2] << 16
    return np.ascontiguousarray(parts.astype(np.uint32))


def from_d(words: Array, form: Form) -> Array:
    """Registers of D as matrices [cases, 64, n] of codes."""
    parts = words
    if form.d == "f16":
        parts = np.stack([words & 0xFFFF, words >> 16], axis=2).reshape(len(words), -1, 128)
    matrices = np.zeros((len(words), 64, form.n), np.uint32)
    matrices[(slice(None), *d_places(form))] = parts
    return matrices


def to_a(codes: Array, bits: int) -> Array:
    """Matrices [cases, 64, k] as registers of A."""
    row, quad = lanes()
    if bits == 1:
        packed = (codes.reshape(*codes.shape[:-1], -1, 8) << np.arange(8)).sum(axis=-1)
        codes, bits = packed, 8
    per = 32 // bits
    registers = []
    for v2, v1 in product(range(2), range(2)):
        word = np.zeros((len(codes), 128), np.int64)
        for i in range(per):
            word |= (
                codes[:, row + 8 * v1, per * quad + i + 4 * per * v2].astype(np.int64) << bits * i
            )
        registers.append(word)
    return np.stack(registers, axis=1).astype(np.uint32)


def octets(codes: Array, bits: int) -> Array:
    """Rows of codes [..., k] as bytes, low first."""
    if bits == 1:
        return np.packbits(codes.astype(np.uint8), axis=-1, bitorder="little")
    kind = {8: "<u1", 16: "<u2", 32: "<u4"}[bits]
    return np.ascontiguousarray(codes.astype(kind)).view(np.uint8)


def place(images: Array, at: int, codes: Array, bits: int, mn: bool) -> tuple[int, int]:
    """Writes matrices [cases, rows, k] without swizzle; the (LBO, SBO) of their descriptors.

    Core matrices of 8 rows of 16 bytes. K-major: one behind the other along k, then along the rows;
    MN-major: along the rows, then along k.
    """
    rows = octets(codes.swapaxes(1, 2) if mn else codes, bits)
    count, width = rows.shape[1:]
    line, byte = np.arange(count)[:, None], np.arange(width)
    core = line // 8 * (width // 16) + byte // 16
    images[:, at + core * 128 + line % 8 * 16 + byte % 16] = rows
    # MN-major: SBO between core matrices along the rows, LBO along k
    return (width * 8, 128) if mn else (128, width * 8)


# --- exact products ------------------------------------------------------------------------------


def code(values: Array, name: str) -> Array:
    """Codes of small numbers that the type has."""
    values = np.asarray(values)
    if name in ("s8", "u8", "b1"):
        return values.astype(np.int64) & 0xFF
    if name == "s32":
        return values.astype(np.int64) & 0xFFFFFFFF
    single = values.astype(np.float32)
    if name in ("f32", "tf32"):
        return single.view(np.uint32).astype(np.int64)
    if name == "bf16":
        return (single.view(np.uint32) >> 16).astype(np.int64)
    if name == "f16":
        return single.astype(np.float16).view(np.uint16).astype(np.int64)
    if name == "e5m2":
        return (single.astype(np.float16).view(np.uint16) >> 8).astype(np.int64)
    mantissa, exponent = np.frexp(np.abs(single))
    field = exponent - 1 + 7
    normal = field.astype(np.int64) << 3 | (mantissa * 16).astype(np.int64) - 8
    low = (np.abs(single) * 512).astype(np.int64)
    magnitude = np.where(field > 0, normal, low)
    return np.where(single == 0, 0, magnitude) | (np.signbit(single).astype(np.int64) << 7)


def smallest(name: str, rng: Any, shape: tuple[int, ...]) -> Array:
    """Small integers other than zero; bits."""
    if name == "b1":
        return rng.integers(0, 2, shape)
    if name == "u8":
        return rng.integers(1, 256, shape)
    if name == "s8":
        return rng.integers(-128, 128, shape)
    return rng.integers(1, 4, shape) * rng.choice([-1, 1], shape)


def exact(form: Form, swapped: bool = False) -> Probe:
    """Small integers, with D and, over NaN or garbage, without; swapped: LBO and SBO exchanged."""
    rng = np.random.default_rng([1, zlib.crc32(form.name.encode())])
    bits = BITS[form.a]
    a = smallest(form.a, rng, (2, 64, form.k))
    b = smallest(form.b, rng, (2, form.n, form.k))
    if form.integer:
        near = rng.integers(0, 1 << 20, (2, 64, form.n))
        c = np.where(near & 1, (1 << 31) - 1 - near, near - (1 << 31))
        before = c & 0xFFFFFFFF
    else:
        c = rng.integers(-9, 10, (2, 64, form.n))
        before = code(c, form.d)
        before[1] = 0x7E7E if form.d == "f16" else 0x7FC00001
    total = a @ b.swapaxes(1, 2) * (-1) ** sum(form.negate)
    total[0] += c[0]
    if form.saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    images = np.zeros((2, 16384), np.uint8)
    a_codes, b_codes = code(a, form.a), code(b, form.b)
    strides = [place(images, A_AT, a_codes, bits, form.transpose[0])]
    strides.append(place(images, B_AT, b_codes, bits, form.transpose[1]))
    if swapped:
        strides = [(sbo, lbo) for lbo, sbo in strides]
    cases = np.zeros(2, RECORD)
    cases["a"], cases["b"] = descriptor(A_AT, *strides[0]), descriptor(B_AT, *strides[1])
    cases["image"], cases["scale_d"] = [0, 1], [1, 0]
    return Probe(
        form.name, form, cases, images, to_d(before, form), to_a(a_codes, bits),
        np.zeros((2, 128), np.uint32), to_d(code(total, form.d), form),
    )  # fmt: skip


# --- floating-point sums -------------------------------------------------------------------------


def _ladder(form: Form) -> tuple[Array, Array, Array]:
    """One number beside another, 2^-1 to 2^-36 of it: which bits a sum keeps.

    Rows 0 to 31: a product of 1, above C = 0; rows 32 to 63: C = 1. The second product is negative
    in rows 16 to 31 and 48 to 63.
    """
    row, column = np.arange(64), np.arange(8)
    narrow = BITS[form.a] == 8
    a, b = np.zeros((1, 64, form.stored)), np.zeros((1, 8, form.k))
    least = 9 if form.a == "e4m3" else 14
    a[0, :, 0] = row < 32
    a[0, :, -1] = 2.0 ** -np.minimum(row % 16, least) * (-1.0) ** (row // 16)
    b[0, :, : form.chunk] = 1
    step = 1 if narrow else 3 if form.a != "f16" else 2
    b[0, :, -form.chunk :] = 2.0 ** -(column[:, None] * step)
    c = np.broadcast_to((row >= 32).astype(float)[:, None], (64, 8))[None]
    return code(a, form.a), code(b, form.b), code(c, form.d)


def sums(form: Form, swapped: bool = False, metadata: Metadata | None = None) -> Probe:
    """Every flavour of operands; metadata: draws that of a sparse A."""
    rng = np.random.default_rng([2, zlib.crc32(form.name.encode())])
    pair = 2 if form.selector is None else 4
    bits = BITS[form.a]
    made = []
    for flavour in FLAVOURS:
        xa, xb, spread = exponents(rng, form, flavour, CHAINS)
        a = operand(rng, form.a, (CHAINS, 1, 64, form.stored), xa, spread, flavour)[:, 0]
        b = operand(rng, form.b, (CHAINS, 1, 8, form.k), xb, spread, flavour)[:, 0]
        if flavour == "cancelling":  # neighbours in k cancel but for a bit, sometimes
            e, m, _, ignored = LAYOUT[form.a]
            odd = rng.random(a[..., 1::2].shape) < 0.3
            a[..., 1::2] = a[..., 0::2] ^ 1 << (e + m + ignored) ^ odd.astype(np.int64) << ignored
            b = np.repeat(b[..., ::pair], pair, axis=-1)
        made.append((a, b, accumulator(rng, form, (CHAINS, 64, 8), xa + xb, flavour)))
    made.append(_ladder(form))
    a, b, c = (np.concatenate(parts) for parts in zip(*made, strict=True))
    count = len(a)
    images = np.zeros((count, 4608), np.uint8)
    strides = [place(images, A_AT, a, bits, False), place(images, B_AT, b, bits, False)]
    if swapped:
        strides = [(sbo, lbo) for lbo, sbo in strides]
    cases = np.zeros(count, RECORD)
    cases["a"], cases["b"] = descriptor(A_AT, *strides[0]), descriptor(B_AT, *strides[1])
    cases["image"], cases["scale_d"] = np.arange(count), 1
    m = np.zeros((count, 128), np.uint32) if metadata is None else metadata(rng, form, count)
    return Probe(form.name, form, cases, images, to_d(c, form), to_a(a, bits), m)


# --- addresses -----------------------------------------------------------------------------------

Layout = tuple[int, int, int, int, int]
"""start, LBO, SBO, swizzle, base offset."""


def rows_of(swizzles: Iterable[int], bases: Iterable[int], steps: Iterable[int]) -> list[Layout]:
    """K-major tiles from any row and 16 bytes of a pattern."""
    found = []
    for swizzle, base, row, step in product(swizzles, bases, range(8), steps):
        span = SPANS[swizzle]
        if step < span:
            lbo, sbo = (128, 256) if swizzle == 0 else (16, 8 * span)
            found.append((row * span + step, lbo, sbo, swizzle, base))
    return found


def strides_of() -> list[Layout]:
    """K-major tiles whose groups of rows lie elsewhere, and LBO where it should not matter."""
    found = []
    for swizzle, row in product(range(4), (0, 1, 3)):
        span = SPANS[swizzle]
        pairs = [(16 if swizzle else 512, 8 * span + more) for more in (128, 8 * span, 16, 512)]
        pairs += [(lbo, 8 * span) for lbo in (0, 256, 1024)]
        found += [(row * span, lbo, sbo, swizzle, 0) for lbo, sbo in pairs]
    return found


def transposed_of() -> list[Layout]:
    """MN-major tiles."""
    found = []
    for swizzle, base, row in product(range(4), (0, 1, 6), (0, 1, 2, 5)):
        span = SPANS[swizzle]
        pairs = ((256, 1024), (1024, 256)) if swizzle == 0 else ((1024, 2048), (2048, 1024))
        for lbo, sbo in (*pairs, (1024, 1024), (16 + 1024, 1024), (1024, 1024 + 128)):
            found.append((row * span, lbo, sbo, swizzle, base))
    return found


def addresses(
    form: Form,
    label: str,
    layouts: list[Layout],
    swapped: bool,
    selector: Array | None = None,
    m: Array | None = None,
) -> Probe:
    """Where the elements of A (label "a…") or of B are read: in two cases for each layout, D has
    the line of 128 bytes, and the element of its line.

    selector: the other operand, [n, k] or [64, stored], with a 1 for each element; m: metadata.
    """
    of_a = label[0] == "a"
    bits = BITS[form.a]
    size = bits // 8
    at = np.arange(0, SELECTOR_AT - 2048, size)
    images = np.zeros((2, SELECTOR_AT + 4096), np.uint8)
    for image, values in enumerate((at // 128, at % 128 // size)):
        images[image, : len(at) * size] = octets(code(values, form.a), bits)
    if selector is None:
        selector = np.zeros((form.n if of_a else 64, form.k), np.int64)
        selector[np.arange(form.k), np.arange(form.k)] = 1
    selector = np.stack([selector, selector])
    strides = place(images, SELECTOR_AT, code(selector, form.a), bits, False)
    other = descriptor(SELECTOR_AT, *(strides[::-1] if swapped else strides))
    cases = np.zeros(2 * len(layouts), RECORD)
    bitfields = np.repeat(np.array([descriptor(*layout) for layout in layouts], np.uint64), 2)
    cases["a"], cases["b"] = (bitfields, other) if of_a else (other, bitfields)
    cases["image"] = np.arange(len(cases)) % 2
    count = len(cases)
    nothing = np.zeros((count, form.words, 128), np.uint32)
    return Probe(
        f"{form.name}_{label}",
        form,
        cases,
        images,
        nothing,
        np.zeros((count, 4, 128), np.uint32),
        np.zeros((count, 128), np.uint32) if m is None else np.repeat(m, count, axis=0),
    )


def read_at(words: Array, form: Form) -> Array:
    """Addresses from the words of `addresses`: uint16 [layouts, words, 128]."""
    values = (words if form.integer else words.view(np.float32)).astype(np.int64)
    size = BITS[form.a] // 8
    return (values[0::2] * 128 + values[1::2] * size).astype(np.uint16)


def addresses_of_a(swapped: bool) -> list[Probe]:
    """K-major A of 16, 8 and 32 bits."""
    everything = rows_of(range(4), range(8), (0, 16, 32, 64, 96))
    some = rows_of(range(4), (0, 3), (0, 32))
    return [
        addresses(FORMS["n16_f32_f16_f16"], "a", everything, swapped),
        addresses(FORMS["n16_f32_f16_f16"], "a_strides", strides_of(), swapped),
        addresses(FORMS["n32_s32_u8_u8"], "a", some, swapped),
        addresses(FORMS["n8_f32_tf32_tf32"], "a", some, swapped),
    ]


def addresses_of_b(swapped: bool) -> list[Probe]:
    """K-major B."""
    some = rows_of(range(4), (0, 1, 5), (0, 32, 64))
    return [
        addresses(FORMS["n128_f32_f16_f16"], "b", some, swapped),
        addresses(FORMS["n64_f32_f16_f16"], "b_strides", strides_of(), swapped),
        addresses(FORMS["n32_s32_u8_u8"], "b", some, swapped),
        addresses(FORMS["n8_f32_tf32_tf32"], "b", some, swapped),
    ]


def addresses_in_rows(swapped: bool) -> list[Probe]:
    """MN-major operands that start inside a row of the pattern, whose end they may run over."""
    layouts = [
        (row * SPANS[swizzle] + step, lbo, sbo, swizzle, base)
        for swizzle, base, row in product((1, 2, 3), (0, 3), (0, 3))
        for step in range(16, SPANS[swizzle], 16)
        for lbo, sbo in ((1024, 2048), (2048, 1024))
    ]
    return [
        addresses(FORMS["n16_f32_f16_f16_mna"], "a", layouts, swapped),
        addresses(FORMS["n16_f32_f16_f16_mnb"], "b", layouts, swapped),
        addresses(FORMS["n128_f32_f16_f16_mnb"], "b", layouts, swapped),
    ]


def addresses_transposed(swapped: bool) -> list[Probe]:
    """MN-major A, and B."""
    return [
        addresses(FORMS["n16_f32_f16_f16_mna"], "a", transposed_of(), swapped),
        addresses(FORMS["n16_f32_bf16_bf16_mna"], "a", transposed_of(), swapped),
        addresses(FORMS["n128_f32_f16_f16_mnb"], "b", transposed_of(), swapped),
        addresses(FORMS["n16_f32_f16_f16_mnb"], "b", transposed_of(), swapped),
    ]


# --- all -----------------------------------------------------------------------------------------


def _dense() -> list[Form]:
    return [form for form in FORMS.values() if form.selector is None]


def _summed() -> list[Form]:
    plain = [f for f in _dense() if f.n == 8 and not f.integer]
    return [f for f in plain if not (f.registers or any(f.negate) or any(f.transpose))]


GROUPS: dict[str, Callable[[bool], list[Probe]]] = {
    "exact": lambda swapped: [exact(form, swapped) for form in _dense()],
    "sums": lambda swapped: [sums(form, swapped) for form in _summed()],
    "addresses_of_a": addresses_of_a,
    "addresses_of_b": addresses_of_b,
    "addresses_transposed": addresses_transposed,
    "addresses_in_rows": addresses_in_rows,
}
"""Launched in processes of their own: one that fails leaves the others' results."""

"""The data of the probes of `wgmma.mma_async.sp`: a sparse A, of which half is stored.

Each code of four bits of the metadata says which k of a chunk of a row are stored: two of four, of
tf32 one of two. Needs numpy alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    from . import wgmma_cases
    from .wgmma_cases import (
        A_AT,
        B_AT,
        RECORD,
        Array,
        Probe,
        addresses,
        code,
        descriptor,
        place,
        rows_of,
        smallest,
        strides_of,
        to_a,
        to_d,
        transposed_of,
    )
    from .wgmma_forms import BITS, FORMS, Form
except ImportError:  # beside one another, where no package is installed
    import wgmma_cases  # type: ignore[no-redef]
    from wgmma_cases import (  # type: ignore[no-redef]
        A_AT,
        B_AT,
        RECORD,
        Array,
        Probe,
        addresses,
        code,
        descriptor,
        place,
        rows_of,
        smallest,
        strides_of,
        to_a,
        to_d,
        transposed_of,
    )
    from wgmma_forms import BITS, FORMS, Form  # type: ignore[no-redef]

ORDERED = np.array([0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110])
"""Two of four, the lower one in the lower bits."""
ANY_ORDER = np.array([low | high << 2 for low in range(4) for high in range(4) if low != high])
SINGLES = np.array([0b0100, 0b1110])
"""One of two."""


# --- metadata ------------------------------------------------------------------------------------


def places(form: Form) -> tuple[Array, Array]:
    """(thread, bit) of the code of every chunk: [64, chunks] each.

    With four threads to a row of 8 (and to that row + 8). 16 and 32 bits: the selector's two
    threads have four chunks each, of the upper row in the upper half of the word. 8 bits: threads 0
    and 2 have eight chunks of the lower row, 1 and 3 of the upper one.
    """
    row, chunk = np.arange(64)[:, None], np.arange(form.k // form.chunk)
    first, upper = 32 * (row // 16) + 4 * (row % 8), row % 16 // 8
    if BITS[form.a] == 8:
        return first + 2 * (chunk // 8) + upper, 4 * (chunk % 8) + 0 * row
    assert form.selector is not None
    return first + 2 * form.selector + chunk // 4, 4 * (chunk % 4) + 16 * upper


def words_of(codes: Array, form: Form, rest: Array) -> Array:
    """Codes [cases, 64, chunks] as words [cases, 128]; rest: of threads that have none."""
    thread, bit = places(form)
    held = np.zeros((len(codes), 128), np.int64)
    for case in range(len(codes)):
        np.bitwise_or.at(held[case], thread, codes[case] << bit)
    mine = np.isin(np.arange(128), thread)
    return np.where(mine, held, rest).astype(np.uint32)


def stored_k(codes: Array, form: Form) -> Array:
    """The k of every stored element: [cases, 64, k / 2]."""
    start = form.chunk * np.arange(codes.shape[-1])
    if form.chunk == 2:
        return start + (codes == 0b1110)
    pair = start[:, None] + np.stack([codes & 3, codes >> 2], axis=-1)
    return pair.reshape(*codes.shape[:-1], -1)


def drawn(rng: Any, form: Form, count: int, among: Array = ORDERED) -> tuple[Array, Array]:
    """Random codes [count, 64, chunks], and their words; what does not count is random, too."""
    shape = (count, 64, form.k // form.chunk)
    codes = rng.choice(SINGLES if form.chunk == 2 else among, shape)
    return codes, words_of(codes, form, rng.integers(0, 1 << 32, (count, 128)))


# --- products ------------------------------------------------------------------------------------


def sparse(form: Form, swapped: bool = False, among: Array = ORDERED) -> Probe:
    """Random metadata. First A of ones and B of weights, over garbage in D: a column of its own
    tells each chunk's choice, with N of 16 and more of 16 chunks. Then integers, and D counts."""
    rng = np.random.default_rng([3, len(among), zlib.crc32(form.name.encode())])
    half = 8 if form.n <= 16 else 2
    count, bits = 2 * half, BITS[form.a]
    codes, m = drawn(rng, form, count, among)
    a = np.ones((count, 64, form.stored), np.int64)
    b = np.zeros((count, form.n, form.k), np.int64)
    k = np.arange(form.k)
    b[:half, k // form.chunk % form.n, k] = 4 ** (k % form.chunk)
    a[half:] = smallest(form.a, rng, a[half:].shape)
    b[half:] = smallest(form.b, rng, b[half:].shape)
    c = rng.integers(-9, 10, (count, 64, form.n))
    if form.integer:
        c = np.where(c & 1, (1 << 31) - 1 - c**2, c**2 - (1 << 31))
    before = code(c, form.d)
    before[:half] = 0x7E7E if form.d == "f16" else 0x7FC00001
    whole = np.zeros((count, 64, form.k), np.int64)
    np.put_along_axis(whole, stored_k(codes, form), a, axis=-1)
    total = whole @ b.swapaxes(1, 2) * (-1) ** sum(form.negate)
    total[half:] += c[half:]
    if form.saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    images = np.zeros((count, B_AT + form.n * 64), np.uint8)
    a_codes = code(a, form.a)
    pairs = [place(images, A_AT, a_codes, bits, form.transpose[0])]
    pairs.append(place(images, B_AT, code(b, form.b), bits, form.transpose[1]))
    if swapped:
        pairs = [(sbo, lbo) for lbo, sbo in pairs]
    cases = np.zeros(count, RECORD)
    cases["a"], cases["b"] = descriptor(A_AT, *pairs[0]), descriptor(B_AT, *pairs[1])
    cases["image"] = np.arange(count)
    cases["scale_d"][half:] = 1
    return Probe(
        form.name, form, cases, images, to_d(before, form), to_a(a_codes, bits), m,
        to_d(code(total, form.d), form),
    )  # fmt: skip


def any_order(form: Form, swapped: bool = False) -> Probe:
    """Metadata whose two places of a chunk come in either order."""
    return sparse(form, swapped, ANY_ORDER)


def sparse_sums(form: Form, swapped: bool = False) -> Probe:
    """Every flavour of operands; B has them where A has zeros, too."""
    return wgmma_cases.sums(form, swapped, lambda rng, form, count: drawn(rng, form, count)[1])


# --- addresses -----------------------------------------------------------------------------------


def _of_a(form: Form, label: str, layouts: list[wgmma_cases.Layout], swapped: bool) -> Probe:
    """All rows store the first elements of their chunks; row n of B has a 1 at element n's k."""
    codes = np.full((1, 64, form.k // form.chunk), 0b0100)
    selector = np.zeros((form.n, form.k), np.int64)
    selector[np.arange(form.stored), stored_k(codes, form)[0, 0]] = 1
    m = words_of(codes, form, np.zeros((1, 128)))
    return addresses(form, f"a{label}", layouts, swapped, selector, m)


def _of_b(form: Form, label: str, layouts: list[wgmma_cases.Layout], swapped: bool) -> Probe:
    """Row k of A has a 1 at k."""
    k = np.arange(64) % form.k
    late = k % form.chunk >= form.chunk // 2
    codes = np.where(late, 0b1110, 0b0100)[:, None] + np.zeros(form.k // form.chunk, np.int64)
    selector = stored_k(codes[None], form)[0] == k[:, None]
    selector &= np.arange(64)[:, None] < form.k
    m = words_of(codes[None], form, np.zeros((1, 128)))
    return addresses(form, f"b{label}", layouts, swapped, selector.astype(np.int64), m)


def addresses_sparse(swapped: bool) -> list[Probe]:
    """A of 32 bytes of a row, B of 64."""
    few = rows_of(range(4), (0, 3), (0, 32))
    some = rows_of(range(4), (0, 1, 5), (0, 16, 32, 64, 96))
    return [
        _of_a(FORMS["n16_f32_f16_f16_sp0"], "", few, swapped),
        _of_a(FORMS["n32_s32_u8_u8_sp0"], "", few, swapped),
        _of_a(FORMS["n8_f32_tf32_tf32_sp0"], "", few, swapped),
        _of_a(FORMS["n16_f32_f16_f16_mna_sp0"], "", transposed_of(), swapped),
        _of_b(FORMS["n32_f32_f16_f16_sp0"], "", some, swapped),
        _of_b(FORMS["n32_f32_f16_f16_sp0"], "_strides", strides_of(), swapped),
        _of_b(FORMS["n32_s32_u8_u8_sp0"], "", some, swapped),
        _of_b(FORMS["n16_f32_tf32_tf32_sp0"], "", some, swapped),
        _of_b(FORMS["n64_f32_f16_f16_mnb_sp0"], "", transposed_of(), swapped),
        _of_b(FORMS["n16_f32_bf16_bf16_mnb_sp0"], "", transposed_of(), swapped),
    ]


# --- all -----------------------------------------------------------------------------------------

SPARSE = [form for form in FORMS.values() if form.selector is not None]
UNORDERED = ("n8_f32_f16_f16_sp0", "n8_f32_f16_f16_rs_sp1", "n8_f32_e4m3_e4m3_sp0",
             "n8_s32_s8_s8_sp0")  # fmt: skip
SUMMED = [
    form
    for form in SPARSE
    if form.n == 8
    and form.selector == 0
    and not (form.integer or form.registers)
    and not (any(form.negate) or any(form.transpose))
]

GROUPS: dict[str, Callable[[bool], list[Probe]]] = {
    "sparse": lambda swapped: [sparse(form, swapped) for form in SPARSE],
    "any_order": lambda swapped: [any_order(FORMS[name], swapped) for name in UNORDERED],
    "sparse_sums": lambda swapped: [sparse_sums(form, swapped) for form in SUMMED],
    "addresses_sparse": addresses_sparse,
}

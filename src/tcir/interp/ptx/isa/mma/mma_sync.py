"""mma.sync and mma.sp (PTX ISA 9.7.14.5, 9.7.14.6).

Fragments in registers are converted to matrices and multiplied, and the result is converted back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Unknown, octets, words
from tcir.interp.ptx.isa.values.fragments import (
    elements,
    fragment_a,
    fragment_b,
    fragment_c,
    quad,
    volta_accumulator,
    volta_operand,
)
from tcir.interp.ptx.isa.values.rational import directed64, fma64, fused_excess
from tcir.interp.ptx.isa.values.rounding import add_odd, decode_float, encode_float, pass_on_nan
from tcir.interp.ptx.isa.values.sparse import metadata, positions
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Compute, Op
from tcir.interp.ptx.registers import view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES
from tcir.interp.ptx.warp import Warp
from tcir.machine import NotModelled
from tcir.machine.numerics.warp_mma import TURING, VOLTA, generation, warp_mma
from tcir.machine.numerics.warp_mma_exact import bit_sum, double_sum, integer_sum, integer_values

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8,
         "s4": 4, "u4": 4, "b1": 1, "f64": 64}  # fmt: skip
#: The shapes by bits of an element of A; k of a sparse A counts the zeros.
_SHAPES = {
    64: ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
    32: ("m16n8k4", "m16n8k8"),
    16: ("m8n8k4", "m16n8k8", "m16n8k16"),
    8: ("m8n8k16", "m16n8k16", "m16n8k32"),
    4: ("m8n8k32", "m16n8k32", "m16n8k64"),
    1: ("m8n8k128", "m16n8k128", "m16n8k256"),
}
_SPARSE = {32: (8, 16), 16: (16, 32), 8: (32, 64), 4: (64, 128)}
_ELSEWHERE = {"block_scale", "e2m1", "e2m3", "e3m2"}
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


@dataclass(frozen=True)
class MmaSyncForm:
    """Shape and element types of one mma.sync."""

    m: int
    k: int
    d: str
    a: str
    b: str
    c: str
    saturate: bool
    rows: tuple[bool, bool]  # A is .row, B is .row
    n: int = 8

    @property
    def bits(self) -> int:
        return BITS[self.a]


def _form(d: Decode, sparse: bool) -> MmaSyncForm:
    """Takes the modifiers; rejects combinations of types and shapes that do not exist."""
    if _ELSEWHERE & set(d.modifiers):
        raise d.incomplete(
            "no rule for block-scaled mma.sync and 4- and 6-bit floats: they are instructions of "
            "sm_120a, not of sm_100a"
        )
    d.require("aligned")
    d.skip("kind::f8f6f4")
    shape = next((m for m in d.modifiers if _SHAPE.fullmatch(m)), "")
    d.take(shape)
    layouts = [m for m in d.modifiers if m in ("row", "col")]
    d.modifiers = [m for m in d.modifiers if m not in ("row", "col")]
    saturate = d.take("satfinite") is not None
    names = [m for m in d.modifiers if m in BITS or m in ("f32", "s32")]
    d.modifiers = [m for m in d.modifiers if m not in names]
    if len(names) != 4 or len(layouts) != 2:
        raise d.malformed("expected two layouts and four types")
    d_type, a_type, b_type, c_type = names
    if a_type not in BITS or b_type not in BITS:
        raise d.malformed(f"expected operand types, got .{a_type} and .{b_type}")
    bits = BITS[a_type]
    legal = [f"m16n8k{k}" for k in _SPARSE.get(bits, ())] if sparse else _SHAPES[bits]
    if shape not in legal or sparse and a_type in ("e4m3", "e5m2") and shape != "m16n8k64":
        raise d.malformed(
            f"expected {', '.join(legal) or 'no sparse form'} of .{a_type}, got {shape}"
        )
    found = _SHAPE.fullmatch(shape)
    assert found is not None
    m, k = int(found[1]), int(found[3])
    volta = bits == 16 and m == 8
    if bits == 8 and m == 8 and a_type[0] not in "su" or bits != BITS[b_type]:
        raise d.malformed(
            f"expected operands of one width for {shape}, got .{a_type} and .{b_type}"
        )
    one = {64: "f64", 32: "f32", 4: "s32", 1: "s32"}.get(bits)
    wanted = (one,) if one else ("s32",) if a_type in ("s8", "u8") else ("f32", "f16")
    if a_type == "bf16" or sparse and a_type in ("e4m3", "e5m2"):
        wanted = ("f32",)
    mixed = volta and (d_type, c_type) == ("f32", "f16")
    if d_type not in wanted or d_type != c_type and not mixed:
        raise d.malformed(f"expected .{' or .'.join(wanted)} for C and D, got .{c_type}, .{d_type}")
    if saturate and (d_type != "s32" or bits == 1):
        raise d.malformed(f"expected no .satfinite with .{a_type}")
    if layouts != ["row", "col"] and not volta:
        raise d.malformed(f"expected .row.col for {shape}")
    rows = (layouts[0] == "row", layouts[1] == "row")
    return MmaSyncForm(m, k, d_type, a_type, b_type, c_type, saturate, rows)


def registers_of(count: int, bits: int) -> int:
    """Number of registers in which one lane holds its share of a matrix of `count` elements with
    `bits` bits each.
    """
    return max(1, count * bits // 32 // max(32, bits))


def fragments_of(
    d: Decode, counts: list[int], wide: bool
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Slots of the operand d, and of the operands a, b and c. counts: number of registers of each
    operand. wide: the registers have 64 bits, not 32
    """
    kind = TYPES["b64" if wide else "b32"]
    targets = [d.dst(o, kind) for o in d.vector(d.operands[0], counts[0])]
    sources = [
        tuple(d.src(o, kind) for o in d.vector(operand, n))
        for operand, n in zip(d.operands[1:4], counts[1:], strict=True)
    ]
    return targets, sources


Matrices = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Spread = Callable[..., np.ndarray]
"""Maps the undefined bits of the words of a, b, c to those of d, all [registers, 32]."""


def collective(
    d: Decode,
    wide: bool,
    targets: list[int],
    sources: list[tuple[int, ...]],
    fn: Callable[..., np.ndarray],
    products: int,
    spread: Spread | None = None,
    together: bool = False,
) -> Op:
    """Creates an op that calls `fn` with the words of a, b, c (and further operands) and writes the
    returned words to d. The words of an operand are an array [registers, 32].

    products: multiplications per instruction
    spread:   computes the undefined bits of d; None: one undefined bit makes all of d undefined
    together: `fn` also takes operands of several warps at once, [warps, registers, 32]
    """
    n, site = view("u64" if wide else "u32"), d.site
    every = tuple(s for operand in sources for s in operand)

    def undefined(w: Warp, m: int) -> list[Unknown | None]:
        """Undefined bits of each target register."""
        found = {s: w.undefined(s, m, site) for s in every}
        origin = next(u.origin for u in found.values() if u is not None)
        nothing = np.zeros((32, 8 if wide else 4), np.uint8)
        held = {s: words(nothing if u is None else u.bits) for s, u in found.items()}
        if spread is None:
            lost = np.full((len(targets), 32), -1, f"i{nothing.shape[1]}")
        else:
            lost = spread(*(np.stack([held[s] for s in operand]) for operand in sources))
        return [Unknown(octets(row), origin) for row in lost]

    def run(w: Warp, m: int) -> None:
        lost: list[Unknown | None] = [None] * len(targets)
        if any(w.undef[source] & m for source in every):
            lost = undefined(w, m)
        v = w.v[n]
        result = fn(*(np.stack([v[s] for s in operand]) for operand in sources))
        lanes = LANE_INDICES[m]
        for target, row, unknown in zip(targets, result, lost, strict=True):
            v[target][lanes] = row[lanes]
            w.define(target, m, unknown)
        counters = w.agent.machine.counters
        counters.mma += 1
        counters.products += products

    lengths = [len(operand) for operand in sources]

    def of_warps(*registers: np.ndarray) -> tuple[np.ndarray, ...]:
        """Applies `fn` to many warps at once; each register is an array [warps * 32]."""
        rows = iter([row.reshape(-1, 32) for row in registers])
        operands = [np.stack([next(rows) for _ in range(n)], axis=1) for n in lengths]
        if together:
            result = fn(*operands)
        else:
            result = np.stack([fn(*own) for own in zip(*operands, strict=True)])
        return tuple(result[:, n].reshape(-1) for n in range(len(targets)))

    op = d.plain(run, aligned=True)
    moved = tuple((s, n) for s in every), tuple((t, n) for t in targets)
    op.compute = Compute(of_warps, *moved, across=True)
    return op


def multiplied_by(d: Decode, form: MmaSyncForm, operation: str | None) -> Matrices:
    """Returns D = A · B + C, given A [M, K] and B [8, K] as codes and C [M, 8] as words."""
    if form.a == "b1":
        assert operation is not None
        return lambda a, b, c: bit_sum(a, b, c, operation)
    if form.bits == 4:
        return lambda a, b, c: integer_sum(
            integer_values(a, form.a), integer_values(b, form.b), c, form.saturate
        )
    try:
        part = generation(d.target)
    except NotModelled as missing:
        raise d.incomplete(missing.what) from None
    return lambda a, b, c: warp_mma(
        a, b, c, a_type=form.a, b_type=form.b, d_type=form.d, part=part, saturate=form.saturate
    )


def dense(form: MmaSyncForm, multiply: Matrices) -> Matrices:
    """Computes D from the words of a, b and c; `fragments` gives the positions of their
    elements.
    """
    m, n, k, bits, half = form.m, form.n, form.k, form.bits, form.d == "f16"
    a_at, b_at, c_at = fragment_a(bits, m, k), fragment_b(bits, k, n), fragment_c(m, n)
    code = {32: np.uint32, 16: np.uint16}.get(bits, np.uint8)

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        warps = a.shape[:-2]
        matrix_a, matrix_b = np.zeros((*warps, m, k), code), np.zeros((*warps, n, k), code)
        matrix_c = np.zeros((*warps, m, n), np.uint32)
        matrix_a[(..., *a_at)] = elements(a, bits)[..., : len(a_at[0]), :]
        matrix_b[..., b_at[1], b_at[0]] = elements(b, bits)[..., : len(b_at[0]), :]
        matrix_c[(..., *c_at)] = elements(c, 16 if form.c == "f16" else 32)
        return _packed(multiply(matrix_a, matrix_b, matrix_c)[(..., *c_at)], half)

    return run


def dense_spread(form: MmaSyncForm) -> Spread:
    """Computes the undefined bits of D: an undefined bit in a row of A makes that row of D
    undefined, one in a column of B that column of D, and one in an element of C that element of D.
    """
    m, n, k, bits, half = form.m, form.n, form.k, form.bits, form.d == "f16"
    a_at, b_at, c_at = fragment_a(bits, m, k), fragment_b(bits, k, n), fragment_c(m, n)

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        rows, columns, lost = np.zeros(m, bool), np.zeros(n, bool), np.zeros((m, n), bool)
        np.logical_or.at(rows, a_at[0], elements(a, bits)[: len(a_at[0])] != 0)
        np.logical_or.at(columns, b_at[1], elements(b, bits)[: len(b_at[0])] != 0)
        lost[c_at] = elements(c, 16 if form.c == "f16" else 32) != 0
        lost |= rows[:, None] | columns
        ones = np.where(lost[c_at], np.uint32(0xFFFF if half else 0xFFFFFFFF), np.uint32(0))
        return _packed(ones, half)

    return run


def _packed(result: np.ndarray, half: bool) -> np.ndarray:
    return result[..., 0::2, :] | result[..., 1::2, :] << np.uint32(16) if half else result


def _volta(form: MmaSyncForm) -> Matrices:
    """m8n8k4: four products of 8 x 8 x 4; the lanes of each hold them as `fragments` says.

    Tensor cores since Ampere lack it. ptxas spells it with f32 instructions: a chain of fused
    multiply-adds from zero, then C is added.
    """
    a_at, b_at = volta_operand(not form.rows[0]), volta_operand(form.rows[1])
    c_at, d_at = volta_accumulator(form.c == "f16"), volta_accumulator(form.d == "f16")
    groups = [np.flatnonzero(quad(np.arange(32)) == n) for n in range(4)]

    def single(exact: np.ndarray) -> np.ndarray:
        return decode_float(encode_float(exact, "f32"), "f32")

    def multiply(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        total = np.zeros((8, 8))
        for k in range(4):
            total = single(add_odd(a[:, k, None] * b[None, :, k], total))
        return single(add_odd(c, total))

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        held = [decode_float(elements(a, 16), "f16"), decode_float(elements(b, 16), "f16")]
        codes = elements(c, 16 if form.c == "f16" else 32)
        held.append(decode_float(codes, form.c))
        result = np.zeros((8, 32))
        for lanes in groups:
            matrices = [np.zeros((8, 4)), np.zeros((8, 4)), np.zeros((8, 8))]
            for matrix, at, values in zip(matrices, (a_at, b_at, c_at), held, strict=True):
                matrix[at[0][:, lanes], at[1][:, lanes]] = values[:, lanes]
            result[:, lanes] = multiply(*matrices)[d_at[0][:, lanes], d_at[1][:, lanes]]
        return _packed(encode_float(result, form.d).astype(np.uint32), form.d == "f16")

    return run


def doubles(form: MmaSyncForm, mode: str) -> Matrices:
    """Multiplies and adds matrices of f64; each result is rounded by `mode`."""
    m, k = form.m, form.k
    a_at, b_at, c_at = fragment_a(64, m, k), fragment_b(64, k), fragment_c(m)

    def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        if mode == "rm":  # where -0 is the sum of opposites
            exact = -fma64(-a, b, -c)
        else:
            exact = fma64(a, b, c)
        if mode != "rn":
            exact = directed64(exact, fused_excess, mode, a, b, c)
        words = (x.copy().view(np.uint64) for x in (a, b, c))
        return pass_on_nan(encode_float(exact, "f64"), *words).view(np.float64)

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        matrix_a, matrix_b = np.zeros((m, k)), np.zeros((8, k))
        matrix_c = np.zeros((m, 8))
        matrix_a[a_at], matrix_c[c_at] = a.view(np.float64), c.view(np.float64)
        matrix_b[b_at[1], b_at[0]] = b.view(np.float64)
        return double_sum(matrix_a, matrix_b, matrix_c, fma)[c_at].view(np.uint64)

    return run


@instruction("mma.sync")
def mma(d: Decode) -> Op:
    """`mma.sync.aligned.SHAPE.alayout.blayout{…}.dtype.atype.btype.ctype d, a, b, c`"""
    mode = d.take("rn", "rz", "rm", "rp")
    operation = d.take("xor", "and") if d.take("popc") else None
    form = _form(d, False)
    if mode and form.a != "f64" or (form.a == "b1") != (operation is not None):
        raise d.malformed("expected a rounding with .f64 only, .xor.popc or .and.popc with .b1")
    d.done(4)
    m, k, wide = form.m, form.k, form.a == "f64"
    products = m * 8 * k
    sizes = {"f16": 16, "f64": 64}
    of_d, of_c = (registers_of(m * 8, sizes.get(each, 32)) for each in (form.d, form.c))
    counts = [of_d, *(registers_of(x * k, form.bits) for x in (m, 8)), of_c]
    volta = form.bits == 16 and m == 8
    if volta and generation(d.target) in (VOLTA, TURING):
        raise d.incomplete("no rule for m8n8k4 of sm_70 and sm_75, whose tensor cores have it")
    if volta:
        counts = [8 if form.d == "f32" else 4, 2, 2, 8 if form.c == "f32" else 4]
    targets, sources = fragments_of(d, counts, wide)
    if wide:
        return collective(d, True, targets, sources, doubles(form, mode or "rn"), products)
    if volta:
        return collective(d, False, targets, sources, _volta(form), 4 * products)
    run = dense(form, multiplied_by(d, form, operation))
    together = form.a in ("f16", "bf16", "tf32")
    return collective(d, False, targets, sources, run, products, dense_spread(form), together)


@instruction("mma.sp.sync", "mma.sp::ordered_metadata.sync")
def sparse(d: Decode) -> Op:
    """mma.sp, `d, a, b, c, e, selector`: A contains only the elements that a sparsity pattern
    keeps.

    The pattern is 2:4, but 1:2 for tf32, and 4:8 in pairs for 4-bit types. e contains the positions
    of the kept elements (`values.sparse`).
    """
    ordered = "ordered" in d.name
    form = _form(d, True)
    d.done(6)
    k, bits, half = form.k, form.bits, form.d == "f16"
    counts = [
        2 if half else 4,
        registers_of(8 * k, bits),
        registers_of(8 * k, bits),
        2 if half else 4,
    ]
    targets, sources = fragments_of(d, counts, False)
    sources.append((d.src(d.operands[4], TYPES["b32"]),))
    selector = d.immediate(d.operands[5])
    chunk = {32: 2, 4: 8}.get(bits, 4)
    chunks = k // chunk
    limit = {4: 4, 8: 2, 16: 1}[chunks]
    if not 0 <= selector < limit:
        raise d.malformed(f"expected a sparsity selector below {limit}, got {selector}")
    multiply = multiplied_by(d, form, None)
    a_at, b_at, c_at = fragment_a(bits, 16, k // 2), fragment_b(bits, k), fragment_c(16)
    code = {32: np.uint32, 16: np.uint16}.get(bits, np.uint8)
    site = d.site

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray, e: np.ndarray) -> np.ndarray:
        matrix_a, matrix_b = np.zeros((16, k // 2), code), np.zeros((8, k), code)
        matrix_c = np.zeros((16, 8), np.uint32)
        matrix_a[a_at] = elements(a, bits)
        matrix_b[b_at[1], b_at[0]] = elements(b, bits)
        matrix_c[c_at] = elements(c, 16 if half else 32)
        places = positions(metadata(e[0], bits, chunks, selector), bits, ordered, site)
        result = np.empty((16, 8), np.uint32)
        for row in range(16):
            one = slice(row, row + 1)
            held = np.ascontiguousarray(matrix_b[:, places[row]])
            result[one] = multiply(matrix_a[one], held, matrix_c[one])
        return _packed(result[c_at], half)

    return collective(d, False, targets, sources, run, 16 * 8 * k)

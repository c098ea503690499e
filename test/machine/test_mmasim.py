"""The machine's numbers against the public package `mmasim` (arXiv 2511.10909). Opt-in.

    pip install torch mmasim && pytest -s -m mmasim test/machine/test_mmasim.py

takes about five minutes and prints one row per instruction form: dot products, those that differ
under the machine's default constants, those that differ once the open constants have MMA-Sim's
values (which must be none), and in which inputs the former are.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tcir.machine.numerics import warp_mma
from tcir.machine.numerics.block_scaled import Fp4Params
from tcir.machine.numerics.formats import decode, decode_scale
from tcir.machine.numerics.fused import FusedParams

from .products import block_scaled_mma, fused_mma

torch = pytest.importorskip("torch", reason="torch is not installed: MMA-Sim needs it")
pytest.importorskip("mmasim", reason="mmasim is not installed: pip install torch mmasim")
from mmasim.nv_ptx import (  # noqa: E402
    MMA,
    TCGen05MMA,
    TCGen05MMABlockScale,
)

pytestmark = pytest.mark.mmasim

# type: exponent bits, mantissa bits, bias, ignored low bits
LAYOUT = {
    "f16": (5, 10, 15, 0),
    "bf16": (8, 7, 127, 0),
    "tf32": (8, 10, 127, 13),
    "f32": (8, 23, 127, 0),
    "e5m2": (5, 2, 15, 0),
    "e4m3": (4, 3, 7, 0),
    "e3m2": (3, 2, 3, 0),
    "e2m3": (2, 3, 1, 0),
    "e2m1": (2, 1, 1, 0),
}
WORD = {"f16": np.uint16, "bf16": np.uint16, "tf32": np.uint32, "f32": np.uint32}
TORCH = {
    "f16": (np.int16, torch.float16),
    "bf16": (np.int16, torch.bfloat16),
    "tf32": (np.int32, torch.float32),
    "f32": (np.int32, torch.float32),
    "e5m2": (np.uint8, torch.float8_e5m2),
    "e4m3": (np.uint8, torch.float8_e4m3fn),
    "ue8m0": (np.uint8, torch.float8_e8m0fnu),
    "ue4m3": (np.uint8, torch.float8_e4m3fn),
}
NARROW = ("e5m2", "e4m3", "e3m2", "e2m3", "e2m1")
FLAVOURS = (
    "spanning",
    "near",
    "cancelling",
    "subnormal",
    "bottom",
    "overflow",
    "special",
    "sparse",
)
M = N = 128
"""Dot products of one flavour: M · N, so 8 · 128 · 128 = 131072 of one form."""


def tensor(codes, name):
    """Codes as a torch tensor of MMA-Sim's type."""
    if name in TORCH:
        word, dtype = TORCH[name]
        return torch.from_numpy(
            np.ascontiguousarray(codes).astype(WORD.get(name, np.uint8)).view(word)
        ).view(dtype)
    # MMA-Sim holds the narrow types as the containers of mma.sync: e2m1 in bits 5..2.
    return torch.from_numpy(np.ascontiguousarray(codes) << (2 if name == "e2m1" else 0))


def packed(codes):
    """e2m1 two per byte in MMA-Sim's order, the even k in the high half."""
    return torch.from_numpy(np.ascontiguousarray(codes[:, ::2] << 4 | codes[:, 1::2]))


def sign_bit(name):
    e, m, _, ignored = LAYOUT[name]
    return 1 << (e + m + ignored)


def finite(rng, name, shape, low, high):
    """Codes with the exponent field in [low, high), random mantissa and sign."""
    e, m, _, ignored = LAYOUT[name]
    top = (1 << e) - (1 if name in ("f16", "bf16", "tf32", "f32", "e5m2") else 0)
    field = rng.integers(max(low, 0), max(min(high, top), max(low, 0) + 1), shape)
    codes = field << (m + ignored) | rng.integers(0, 1 << (m + ignored), shape)
    if name == "e4m3":
        codes[codes == 0x7F] = 0x7E
    codes |= rng.integers(0, 2, shape) * sign_bit(name)
    return codes.astype(WORD.get(name, np.uint8))


def operand(rng, name, rows, k, flavour):
    e, m, bias, ignored = LAYOUT[name]
    top = (1 << e) - 1
    low, high = {
        "near": (bias - 3, bias + 4),
        "cancelling": (bias - 3, bias + 4),
        "subnormal": (0, 2),
        "bottom": (bias - 76, bias - 67) if e == 8 else (0, 3),
        "overflow": (top - 3, top + 1),
    }.get(flavour, (0, top + 1))
    codes = finite(rng, name, (rows, k), low, high)
    if flavour in ("subnormal", "bottom", "sparse"):
        codes[rng.random(codes.shape) < {"sparse": 0.9}.get(flavour, 0.3)] = 0
    if flavour == "special":
        inf = top << (m + ignored)
        values = {
            "e4m3": [0x7F, 0xFF, 0, 0x80],
            **{narrow: [0, sign_bit(name)] for narrow in ("e3m2", "e2m3", "e2m1")},
        }.get(name, [inf, inf | sign_bit(name), inf | 1 << ignored, 0])
        rare = rng.random(codes.shape) < 0.3 / k
        codes[rare] = rng.choice(np.array(values), int(rare.sum())).astype(codes.dtype)
    return codes


def accumulator(rng, d_type, shape, x, flavour):
    """D near the raw exponent `x` of the products, some zeros; specials where asked for."""
    e, m, bias, _ = LAYOUT[d_type]
    top = (1 << e) - 1
    centre = int(np.clip(bias + x, 0, top - 1))
    spread = 40 if flavour == "spanning" else 14
    d = finite(rng, d_type, shape, centre - spread, centre + spread).astype(np.uint32)
    d[:, : shape[1] // 8] = 0
    d[:, shape[1] // 8] = sign_bit(d_type)
    if flavour == "special":
        inf = top << m
        d[:, 40:44] = [inf, inf | sign_bit(d_type), inf | 3, inf | sign_bit(d_type) | 1 << (m - 1)]
    return d


def operands(rng, a_type, b_type, d_type, k, flavour, m=M, n=N):
    a, b = operand(rng, a_type, m, k, flavour), operand(rng, b_type, n, k, flavour)
    if flavour == "cancelling":
        half = k // 2
        a[:, half:], b[:, half:] = a[:, :half] ^ sign_bit(a_type), b[:, :half]
        a[np.arange(m), rng.integers(0, k, m)] ^= 1 << LAYOUT[a_type][3]
    bias = LAYOUT[a_type][2] + LAYOUT[b_type][2]
    x = {"subnormal": 2 - bias, "bottom": 8 - bias, "overflow": bias}.get(flavour, 0)
    d = accumulator(rng, d_type, (m, n), x, flavour)
    if flavour == "bottom":
        d[:, : 3 * n // 4] = 0
    return a, b, d


def leftovers(rng, a, b, scale, count, d):
    """Scales and D such that D cancels what has large scales; the rest is at the window's edge.

    The two rules for fp4 sums differ only there.
    """
    sa, sb = (rng.integers(118, 126, (len(x), count)).astype(np.uint8) for x in (a, b))
    for scales in (sa, sb):
        if scale == "ue8m0":
            scales[:, 1::2] -= rng.integers(14, 21, scales[:, 1::2].shape).astype(np.uint8)
        else:
            scales[:, 1::2] = rng.integers(1, 12, scales[:, 1::2].shape)
    values = [
        decode(x, "e2m1")[0] * np.repeat(decode_scale(s, scale)[0], 64 // count, axis=1)
        for x, s in ((a, sa), (b, sb))
    ]
    large = np.arange(64) // (64 // count) % 2 == 0
    d = d.copy()
    total = -(values[0][:, large] @ values[1][:, large].T).astype(np.float32)
    d[:, N // 4 :] = total.view(np.uint32)[:, N // 4 :]
    return sa, sb, d


def words(result):
    view = np.uint16 if result.dtype == torch.float16 else np.uint32
    kind = torch.int16 if result.dtype == torch.float16 else torch.int32
    return result.view(kind).numpy().view(view).astype(np.uint32)


DEFAULT = {
    "tf32 | tf32 × tf32 → f32": 18,
    "f16 | bf16 × bf16 → f32": 17,
    "mxf8f6f4 block32 ue8m0 | e5m2 × e4m3 → f32": 1,
    "mxf8f6f4 block32 ue8m0 | e4m3 × e5m2 → f32": 1,
    "mxf8f6f4 block32 ue8m0 | e4m3 × e4m3 → f32": 2,
    "mxf8f6f4 block32 ue8m0 | e4m3 × e2m3 → f32": 2,
    "mxf8f6f4 block32 ue8m0 | e4m3 × e2m1 → f32": 1,
    "mxf4 block32 ue8m0 | e2m1 × e2m1 → f32": 58,
    "mxf4nvf4 block32 ue8m0 | e2m1 × e2m1 → f32": 58,
    "mxf4nvf4 block16 ue8m0 | e2m1 × e2m1 → f32": 19,
    "mxf4nvf4 block16 ue4m3 | e2m1 × e2m1 → f32": 1103,
}
"""Dot products that differ under the machine's default constants; none in all other rows."""


class Row:
    """One row of the table: counts, and where the two sides differ."""

    def __init__(self, name):
        self.name, self.cases, self.default, self.theirs = name, 0, 0, 0
        self.where = {}

    def add(self, flavour, expected, default, theirs):
        self.cases += expected.size
        different = int((expected != default).sum())
        self.default += different
        self.theirs += int((expected != theirs).sum())
        if different:
            self.where[flavour] = different

    def done(self, least=100_000):
        where = ", ".join(f"{f} {n}" for f, n in self.where.items()) or "–"
        print(
            f"\n| {self.name} | {self.cases} | {self.default} | {self.theirs} | {where} |", end=""
        )
        assert self.cases >= least
        assert self.theirs == 0
        assert self.default == DEFAULT.get(self.name, 0)


def their_zero(d_type):
    return FusedParams(zero_exponent=-21 if d_type == "f16" else -133)


UNSCALED = [
    ("tf32", "tf32", "tf32", "f32", 8),
    ("f16", "f16", "f16", "f32", 16),
    ("f16", "bf16", "bf16", "f32", 16),
    ("f16", "f16", "f16", "f16", 16),
    *(
        ("f8f6f4", a, b, d, 32)
        for d in ("f32", "f16")
        for a, b in itertools.product(NARROW, NARROW)
    ),
]


@pytest.mark.parametrize(("kind", "a_type", "b_type", "d_type", "k"), UNSCALED)
def test_unscaled(kind, a_type, b_type, d_type, k):
    row = Row(f"{kind} | {a_type} × {b_type} → {d_type}")
    sim = TCGen05MMA("Blackwell", f"m{M}n{N}k{k}.kind::{kind}.{d_type}.{a_type}.{b_type}")
    rng = np.random.default_rng([k, ord(a_type[1]), ord(b_type[1]), ord(d_type[1])])
    types = {"a_type": a_type, "b_type": b_type, "d_type": d_type}
    for flavour in FLAVOURS:
        a, b, d = operands(rng, a_type, b_type, d_type, k, flavour)
        expected = words(sim(tensor(a, a_type), tensor(b.T, b_type), tensor(d, d_type)))
        default = fused_mma(a, b, d, **types)
        row.add(flavour, expected, default, fused_mma(a, b, d, **types, params=their_zero(d_type)))
    row.done()


SCALED = [
    *(("mxf8f6f4", 32, "ue8m0", a, b) for a, b in itertools.product(NARROW, NARROW)),
    ("mxf4", 32, "ue8m0", "e2m1", "e2m1"),
    ("mxf4nvf4", 32, "ue8m0", "e2m1", "e2m1"),
    ("mxf4nvf4", 16, "ue8m0", "e2m1", "e2m1"),
    ("mxf4nvf4", 16, "ue4m3", "e2m1", "e2m1"),
]


@pytest.mark.parametrize(("kind", "block", "scale", "a_type", "b_type"), SCALED)
def test_block_scaled(kind, block, scale, a_type, b_type):
    row = Row(f"{kind} block{block} {scale} | {a_type} × {b_type} → f32")
    k = 32 if kind == "mxf8f6f4" else 64
    count = k // block
    sim = TCGen05MMABlockScale(
        "Blackwell", f"m{M}n{N}k{k}.kind::{kind}.block{block}.f32.{a_type}.{b_type}.{scale}"
    )
    rng = np.random.default_rng([k, block, ord(scale[2]), ord(a_type[1]), ord(b_type[1])])
    types = {"a_type": a_type, "b_type": b_type, "kind": kind, "scale_type": scale}
    top, one = (255, 127) if scale == "ue8m0" else (127, 0x38)
    for flavour in FLAVOURS:
        a, b, _ = operands(rng, a_type, b_type, "f32", k, flavour)
        low, high = {
            "spanning": (0, top),
            "bottom": (50, 66) if scale == "ue8m0" else (0, 8),
            "subnormal": (30, 50) if scale == "ue8m0" else (0, 4),
            "overflow": (top - 70, top) if scale == "ue8m0" else (top - 8, top),
        }.get(flavour, (one - 8, one + 8))
        sa, sb = (rng.integers(low, high, (n, count)).astype(np.uint8) for n in (M, N))
        if flavour == "special":
            sa[0, 0], sb[1, -1], sa[2, 0], sb[2, 0] = top, top, 0, top
        pair = low + high - 2 * one if scale == "ue8m0" else (low + high - 2 * one) // 8
        x = {"subnormal": 2, "bottom": 4}.get(flavour, 0)
        d = accumulator(rng, "f32", (M, N), pair + x, flavour)
        if flavour == "bottom":
            d[:, : 3 * N // 4] = 0
        if flavour == "bottom" and k == 64 and scale == "ue8m0":
            for scales in (sa, sb):  # sums near 2^-140 with parts near 2^-174
                scales[:] = rng.integers(54, 58, scales.shape)
                scales[:, 1::2] -= rng.integers(12, 24, scales[:, 1::2].shape).astype(np.uint8)
        if flavour == "near" and k == 64:
            sa, sb, d = leftovers(rng, a, b, scale, count, d)
        operand_tensors = [tensor(a, a_type), tensor(b.T, b_type)]
        if k == 64:
            operand_tensors = [packed(a), packed(b).T.contiguous()]
        scales = [tensor(sa, scale), tensor(sb.T, scale)]
        expected = words(sim(*operand_tensors, tensor(d, "f32"), *scales))
        default = block_scaled_mma(a, b, d, sa, sb, **types)
        theirs = block_scaled_mma(
            a, b, d, sa, sb, **types, params=their_zero("f32"), fp4=Fp4Params(rule="scales")
        )
        row.add(flavour, expected, default, theirs)
    row.done()


# part, K, operand type, type of D
WARP = [
    ("Turing", 8, "f16", "f32"),
    ("Turing", 8, "f16", "f16"),
    *(
        (part, *form)
        for part in ("Ampere", "Hopper", "Blackwell")
        for form in (
            (16, "f16", "f32"),
            (16, "f16", "f16"),
            (8, "f16", "f32"),
            (16, "bf16", "f32"),
            (8, "bf16", "f32"),
            (8, "tf32", "f32"),
            (4, "tf32", "f32"),
        )
    ),
]


@pytest.mark.parametrize(("part", "k", "name", "d_type"), WARP)
def test_mma_sync(part, k, name, d_type):
    row = Row(f"mma.sync {part} m16n8k{k} | {name} × {name} → {d_type}")
    sim = MMA(part, f"m16n8k{k}.{d_type}.{name}.{name}.{d_type}")
    generation = getattr(warp_mma, part.upper())
    rng = np.random.default_rng([k, ord(part[0]), ord(name[0]), ord(d_type[1])])
    types = {"a_type": name, "b_type": name, "d_type": d_type}
    for flavour in FLAVOURS:
        a, b, d = operands(rng, name, name, d_type, k, flavour)
        expected = words(sim(tensor(a, name), tensor(b.T, name), tensor(d, d_type)))
        found = warp_mma.warp_mma(a, b, d, **types, part=generation)
        row.add(flavour, expected, found, found)  # no constant of these is open
    row.done()

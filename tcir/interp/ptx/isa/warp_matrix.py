"""ldmatrix, stmatrix and mma.sync (PTX ISA 9.7.14, "Warp-level matrix instructions").

Fragments, with g = lane / 4 and c = lane % 4: for every instruction here an element index of a lane
leads to a row and a column, tabulated in `fragment`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir.interp.ptx.decode import Decode, Op, rule
from tcir.interp.ptx.isa.memory import addresses, check_aligned, load, split, store, take_space
from tcir.interp.ptx.syntax import TYPES, Site
from tcir.interp.ptx.warp import BOOLS, LANES, Warp
from tcir.machine import NotModelled
from tcir.machine.warp_mma import generation, warp_mma

_B32 = TYPES["b32"]
_LANE = np.arange(32)
_G, _C = _LANE >> 2, _LANE & 3


# --- ldmatrix, stmatrix -----------------------------------------------------------------------


def _rows(w: Warp, slot: int, size: int, offset: int, count: int, site: Site) -> Any:
    """Shared addresses of the 8·count rows: those of the first lanes."""
    lanes = (1 << 8 * count) - 1
    at = addresses(w, slot, size, offset, lanes, site)
    check_aligned(w, at, 16, site)
    return at


def _matrices(d: Decode) -> tuple[int, bool]:
    d.require("aligned")
    d.require("m8n8")
    count = int(d.require("x1", "x2", "x4")[1:])
    transposed = d.take("trans") is not None
    return count, transposed


@rule("ldmatrix.sync")
def ldmatrix(d: Decode) -> Op:
    """Row j of matrix i is at the address of lane 8i + j; lane t gets row t/4, columns 2(t%4)…"""
    if {"m16n16", "m8n16"} & set(d.modifiers):
        raise d.incomplete("no rule for the 8-bit and packed shapes")
    count, transposed = _matrices(d)
    space = take_space(d)
    d.require("b16")
    d.done(2)
    targets = [d.dst(o, _B32) for o in d.vector(d.operands[0], count)]
    slot, size, offset, declared = d.address(d.operands[1])
    generic = space == "generic" and declared is None
    site = d.site

    def run(w: Warp, m: int) -> None:
        at = _rows(w, slot, size, offset, count, site)
        if generic:
            at = _in_shared(w, at, site)
        rows = load(w, "shared", at, 16, _LANE[: 8 * count], site)
        tiles = rows.view(np.uint16).reshape(count, 8, 8)
        for target, tile in zip(targets, tiles, strict=True):
            tile = tile.T if transposed else tile
            pairs = np.ascontiguousarray(tile).view(np.uint32)
            np.copyto(w.v[5][target], pairs.ravel(), where=BOOLS[m])
            w.undef[target] &= ~m

    return d.plain(run, converge="aligned")


def _in_shared(w: Warp, at: Any, site: Site) -> Any:
    parts = split(at)
    if len(parts) != 1 or parts[0][0] != "shared":
        raise w.error("not-shared", f"expected shared-memory addresses, got {int(at[0]):#x}", site)
    return parts[0][2]


@rule("stmatrix.sync")
def stmatrix(d: Decode) -> Op:
    """The reverse of ldmatrix."""
    if "m16n8" in d.modifiers:
        raise d.incomplete("no rule for the 8-bit shape")
    count, transposed = _matrices(d)
    space = take_space(d)
    d.require("b16")
    d.done(2)
    slot, size, offset, declared = d.address(d.operands[0])
    generic = space == "generic" and declared is None
    sources = tuple(d.src(o, _B32) for o in d.vector(d.operands[1], count))
    site = d.site

    def run(w: Warp, m: int) -> None:
        at = _rows(w, slot, size, offset, count, site)
        if generic:
            at = _in_shared(w, at, site)
        data = np.empty((count, 8, 8), np.uint16)
        for n, source in enumerate(sources):
            if w.undef[source] & m:
                w.read_undefined(site, (source,), m)
            tile = w.v[5][source].view(np.uint16).reshape(8, 8)
            data[n] = tile.T if transposed else tile
        store(w, "shared", at, data.reshape(-1, 8).view(np.uint8), _LANE[: 8 * count], site)

    return d.plain(run, converge="aligned")


# --- mma.sync ---------------------------------------------------------------------------------

_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}


def fragment(operand: str, bits: int, k: int) -> tuple[Any, Any]:
    """Row (of A or C; of K for B) and column of element i of every lane: two int [elements, 32].

    A is 16 x k, B is k x 8, C is 16 x 8. A register holds 32 / bits neighbouring elements.
    """
    per = 32 // bits if operand != "c" else 2
    depth = 4 * per  # k covered by the four lanes of a group, once
    blocks = 1 if operand == "c" else k // depth
    rows, columns = [], []
    if operand == "b":
        for block in range(blocks):
            for i in range(per):
                rows.append(_C * per + i + depth * block)
                columns.append(_G)
        return np.array(rows), np.array(columns)
    for block in range(blocks):
        for half in range(2):
            for i in range(per):
                rows.append(_G + 8 * half)
                columns.append(_C * per + i + depth * block)
    return np.array(rows), np.array(columns)


def _elements(words: Any, bits: int) -> Any:
    """Registers uint32 [r, 32] to codes [r · 32/bits, 32]."""
    per = 32 // bits
    if per == 1:
        return words
    dtype: Any = {16: np.uint16, 8: np.uint8}[bits]
    parts = np.ascontiguousarray(words).view(dtype).reshape(len(words), 32, per)
    return parts.transpose(0, 2, 1).reshape(-1, 32)


@rule("mma.sync")
def mma(d: Decode) -> Op:
    """`mma.sync.aligned.m16n8kK.row.col{.satfinite}.dtype.atype.btype.ctype d, a, b, c`"""
    d.require("aligned")
    d.skip("kind::f8f6f4")
    shape = next((m for m in d.modifiers if m.startswith("m") and "n" in m), "")
    d.take(shape)
    d.require("row")
    d.require("col")
    saturate = d.take("satfinite") is not None
    names = list(d.modifiers)
    known = {*_BITS, "f32", "s32"}
    if len(names) != 4 or not set(names) <= known or names[0] != names[3]:
        raise d.incomplete(f"no rule for mma.sync of .{'.'.join(names)}")
    d.modifiers = []
    d_type, a_type, b_type = names[:3]
    if not shape.startswith("m16n8k") or a_type not in _BITS or b_type not in _BITS:
        raise d.incomplete(f"no rule for mma.sync of {shape} and .{a_type}")
    bits, k = _BITS[a_type], int(shape[6:])
    legal = {32: (4, 8), 16: (8, 16), 8: (16, 32)}[bits]
    if k not in legal or _BITS[b_type] != bits or saturate and d_type != "s32":
        raise d.incomplete(f"no rule for this form, {shape} of .{a_type} and .{b_type}")
    d.done(4)
    half = d_type == "f16"
    counts = (2 if half else 4, k * bits // 64, k * bits // 128, 2 if half else 4)
    targets = [d.dst(o, _B32) for o in d.vector(d.operands[0], counts[0])]
    a, b, c = (
        tuple(d.src(o, _B32) for o in d.vector(operand, n))
        for operand, n in zip(d.operands[1:], counts[1:], strict=True)
    )
    try:
        part = generation(d.target)
    except NotModelled as missing:
        raise d.incomplete(missing.what) from None
    a_at, b_at, c_at = fragment("a", bits, k), fragment("b", bits, k), fragment("c", 32, k)
    site = d.site
    code: Any = {32: np.uint32, 16: np.uint16, 8: np.uint8}[bits]

    def run(w: Warp, m: int) -> None:
        for source in (*a, *b, *c):
            if w.undef[source] & m:
                w.read_undefined(site, (source,), m)
        v = w.v[5]
        matrix_a, matrix_b = np.zeros((16, k), code), np.zeros((8, k), code)
        matrix_c = np.zeros((16, 8), np.uint32)
        matrix_a[a_at] = _elements(np.stack([v[s] for s in a]), bits)
        matrix_b[b_at[1], b_at[0]] = _elements(np.stack([v[s] for s in b]), bits)
        matrix_c[c_at] = _elements(np.stack([v[s] for s in c]), 16 if half else 32)
        result = warp_mma(
            matrix_a, matrix_b, matrix_c, a_type=a_type, b_type=b_type, d_type=d_type, part=part,
            saturate=saturate,
        )[c_at]  # fmt: skip
        if half:
            result = result[0::2] | result[1::2] << np.uint32(16)
        lanes = LANES[m]
        for target, row in zip(targets, result, strict=True):
            v[target][lanes] = row[lanes]
            w.undef[target] &= ~m
        w.agent.machine.counters.mma += 1

    return d.plain(run, converge="aligned")

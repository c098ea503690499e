"""ldmatrix, stmatrix and movmatrix (PTX ISA 9.7.14.5.15, 9.7.14.5.16, 9.7.14.5.17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Bits, Unknown, octets
from tcir.interp.ptx.isa.memory import (
    AccessTarget,
    addresses,
    check_aligned,
    read,
    split,
    store,
    take_space,
)
from tcir.interp.ptx.lanes import LANE_MASK
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Operand, Site
from tcir.interp.ptx.warp import Warp
from tcir.machine.memory.undefined import Undefined
from tcir.machine.order.lanes import TOGETHER
from tcir.machine.tensor_core.narrow import CP_FORMATS, unpack_units

_B32 = TYPES["b32"]
_LANE = np.arange(32)
_SHARED = np.full(32, TOGETHER)
"""Lane of each row: several lanes have a part of the row."""


@dataclass(frozen=True)
class MatrixLoad:
    """An ldmatrix of b16. fragments: function from rows [..., 8·count, 16] (bytes) to words [...,
    count, 32]
    """

    place: AccessTarget
    count: int
    targets: tuple[int, ...]
    fragments: Callable[[np.ndarray], np.ndarray]


class _RowAddresses:
    """Shared addresses of the 8·count rows, which the first 8·count lanes hold."""

    def __init__(self, d: Decode, operand: Operand, space: str, count: int) -> None:
        self.place = AccessTarget.of(d, operand, space)
        self.generic = self.place.space == "generic"
        self.lanes, self.site = (1 << 8 * count) - 1, d.site

    def __call__(self, w: Warp) -> np.ndarray:
        at = addresses(w, self.place, self.lanes, self.site)
        check_aligned(w, at, 16, self.site)
        return _in_shared(w, at, self.site) if self.generic else at


def _matrices(d: Decode) -> tuple[int, bool]:
    d.require("aligned")
    d.require("m8n8")
    count = int(d.require("x1", "x2", "x4")[1:])
    transposed = d.take("trans") is not None
    return count, transposed


@instruction("ldmatrix.sync")
def ldmatrix(d: Decode) -> Op:
    """Loads `count` matrices of 8 rows. Lane 8i + j supplies the address of row j of matrix i; lane
    t receives the elements of row t/4 in columns 2(t%4) and 2(t%4) + 1.
    """
    if "m8n16" in d.modifiers or "m16n16" in d.modifiers:
        return _load_bytes(d)
    count, transposed = _matrices(d)
    space = take_space(d)
    d.require("b16")
    d.done(2)
    targets = [d.dst(o, _B32) for o in d.vector(d.operands[0], count)]
    rows_at = _RowAddresses(d, d.operands[1], space, count)
    site = d.site

    def run(w: Warp, m: int) -> None:
        at = rows_at(w)
        rows, undefined = read(w, "shared", at, 16, _SHARED[: 8 * count], site)
        for target, words in zip(targets, fragments(rows), strict=True):
            np.copyto(w.v[U32][target], words, where=LANE_MASK[m])
        _define(w, targets, m, undefined, fragments)

    def fragments(rows: np.ndarray) -> np.ndarray:
        tiles = np.ascontiguousarray(rows).view(np.uint16).reshape(-1, count, 8, 8)
        tiles = tiles.swapaxes(-1, -2) if transposed else tiles
        words = np.ascontiguousarray(tiles).view(np.uint32)
        return words.reshape(*rows.shape[:-2], count, 32)

    op = d.plain(run, aligned=True)
    op.form = MatrixLoad(rows_at.place, count, tuple(targets), fragments)
    return op


def _define(
    w: Warp,
    targets: list[int],
    m: int,
    undefined: Undefined | None,
    fragments: Callable[[np.ndarray], np.ndarray],
) -> None:
    """Marks the registers as written; their undefined bits are placed like the data."""
    if undefined is None:
        for target in targets:
            w.undef[target] &= ~m
        return
    words = fragments(undefined.where * np.uint8(0xFF))
    for target, row in zip(targets, words, strict=True):
        w.define(target, m, Unknown(octets(row), undefined.origin))


def _held(
    w: Warp, sources: tuple[int, ...], m: int, site: Site, rows: Callable[[list[Bits]], np.ndarray]
) -> Undefined | None:
    """Undefined bytes of the rows stored from these registers."""
    if not any(w.undef[source] & m for source in sources):
        return None
    found = [w.undefined(source, m, site) for source in sources]
    origins = [unknown.origin for unknown in found if unknown is not None]
    nothing = np.zeros((32, 4), np.uint8)
    data = rows([nothing if unknown is None else unknown.bits for unknown in found])
    return Undefined(data != 0, origins[0]) if origins else None


def _store_rows(d: Decode, space: str, count: int, rows: Callable[[list[Bits]], np.ndarray]) -> Op:
    """Stores the 8·count rows that `rows` makes of the words of `count` registers."""
    rows_at = _RowAddresses(d, d.operands[0], space, count)
    sources = tuple(d.src(o, _B32) for o in d.vector(d.operands[1], count))
    site = d.site

    def run(w: Warp, m: int) -> None:
        at = rows_at(w)
        undefined = _held(w, sources, m, site, rows)
        data = rows([w.v[U32][source] for source in sources])
        store(w, "shared", at, data, _SHARED[: 8 * count], site, undefined=undefined)

    return d.plain(run, aligned=True)


def _in_shared(w: Warp, at: np.ndarray, site: Site) -> np.ndarray:
    parts = split(at)
    if len(parts) != 1 or parts[0][0] != "shared":
        raise w.error("not-shared", f"expected shared-memory addresses, got {int(at[0]):#x}", site)
    return parts[0][2]


@instruction("stmatrix.sync")
def stmatrix(d: Decode) -> Op:
    """The reverse of ldmatrix."""
    if "m16n8" in d.modifiers:
        return _store_bytes(d)
    count, transposed = _matrices(d)
    space = take_space(d)
    d.require("b16")
    d.done(2)

    def rows(words: list[np.ndarray]) -> np.ndarray:
        data = np.empty((count, 8, 8), np.uint16)
        for n, word in enumerate(words):
            tile = word.reshape(-1).view(np.uint16).reshape(8, 8)
            data[n] = tile.T if transposed else tile
        return data.reshape(-1, 8).view(np.uint8)

    return _store_rows(d, space, count, rows)


@instruction("movmatrix.sync")
def movmatrix(d: Decode) -> Op:
    """Transposes an 8 x 8 matrix of 16-bit elements, of which four lanes hold one row."""
    d.require("aligned")
    d.require("m8n8")
    d.require("trans")
    d.require("b16")
    d.done(2)
    dst, source = d.dst(d.operands[0], _B32), d.src(d.operands[1], _B32)
    site = d.site

    def run(w: Warp, m: int) -> None:
        lost = w.result((source,), m, site, lambda bits: octets(transposed(bits[0])))
        np.copyto(w.v[U32][dst], transposed(w.v[U32][source]), where=LANE_MASK[m])
        w.define(dst, m, lost)

    def transposed(words: np.ndarray) -> np.ndarray:
        tile = words.reshape(-1).view(np.uint16).reshape(8, 8).T
        return np.ascontiguousarray(tile).view(np.uint32).ravel()

    return d.plain(run, aligned=True)


# --- elements of 8, 6 and 4 bits ----------------------------------------------------------------


def _load_bytes(d: Decode) -> Op:
    """ldmatrix of rows of 16 bytes, or of padded units of 16 codes to a byte each, zero-extended.

    .m8n16: register i of thread t has row t/4 of matrix i, columns 4(t%4)…. .m16n16.trans: of the
    transpose, rows t/4 and t/4 + 8 in two registers, as CUTLASS's SM100_U8x8_LDSM_T and its
    CuTeDSL example ldmatrix_stmatrix have it.
    """
    d.require("aligned")
    square = d.require("m8n16", "m16n16") == "m16n16"
    count = int(d.require(*(("x1", "x2") if square else ("x1", "x2", "x4")))[1:]) * (1 + square)
    if square:
        d.require("trans")
    space = take_space(d)
    if "s4" in d.modifiers:
        raise d.incomplete("no rule for .s8.s4 (PTX ISA 9.4)")
    bits = 8
    if not (square and d.take("b8")):
        d.require("b8x16")
        bits = CP_FORMATS[d.require(*CP_FORMATS)]
    d.done(2)
    targets = [d.dst(o, _B32) for o in d.vector(d.operands[0], count)]
    rows_at = _RowAddresses(d, d.operands[1], space, count)
    site = d.site

    def run(w: Warp, m: int) -> None:
        at = rows_at(w)
        # What is read is the codes; the padding may be undefined.
        lanes = _SHARED[: 8 * count]
        units, missing = np.zeros((8 * count, 16), np.uint8), np.zeros((8 * count, 16), bool)
        undefined = None
        for part in range(bits // 2):
            columns = slice(4 * part, 4 * part + 4)
            units[:, columns], found = read(w, "shared", at + 4 * part, 4, lanes, site)
            if found is not None:
                missing[:, columns] = found.where
                undefined = Undefined(missing, found.origin)
        for target, row in zip(targets, fragments(units), strict=True):
            np.copyto(w.v[U32][target], row, where=LANE_MASK[m])
        _define(w, targets, m, undefined, fragments)

    def fragments(units: np.ndarray) -> np.ndarray:
        codes = units if bits == 8 else unpack_units(units, bits)
        if square:
            codes = np.ascontiguousarray(codes.reshape(-1, 16, 16).transpose(0, 2, 1))
        return codes.view(np.uint32).reshape(count, 32)

    return d.plain(run, aligned=True)


def _store_bytes(d: Decode) -> Op:
    """stmatrix .m16n8.trans.b8: a matrix that lies like D of mma.sync; its columns become rows."""
    d.require("aligned")
    d.require("m16n8")
    count = int(d.require("x1", "x2", "x4")[1:])
    d.require("trans")
    space = take_space(d)
    d.require("b8")
    d.done(2)
    byte = np.arange(4)
    row = (_LANE[:, None] >> 2) + 8 * (byte >> 1)
    column = 2 * (_LANE[:, None] & 3) + (byte & 1)

    def rows(words: list[np.ndarray]) -> np.ndarray:
        data = np.empty((count, 8, 16), np.uint8)
        for n, word in enumerate(words):
            data[n, column, row] = word.reshape(-1).view(np.uint8).reshape(32, 4)
        return data.reshape(-1, 16)

    return _store_rows(d, space, count, rows)

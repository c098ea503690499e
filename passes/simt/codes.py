"""Kernels that pack codes of 4 and 6 bits, and unpack them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import gcd, prod

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer_type
from tcir.dialect.ops.codes import bits_of, ends
from tcir.passes.emit import simt
from tcir.passes.emit.tensor_functions import only_op

THREADS = 256
CODES = 16
"""Codes per thread: 16 bytes unpacked, whole words packed."""


def convert(module: ir.Module, function: func.FuncOp) -> bool:
    """Turns a function of one ``tc.pack_codes`` or ``tc.unpack_codes`` into a kernel.

    Before::

        func.func @f_pack0(%c: tensor<7168x16384xi8>) -> tensor<7168x16384xf4E2M1FN>

    After (`llvm.func @f_pack0` in ``gpu.module @kernels``), 16 codes a thread::

        %i = 256 * %ctaid + %tid; if %i < 7340032:
          four words at %codes[16 * %i]: mask, then bring the codes of each together
          two words to %out[8 * %i], the even k in the low half of every byte

    If the elements are not a multiple of 16, a thread takes the fewest codes that fill bytes: two
    of fp4, four of fp6. Preserves every value, bit for bit.
    """
    op = only_op(function, tc.PackCodesOp, tc.UnpackCodesOp)
    if op is None:
        return False
    count, bits = prod(ends(op)[0].shape), bits_of(op)
    words = count % CODES == 0
    units = count // (CODES if words else _fewest(bits))
    moves: dict[ir.Value, Callable[..., None]] = {
        tc.PackCodesOp: _pack_words if words else _pack_bytes,
        tc.UnpackCodesOp: _unpack_words if words else _unpack_bytes,
    }
    with simt.units_of(module, function, units, THREADS, op.location) as (number, pointers):
        moves[type(op)](*pointers, simt.wide(number), bits)
    return True


def _fewest(bits: int) -> int:
    """Codes that fill whole bytes."""
    return 8 // gcd(bits, 8)


def _pack_words(codes: ir.Value, packed: ir.Value, number: ir.Value, bits: int) -> None:
    four = simt.load_words(simt.at(codes, simt.mul(number, CODES)), CODES // 4)
    target = simt.at(packed, simt.mul(number, CODES * bits // 8))
    for n, word in enumerate(_rejoined([_together(w, bits) for w in four], 4 * bits, 32)):
        simt.store(simt.behind(target, 4 * n), word)


def _unpack_words(packed: ir.Value, codes: ir.Value, number: ir.Value, bits: int) -> None:
    source = simt.at(packed, simt.mul(number, CODES * bits // 8))
    words = [simt.load(simt.behind(source, 4 * n), integer_type(32)) for n in range(bits // 2)]
    target = simt.at(codes, simt.mul(number, CODES))
    for n, string in enumerate(_rejoined(words, 32, 4 * bits)):
        simt.store(simt.behind(target, 4 * n), _apart(string, bits))


def _pack_bytes(codes: ir.Value, packed: ir.Value, number: ir.Value, bits: int) -> None:
    count = _fewest(bits)
    source = simt.at(codes, simt.mul(number, count))
    bytes_ = [simt.load_byte(simt.behind(source, n)) for n in range(count)]
    target = simt.at(packed, simt.mul(number, count * bits // 8))
    masked = [simt.both_bits(byte, 2**bits - 1) for byte in bytes_]
    for n, byte in enumerate(_rejoined(masked, bits, 8)):
        simt.store_byte(simt.behind(target, n), byte)


def _unpack_bytes(packed: ir.Value, codes: ir.Value, number: ir.Value, bits: int) -> None:
    count = _fewest(bits)
    source = simt.at(packed, simt.mul(number, count * bits // 8))
    bytes_ = [simt.load_byte(simt.behind(source, n)) for n in range(count * bits // 8)]
    target = simt.at(codes, simt.mul(number, count))
    for n, code in enumerate(_rejoined(bytes_, 8, bits)):
        simt.store_byte(simt.behind(target, n), simt.both_bits(code, 2**bits - 1))


def _together(word: ir.Value, bits: int) -> ir.Value:
    """The low bits of each byte of a word, concatenated; the first is lowest."""
    word = simt.both_bits(word, 0x01010101 * (2**bits - 1))
    gap = 8 - bits
    low, high = simt.both_bits(word, 0x00FF00FF), simt.both_bits(word, 0xFF00FF00)
    word = _either(low, simt.right(high, gap))
    low, high = simt.both_bits(word, 0x0000FFFF), simt.both_bits(word, 0xFFFF0000)
    return _either(low, simt.right(high, 2 * gap))


def _apart(string: ir.Value, bits: int) -> ir.Value:
    """The inverse of `_together`; bits of `string` above the four codes are ignored."""
    parts = [simt.both_bits(simt.right(string, bits * n), 2**bits - 1) for n in range(4)]
    return _either(*(simt.left(part, 8 * n) for n, part in enumerate(parts)))


def _rejoined(pieces: list[ir.Value], have: int, want: int) -> list[ir.Value]:
    """Re-splits concatenated strings of `have` bits into strings of `want` bits.

    Bits of a result above `want` are undefined.
    """
    found = []
    for first in range(0, len(pieces) * have, want):
        at = {n: n * have - first for n in range(len(pieces))}
        parts = [
            simt.left(pieces[n], place) if place >= 0 else simt.right(pieces[n], -place)
            for n, place in at.items()
            if -have < place < want
        ]
        found.append(_either(*parts))
    return found


def _either(*parts: ir.Value) -> ir.Value:
    return reduce(simt.either_bits, parts)

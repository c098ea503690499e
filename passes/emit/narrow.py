"""Numbers of a byte or less on CUDA cores: packed in memory, an i32 in a register.

PTX has no 8-bit registers (PTX ISA 5.2.2): in a register an i8 is sign-extended and an f8 is its
code. An i1 is a byte, 0 or 1, in memory and a predicate in a register. Numbers of 2, 4 and 6 bits
are packed in memory, the first in the lowest bits (`tcir.formats.pack`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from tcir._mlir import arith, ir
from tcir.dialect.attributes import integer_type
from tcir.dialect.upstream import names
from tcir.passes.emit import simt
from tcir.passes.emit.diagnostics import is_op, match_failure
from tcir.passes.emit.fp8 import FP8, rounded_code, widened_code
from tcir.passes.emit.functions import (
    FUNCTIONS,
    NAMES,
    NO_EXPONENT,
    POWERS,
    constant_number,
    divided,
    function,
)
from tcir.passes.emit.small import (
    EXPONENT,
    SMALL,
    rounded_exponent,
    rounded_small,
    widened_exponent,
    widened_small,
)

WORD = 32
INTEGERS = ("i8", "i4", "i2")
WRAPPING = names(arith.AddIOp, arith.MulIOp, arith.ShLIOp, arith.SubIOp, arith.XOrIOp)
"""Ops on i8 and narrower types whose result may exceed its range in a word."""
CLOSED = names(
    arith.AndIOp, arith.CmpIOp, arith.MaxSIOp, arith.MaxUIOp, arith.MinSIOp, arith.MinUIOp,
    arith.OrIOp, arith.SelectOp, arith.ShRSIOp,
)  # fmt: skip
"""Ops with the same result on sign-extended words, which preserve the order, also the unsigned
one."""


def is_code(kind: ir.Type) -> bool:
    """Whether a type is a float of a byte or less, which a register holds as its code."""
    return str(kind) in (*FP8, *SMALL, EXPONENT)


def is_byte(kind: ir.Type) -> bool:
    """Whether numbers of a type take a byte or less, and the type is not i1."""
    return is_code(kind) or str(kind) in INTEGERS


def register(kind: ir.Type) -> ir.Type:
    """The type that a number has in a register: i32 for a byte, i64 for an index."""
    kind = getattr(kind, "element_type", kind)
    if isinstance(kind, ir.IndexType):
        return integer_type(64)
    return integer_type(WORD) if is_byte(kind) else kind


def together(kind: ir.Type) -> int:
    """Number of elements that fill whole bytes, so that one thread stores them together."""
    return 1 if kind.width == 1 else 8 // gcd(8, kind.width)


def load(pointer: ir.Value, place: ir.Value, kind: ir.Type) -> ir.Value:
    """Loads element number `place`, an i64, of a tensor at `pointer`."""
    if together(kind) > 1:
        word = _in_its_byte(pointer, place, kind.width)
        return simt.both_bits(word, _mask(kind)) if is_code(kind) else wrapped(word, kind.width)
    address = simt.at(pointer, byte(place, kind))
    if is_code(kind):
        return simt.load_byte(address)
    if str(kind) == "i8":
        return wrapped(simt.load_byte(address), kind.width)
    if str(kind) == "i1":
        return resized(simt.load_byte(address), 1)
    return simt.load(address, kind)


def _in_its_byte(pointer: ir.Value, place: ir.Value, bits: int) -> ir.Value:
    """A word whose low `bits` are element `place`; it reads only the bytes that contain the
    element."""
    first = simt.mul(place, bits)
    word = simt.load_byte(simt.at(pointer, simt.right(first, 3)))
    if 8 % bits:
        last = simt.load_byte(simt.at(pointer, simt.right(simt.add(first, bits - 1), 3)))
        word = simt.either_bits(word, simt.left(last, 8))
    shift = simt.both_bits(resized(first, WORD), 7)
    return arith.ShRUIOp(word, shift).result


def byte(place: ir.Value, kind: ir.Type) -> ir.Value:
    """Byte offset of element number `place`, an i64, which must begin at a byte boundary; an i1
    takes one byte."""
    return simt.mul(place, max(1, kind.width // 8))


def store(pointer: ir.Value, place: ir.Value, values: Sequence[ir.Value], kind: ir.Type) -> None:
    """Stores a group of `together` elements, which fill whole bytes. place: number of the group, an
    i64"""
    count, bits = together(kind), kind.width
    assert len(values) == count, f"{count} elements of {kind} fill whole bytes"
    if count > 1:
        codes = [simt.both_bits(value, _mask(kind)) for value in values]
        word = codes[0]
        for n, code in enumerate(codes[1:], start=1):
            word = simt.either_bits(word, simt.left(code, n * bits))
        size = count * bits // 8
        first = simt.at(pointer, simt.mul(place, size))
        for n in range(size):
            simt.store_byte(simt.behind(first, n), simt.right(word, 8 * n))
        return
    address, (value,) = simt.at(pointer, byte(place, kind)), values
    if is_byte(kind):
        simt.store_byte(address, value)
    elif str(kind) == "i1":
        simt.store_byte(address, arith.ExtUIOp(integer_type(WORD), value).result)
    else:
        simt.store(address, value)


def has_runs(kind: ir.Type) -> bool:
    """Whether consecutive elements of this type can be loaded and stored at once, which is true for
    types of 1, 2 and 4 bytes."""
    return kind.width == 1 or kind.width in (8, 16, 32)


def load_run(pointer: ir.Value, place: ir.Value, count: int, kind: ir.Type) -> list[ir.Value]:
    """Loads `count` elements (2, 4 or 8) from element `place`, an i64, on, up to 16 bytes at once.
    The address must be a multiple of that number of bytes."""
    size = max(1, kind.width // 8)
    address = simt.at(pointer, byte(place, kind))
    if count * size < 4:
        return [load(pointer, simt.add(place, n), kind) for n in range(count)]
    if count * size == 4:
        words = [simt.load(address, integer_type(WORD))]
    else:
        words = simt.load_words(address, count * size // 4)
    return [of_word(words[n * size // 4], n * size % 4, kind) for n in range(count)]


def of_word(word: ir.Value, byte: int, kind: ir.Type) -> ir.Value:
    """Extracts from a word the element that begins at byte number `byte`."""
    bits = max(8, kind.width)
    word = simt.right(word, 8 * byte)
    if kind.width == 1:
        return resized(word, 1)
    if str(kind) == "i8":
        return wrapped(word, bits)
    if is_code(kind):
        return simt.both_bits(word, _mask(kind))
    return simt.of_words([word], kind)


def store_run(
    pointer: ir.Value, place: ir.Value, values: Sequence[ir.Value], kind: ir.Type
) -> None:
    """Stores elements from `place` on, in the same way as `load_run` loads them."""
    size = max(1, kind.width // 8)
    if size == 1:
        values = [simt.both_bits(each, 255) if is_byte(kind) else each for each in values]
    most = 16 // size
    for first in range(0, len(values), most):
        address = simt.at(pointer, byte(simt.add(place, first) if first else place, kind))
        simt.store_run(address, values[first : first + most], size)


def halved(element: ir.Value, other: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """Two numbers as numbers of 16 bits: both unchanged if they have 16 bits, or an extended number
    before its extension together with the constant 0; None for any others."""
    if element.type.width == 16:
        return element, other
    number = constant_number(other)
    if not is_op(element, "arith.extf") or number != 0:
        return None
    (source,) = element.owner.operands
    if source.type.width != 16:
        return None
    return source, arith.constant(source.type, ir.FloatAttr.get(source.type, number))


def chosen_run(
    condition: ir.Value, elements: Sequence[ir.Value], other: ir.Value
) -> list[ir.Value]:
    """Selects an even number of elements where an i1 is set, and `other` where it is not; one
    select handles two elements of 16 bits (`halved`)."""
    found = list[ir.Value]()
    pairs = [halved(each, other) for each in elements]
    for n in range(0, len(pairs), 2):
        first, second = pairs[n : n + 2]
        assert first is not None and second is not None, "halved says which run has such numbers"
        both, others = zip(first, second, strict=True)
        chosen = arith.SelectOp(condition, simt.vector_of(both), simt.vector_of(others)).result
        found += simt.elements_of(chosen)
    kind = elements[0].type
    return [each if each.type == kind else arith.extf(kind, each) for each in found]


def _mask(kind: ir.Type) -> int:
    return (1 << kind.width) - 1


def constant(kind: ir.Type, value: ir.Attribute) -> ir.Value:
    """A constant number of type `kind`. value: an attribute of that type"""
    if is_code(kind):
        return _rounded(simt.number(ir.FloatAttr(value).value), str(kind))
    held = register(kind)
    if held != kind:
        value = ir.IntegerAttr.get(held, ir.IntegerAttr(value).value)
    return arith.ConstantOp(held, value).result


def wrapped(word: ir.Value, bits: int) -> ir.Value:
    """The low `bits` bits of a word, sign-extended."""
    left = simt.left(word, WORD - bits)
    return arith.ShRSIOp(left, simt.constant(WORD - bits)).result


def resized(number: ir.Value, width: int, signed: bool = True) -> ir.Value:
    """Converts an integer to another width."""
    kind = integer_type(width)
    if number.type.width < width:
        return (arith.ExtSIOp if signed else arith.ExtUIOp)(kind, number).result
    return number if number.type == kind else arith.TruncIOp(kind, number).result


def computed(op: ir.OpView, operands: Sequence[ir.Value]) -> ir.Value:
    """Emits an op of ``arith`` or ``math`` on numbers in registers."""
    name = op.operation.name
    source, result = (
        getattr(v.type, "element_type", v.type)
        for v in (op.operation.operands[-1], op.operation.results[0])
    )
    held = register(result)
    if name.startswith("arith.index_cast"):
        return resized(operands[0], held.width, name == "arith.index_cast")
    if name in ("arith.fptosi", "arith.fptoui") and result.width < WORD:
        word = scalar(op, operands, [integer_type(WORD)])
        return _narrowed(word, result)
    if not is_byte(source) and not is_byte(result):
        return scalar(op, operands, [held])
    if is_code(source) or is_code(result):
        return _of_codes(op, operands, source, result)
    if name in CLOSED:
        return scalar(op, operands, [held])
    if name in WRAPPING:
        return wrapped(scalar(op, operands, [held]), result.width)
    (number, *rest) = operands
    if name == "arith.shrui":
        word = scalar(op, [simt.both_bits(number, _mask(source)), *rest], [held])
        return wrapped(word, result.width)
    if name == "arith.extui" and source != result and is_byte(source):
        return resized(simt.both_bits(number, _mask(source)), held.width)
    if name == "arith.extsi" and is_byte(source):
        return resized(number, held.width)
    if name == "arith.uitofp":
        return scalar(op, [simt.both_bits(number, _mask(source))], [held])
    if name == "arith.trunci":
        return _narrowed(number, result)
    return scalar(op, operands, [held])  # from i1, to floats


def _narrowed(number: ir.Value, kind: ir.Type) -> ir.Value:
    """The low bits of an integer, as a number of a narrower type."""
    if is_byte(kind):
        return wrapped(resized(number, WORD), kind.width)
    return resized(number, kind.width)


def _of_codes(
    op: ir.OpView, operands: Sequence[ir.Value], source: ir.Type, result: ir.Type
) -> ir.Value:
    """Conversions of floats of a byte or less, and moves of their codes."""
    name, number = op.operation.name, operands[0]
    if name == "arith.select":
        return scalar(op, operands, [register(result)])
    if name == "arith.bitcast":
        if is_code(result):
            return simt.both_bits(number, _mask(result))
        return wrapped(number, result.width)
    if name == "arith.extf" and not is_code(result):
        return _widened(number, str(source), result)
    if name == "arith.truncf" and source.width <= WORD and not is_code(source):
        return _rounded(number, str(result))
    raise match_failure(
        op,
        f"expected {name} on f32, f16 or bf16, got {source} and {result} (floats of a byte or less "
        "are only converted, PTX ISA 9.7.9.21); extend with arith.extf first, and round last",
    )


def _widened(code: ir.Value, element: str, kind: ir.Type) -> ir.Value:
    """The number, a float of type `kind`, of a code; rounded where `kind` has not its range."""
    if element in FP8:
        return widened_code(code, element, kind)
    wide = widened_exponent(code) if element == EXPONENT else widened_small(code, element)
    if wide.type == kind:
        return wide
    return (arith.extf if kind.width > WORD else arith.truncf)(kind, wide)


def _rounded(number: ir.Value, element: str) -> ir.Value:
    """The code of an f32, f16 or bf16."""
    if element in FP8:
        return rounded_code(number, element)
    wide = ir.F32Type.get()
    x = number if number.type == wide else arith.extf(wide, number)
    return rounded_exponent(x) if element == EXPONENT else rounded_small(x, element)


def scalar(
    op: ir.OpView, operands: Sequence[ir.Value], kinds: Sequence[ir.Type] | None = None
) -> ir.Value:
    """Emits an op of ``arith`` or ``math`` on numbers. kinds: types of the new op's results, if
    they differ from those of `op`"""
    name = op.operation.name
    if name in FUNCTIONS or name in POWERS:
        if isinstance(operands[0].type, ir.F64Type):
            raise match_failure(
                op,
                f"expected {name} of f32 or narrower, got one of f64 (PTX ISA 9.7.3: its "
                "instruction has no such form); round with arith.truncf before it",
            )
        if name in FUNCTIONS:
            return function(name, operands[0])
        exponent = constant_number(op.operation.operands[1])
        if exponent is None:
            raise match_failure(op, NO_EXPONENT.format(name))
        return function(name, operands[0], exponent)
    if name == "math.fma":
        return simt.fma(*operands)
    if name.startswith("math."):
        raise match_failure(
            op,
            f"expected arith ops, {', '.join(NAMES)} in an epilogue, got {name}, which has no "
            "lowering; compute it in a function of its own",
        )
    if name == "arith.divf":
        return divided(*operands)
    attributes = {each: op.operation.attributes[each] for each in op.operation.attributes}
    own = [getattr(r.type, "element_type", r.type) for r in op.operation.results]
    return ir.Operation.create(name, kinds or own, operands, attributes).result

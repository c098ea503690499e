"""Packing of 4- and 6-bit elements."""

from math import gcd
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.operation import Op
from tcir.dialect.ops.block_scaled import ELEMENT_BITS
from tcir.dialect.rules import Broken, verify

PACKED_BITS = {name: bits for name, bits in ELEMENT_BITS.items() if bits < 8}
"""Element types that are packed in memory, and their bits."""


class PackCodesOp(Op, name="pack_codes", arithmetic="codes", lowered_by=("convert-to-simt",)):
    """Packs elements of 4 or 6 bits from bytes with one code each.

    Element ``[..., k]`` of ``out`` has the bits of the low 4 (6) bits of ``codes[..., k]``; the
    bits above them are ignored. In memory ``codes`` takes a byte per element and ``out`` is packed:
    a byte holds two fp4, the even k in its low half; three bytes hold four fp6, little-endian.
    Below the tensor level this op is a kernel of its own, which reads ``codes`` once and writes the
    packed rows.
    """

    example = """
    func.func @example(%codes: tensor<7168x16384xi8>) {
      %a = "tc.pack_codes"(%codes) : (tensor<7168x16384xi8>) -> tensor<7168x16384xf4E2M1FN>
      return
    }
    """

    codes: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]


class UnpackCodesOp(Op, name="unpack_codes", lowered_by=("convert-to-simt",)):
    """Unpacks elements of 4 or 6 bits to bytes with one code each, whose upper bits are 0.

    The op is the inverse of ``tc.pack_codes``, whose description defines the order of elements in
    memory.
    """

    example = """
    func.func @example(%a: tensor<7168x16384xf6E2M3FN>) {
      %codes = "tc.unpack_codes"(%a) : (tensor<7168x16384xf6E2M3FN>) -> tensor<7168x16384xi8>
      return
    }
    """

    packed: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]


def ends(op: PackCodesOp | UnpackCodesOp) -> tuple[ir.RankedTensorType, ir.RankedTensorType]:
    """Element types of a pack or unpack op: the type of the codes, which take a byte per element,
    and the type of the packed elements."""
    if isinstance(op, PackCodesOp):
        return op.codes.type, op.out.type
    return op.out.type, op.packed.type


def bits_of(op: PackCodesOp | UnpackCodesOp) -> int:
    """Bits of a packed element."""
    return PACKED_BITS[str(ends(op)[1].element_type)]


@verify(
    PackCodesOp,
    "types",
    "tc",
    "codes must be a static tensor of i8, and out of {legal}, got {codes} and {out}; an fp8 code "
    "is a byte as it is",
    bad={"7168x16384xf4E2M1FN": "7168x16384xf8E4M3FN"},
    good={"7168x16384xf4E2M1FN": "7168x16384xf6E3M2FN"},
)
@verify(
    UnpackCodesOp,
    "types",
    "tc",
    "packed must be a static tensor of {legal}, and out of i8, got {packed} and {out}; fp8 has a "
    "byte an element as it is",
    bad={"7168x16384xi8": "7168x16384xi16"},
)
def _(op: PackCodesOp | UnpackCodesOp) -> Broken:
    codes, packed = ends(op)
    static = codes.has_static_shape and packed.has_static_shape and codes.rank
    if static and str(codes.element_type) == "i8" and str(packed.element_type) in PACKED_BITS:
        return None
    return {"legal": " or ".join(PACKED_BITS), **_named(op, codes, packed)}


@verify(
    PackCodesOp,
    "shape",
    "tc",
    "out must have the shape of codes, {codes}, got {out}: an element for every code",
    bad={"7168x16384xf4E2M1FN": "7168x32768xf4E2M1FN"},
)
@verify(
    UnpackCodesOp,
    "shape",
    "tc",
    "out must have the shape of packed, {packed}, got {out}: a code for every element",
    bad={"7168x16384xi8": "16384xi8"},
)
def _(op: PackCodesOp | UnpackCodesOp) -> Broken:
    codes, packed = (list(kind.shape) for kind in ends(op))
    return None if codes == packed else _named(op, codes, packed)


@verify(
    PackCodesOp,
    "whole-bytes",
    "tc",
    "rows of out must be whole bytes, got {k} elements of {bits} bits; pad K to a multiple of "
    "{unit} with zeros",
    bad={"7168x16384xi8": "2x6xi8", "7168x16384xf4E2M1FN": "2x6xf6E2M3FN"},
    good={"7168x16384xf4E2M1FN": "2x4xf6E2M3FN", "7168x16384xi8": "2x4xi8"},
)
@verify(
    UnpackCodesOp,
    "whole-bytes",
    "tc",
    "rows of packed must be whole bytes, got {k} elements of {bits} bits; pad K to a multiple of "
    "{unit} with zeros",
    bad={"7168x16384xf6E2M3FN": "2x3xf4E2M1FN", "7168x16384xi8": "2x3xi8"},
    good={"7168x16384xi8": "3x2xi8", "7168x16384xf6E2M3FN": "3x2xf4E2M1FN"},
)
def _(op: PackCodesOp | UnpackCodesOp) -> Broken:
    k, bits = ends(op)[0].shape[-1], bits_of(op)
    unit = 8 // gcd(bits, 8)
    return {"k": k, "bits": bits, "unit": unit} if k * bits % 8 else None


def _named(op: PackCodesOp | UnpackCodesOp, codes: Any, packed: Any) -> dict[str, Any]:
    """Message values about both operands, by their names in the op."""
    if isinstance(op, PackCodesOp):
        return {"codes": codes, "out": packed}
    return {"packed": packed, "out": codes}

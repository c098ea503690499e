"""Op that changes the layout of a tensor."""

from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integers, not_arrays
from tcir.dialect.operation import Op
from tcir.dialect.ops.codes import PACKED_BITS
from tcir.dialect.rules import Broken, verify
from tcir.dialect.types import element_bytes


class RepackOp(Op, name="repack", lowered_by=("convert-to-simt",)):
    """A tensor with its dimensions permuted and padded with zeros.

    Dimension d of the result is dimension ``permutation[d]`` of ``source``, after ``low[d]`` zeros
    (left out: none), followed by zeros where the result is longer. With packed fp4 and fp6 the
    innermost dimension stays innermost, has no zeros before it, and takes whole bytes. Below the
    tensor level this op becomes a kernel of its own, which reads ``source`` once and writes the
    result to a workspace, in a layout that TMA can encode.
    """

    example = """
    func.func @example(%w: tensor<7x7x3x64xf16>) -> tensor<64x7x7x8xf16> {
      %out = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>}
          : (tensor<7x7x3x64xf16>) -> tensor<64x7x7x8xf16>
      return %out : tensor<64x7x7x8xf16>
    }

    func.func @padded(%x: tensor<1x9x9x3xf16>) -> tensor<1x9x12x4xf16> {
      %out = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>, low = array<i64: 0, 0, 1, 0>}
          : (tensor<1x9x9x3xf16>) -> tensor<1x9x12x4xf16>
      return %out : tensor<1x9x12x4xf16>
    }
    """

    source: ext.Operand[ir.RankedTensorType]
    permutation: Any
    out: ext.Result[ir.RankedTensorType]


def zeros_before(op: ir.OpView) -> list[int]:
    """``low`` of a ``tc.repack``: the number of zeros before each dimension of the result."""
    return integers(op, "low") if "low" in op.attributes else [0] * len(op.out.type.shape)


@verify(
    RepackOp,
    "low",
    "tc",
    "low must be array<i64> of {rank} numbers of at least 0, one for each dimension of the result, "
    "or left out, got {got}",
    bad=(
        {"low = array<i64: 0, 0, 1, 0>": "low = array<i64: 0, 1>"},
        {"low = array<i64: 0, 0, 1, 0>": "low = array<i64: 0, 0, -1, 0>"},
    ),
)
def _(op: RepackOp) -> Broken:
    rank = op.out.type.rank
    if "low" not in op.attributes:
        return None
    if not_arrays(op, low=rank) is None and min(integers(op, "low"), default=0) >= 0:
        return None
    return {"rank": rank, "got": op.attributes["low"]}


@verify(
    RepackOp,
    "permutation",
    "tc",
    "permutation must name each of the {rank} dimensions of source once, got {got}",
    bad={"permutation = array<i64: 3, 0, 1, 2>": "permutation = array<i64: 3, 0, 0, 2>"},
)
def _(op: RepackOp) -> Broken:
    rank, got = op.source.type.rank, integers(op, "permutation")
    return None if sorted(got) == list(range(rank)) else {"rank": rank, "got": got}


@verify(
    RepackOp,
    "element",
    "tc",
    "source and result must have the same element type, of whole bytes, or packed in rows of whole "
    "bytes that stay innermost, got {source} and {out}; a repacking moves bytes",
)
def _(op: RepackOp) -> Broken:
    source, out = op.source.type, op.out.type
    if source.element_type == out.element_type:
        if element_bytes(source.element_type):
            return None
        bits, order = PACKED_BITS.get(str(source.element_type)), integers(op, "permutation")
        whole = bits and not any(kind.shape[-1] * bits % 8 for kind in (source, out))
        if whole and order[-1:] == [source.rank - 1] and not any(zeros_before(op)[-1:]):
            return None
    return {"source": source, "out": out}


@verify(
    RepackOp,
    "extents",
    "tc",
    "each extent of the result must be at least that of its source dimension and the zeros in "
    "front, {want}, got {got}; take a slice in an op of its own",
    bad={
        "low = array<i64: 0, 0, 1, 0>": "low = array<i64: 0, 0, 3, 0>",
        "1x9x12x4xf16": "1x9x11x4xf16",
    },
)
def _(op: RepackOp) -> Broken:
    shape, got = op.source.type.shape, list(op.out.type.shape)
    want = [shape[d] for d in integers(op, "permutation")]
    if len(got) == len(want):
        want = [zeros + extent for zeros, extent in zip(zeros_before(op), want)]
    if len(got) == len(want) and all(g >= w for g, w in zip(got, want)):
        return None
    return {"want": want, "got": got}

"""Tensor-core ops."""

from typing import Any

from tcir._mlir import ext, ir

from .base import TC
from .types import SmemType, TmemType


class MmaOp(TC.Operation, name="mma"):
    """``tcgen05.mma.cta_group::1.kind::f16``: one K step, ``D = A_slice * B_slice^T (+ D)``.

    ``d`` is a 128 x N f32 tensor-memory tile, ``a`` 128 x K in tensor memory or shared memory, ``b`` N x K in
    shared memory; the step multiplies elements ``[16*a_slice, +16)`` of A's K with ``[16*b_slice, +16)`` of
    B's K (32 bytes). ``accumulate`` false ignores old D. With ``ashift`` (A in tensor memory only) the 8 columns
    of the slice move one lane down *after* the multiplication: ``A[i] = A[i+1]`` except lanes 31, 63, 95, 127,
    which keep their value (PTX ISA 9.7.16.10.9). Issued by one thread, asynchronous.
    """

    d: ext.Operand[TmemType]
    a: ext.Operand[SmemType | TmemType]
    b: ext.Operand[SmemType]
    accumulate: ext.Operand[Any]  # i1
    a_slice: ir.IntegerAttr
    b_slice: ir.IntegerAttr
    ashift: ir.IntegerAttr  # i1

"""High-level ops on tensors: what a schedule is chosen for."""

from typing import Any

from tcir._mlir import ext, ir

from .base import TC


class Conv2dOp(TC.Operation, name="conv2d"):
    """2-D convolution, channels last, padding folded in, f32 accumulation.

    ``out[n,p,q,k] = sum_{r,s,c} x[n, p*sh - pt + r*dh, q*sw - pl + s*dw, c] * w(r,s,c,k)``, zero
    outside ``x``, then rounded once (RNE) to the element type of ``out``.

    ``filter`` is ``"hwcf"`` (``w[r,s,c,k]``) or ``"fhwc"`` (``w[k,r,s,c]``); ``strides``, ``dilations``
    are ``[h, w]``; ``pads`` is ``[top, bottom, left, right]``.
    """

    x: ext.Operand[ir.RankedTensorType]
    w: ext.Operand[ir.RankedTensorType]
    strides: Any
    dilations: Any
    pads: Any
    filter: ir.StringAttr
    out: ext.Result[ir.RankedTensorType]


class MatmulOp(TC.Operation, name="matmul"):
    """Matrix product with f32 accumulation, rounded once to the element type of ``out``.

    ``a`` is ``[M,K]`` (``a_layout = "mk"``) or ``[K,M]`` (``"km"``), ``b`` is ``[K,N]`` (``"kn"``) or ``[N,K]``
    (``"nk"``); all three carry the same leading batch dimension or none.
    """

    a: ext.Operand[ir.RankedTensorType]
    b: ext.Operand[ir.RankedTensorType]
    a_layout: ir.StringAttr
    b_layout: ir.StringAttr
    out: ext.Result[ir.RankedTensorType]

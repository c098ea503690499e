"""ONNX's own evaluator (reference implementation), with corrections of its errors."""

from __future__ import annotations

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from tcir.interp.types import Array


class LRN(OpRun):
    """LRN by ONNX's specification. The version in onnx 1.23 sums as many channels as there are
    images.
    """

    op_domain = ""

    def _run(self, x: Array, alpha: float, beta: float, bias: float, size: int) -> tuple[Array]:
        squares = np.zeros_like(x)
        for channel in range(x.shape[1]):
            first, end = channel - (size - 1) // 2, channel + size // 2 + 1
            squares[:, channel] = (x[:, max(first, 0) : end] ** 2).sum(1)
        return ((x / (bias + alpha / size * squares) ** beta).astype(x.dtype),)


def evaluated(model: onnx.ModelProto, inputs: dict[str, Array]) -> list[Array]:
    """The outputs in order. Raises whatever exception an op's Python code raises."""
    with np.errstate(all="ignore"):  # NaN and infinities are results like others
        found = ReferenceEvaluator(model, new_ops=[LRN]).run(None, inputs)
    return [np.asarray(each) for each in found]

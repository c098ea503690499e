"""An imported ONNX model as data; the process that reads the model passes it to the process that
compiles it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Shapes = Mapping[str, tuple[tuple[int, ...], str]] | Sequence[tuple[tuple[int, ...], str]]
"""Shape and element type of inputs, by name or in order; the type "" stands for the model's."""


@dataclass(frozen=True)
class ModelValue:
    """An input or output: its name, shape and type."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Imported:
    """A model imported for fixed shapes of its inputs.

    data:  the model with these shapes, weights included, serialised
    mlir:  its program in `linalg`
    nodes: labels of the ops in order, without constants
    """

    data: bytes
    mlir: str
    inputs: tuple[ModelValue, ...]
    outputs: tuple[ModelValue, ...]
    nodes: tuple[str, ...]

"""The child process that reads models. If a file crashes the child, this process raises an
error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tcir.errors import InputError
from tcir.interp.types import Array
from tcir.onnx.model import Imported, Shapes
from tcir.session.apart import Compilers, one_per_process


class Readers(Compilers):
    """A child process that reads models, imports them and evaluates them with ONNX's own
    evaluator."""

    def __init__(self) -> None:
        super().__init__(1, "tcir.onnx._child_main", ".txt")

    def imported(self, path: str, data: bytes | None, shapes: Shapes) -> Imported:
        """The imported model. Raises `InputError` for data that is not a model and for ops that
        cannot be lowered to linalg.
        """
        found = self.ask("imported", path, data=data, shapes=shapes)
        assert isinstance(found, Imported)
        return found

    def explain(self, error: str, data: bytes, pipeline: str, target: str) -> NoReturn:
        """Raises InputError for an error of `pipeline`; the new error lists the ops that the
        pipeline rejects.
        """
        self.ask("explained", error, data=data, pipeline=pipeline, target=target)
        raise InputError(error)

    def reference(self, name: str, data: bytes, inputs: Sequence[Array], wide: bool) -> list[Array]:
        """The results of ONNX's evaluator, in f64 (`wide`) or with sums in f32."""
        results = self.ask("reference", name, data=data, inputs=list(inputs), wide=wide)
        assert isinstance(results, list)
        return results


readers = one_per_process(Readers)
"""Readers of this process."""

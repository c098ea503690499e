"""An ONNX model compiled to a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from tcir.errors import InputError, did_you_mean
from tcir.imported.check import ProgramOrigin
from tcir.imported.program import ModelPart, PartTable, check_array, run, validated
from tcir.interp.types import Array
from tcir.kernel import Kernel
from tcir.onnx.children import readers
from tcir.onnx.model import Imported, ModelValue
from tcir.program.inputs import Kind
from tcir.validation.report import Report


@dataclass(frozen=True, repr=False)
class Compiled:
    """An ONNX model compiled for inputs of fixed shapes; it is called with arrays.

    name:     name of the model
    imported: the imported program
    part:     its ops, kernel and program
    target:   target of the kernel
    """

    name: str
    imported: Imported
    part: ModelPart
    target: str

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, values)) for values in (self.inputs, self.outputs))
        return f"<tcir.onnx.Compiled {self.name} for {self.target}: {inputs} -> {outputs}>"

    @property
    def inputs(self) -> tuple[ModelValue, ...]:
        """Name, shape and type of each input; weights are not inputs."""
        return self.imported.inputs

    @property
    def outputs(self) -> tuple[ModelValue, ...]:
        """Name, shape and type of each output."""
        return self.imported.outputs

    @property
    def table(self) -> PartTable[ModelPart]:
        """The ops and their launches; one line per part as text."""
        return PartTable((self.part,))

    @property
    def kernel(self) -> Kernel:
        """The compiled kernel, with `launch_table`, `ptx`, `cubin`, and `launch` on a GPU."""
        return self.part.kernel

    def __call__(self, *arrays: object) -> dict[str, Array]:
        """Runs the model on the simulated machine and returns the outputs by name.

        arrays: a mapping of arrays by input name, or the arrays in order. InputError for other
        names, shapes or types; `tcir.HazardError` for a kernel with a hazard.
        """
        results = run(self.kernel, self._given(arrays))
        return {
            value.name: result.view(value.dtype) if value.dtype.kind == "u" else result
            for value, result in zip(self.outputs, results, strict=True)
        }

    def _given(self, arrays: tuple[object, ...]) -> list[Array]:
        names = [value.name for value in self.inputs]
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            named = arrays[0]
            for name in named:
                if name not in names:
                    raise InputError(
                        f"{self.name}: expected inputs of the model, got {name!r}"
                        f"{did_you_mean(str(name), names)}"
                    )
        else:
            named = dict(zip(names, arrays, strict=False))
        if len(named) < len(names) or len(arrays) > max(len(names), 1):
            raise InputError(
                f"{self.name}: expected {len(names)} arrays ({', '.join(map(str, self.inputs))}), "
                f"got {len(named) if len(named) < len(names) else len(arrays)}"
            )
        return [
            check_array(
                f"{self.name}: input {value.name!r}", named[value.name], value.shape, value.dtype
            )
            for value in self.inputs
        ]

    def validate(self, *, seed: int = 0, inputs: Kind = "integers", orders: int = 1) -> Report:
        """Executes the program after every pass; see `tcir.validate`.

        The first line, "ONNX → linalg", compares the imported program with ONNX's reference
        evaluator, in f64 and with sums in f32.
        """
        evaluated = partial(readers().reference, self.name, self.imported.data)
        source = ProgramOrigin(
            "ONNX → linalg",
            "ONNX's evaluator",
            partial(evaluated, wide=True),
            partial(evaluated, wide=False),
        )
        return validated(self.part, source, self.target, seed, inputs=inputs, orders=orders)

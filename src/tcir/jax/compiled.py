"""A JAX function compiled to a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import jax
import numpy as np

from tcir.errors import InputError
from tcir.imported.check import ProgramOrigin
from tcir.imported.program import ModelPart, PartTable, run, validated
from tcir.interp.types import Array
from tcir.jax.calls import Call
from tcir.jax.tracing import TracedFunction
from tcir.kernel import Kernel
from tcir.program.inputs import Kind
from tcir.validation.against_f64 import is_floating
from tcir.validation.report import Report


@dataclass(frozen=True, repr=False)
class Compiled:
    """A JAX function compiled for arguments of fixed shapes; it is called like the original.

    function: the original function
    call:     its arguments, without data
    traced:   the traced program
    part:     its primitives, kernel and program
    target:   target of the kernel
    """

    function: Callable[..., object]
    call: Call
    traced: TracedFunction
    part: ModelPart
    target: str

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"<tcir.jax.Compiled {name}: {self.part.kernel!r}>"

    @property
    def table(self) -> PartTable[ModelPart]:
        """The primitives and their launches; one line per part as text."""
        return PartTable((self.part,))

    @property
    def kernel(self) -> Kernel:
        """The compiled kernel, with `launch_table`, `ptx`, `cubin`, and `launch` on a GPU."""
        return self.part.kernel

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Runs the function on the simulated machine. Results are JAX arrays if an argument is one,
        else numpy arrays.

        InputError for arguments whose structure, shapes, types or numbers differ from the
        example's; `tcir.HazardError` for a kernel with a hazard.
        """
        given = Call.of(args, kwargs)
        arrays = self.call.checked(given)
        found = run(self.kernel, arrays)
        results = [*found, *reversed(arrays)]  # −1 is the first argument
        leaves = [
            each if isinstance(each, np.ndarray) else results[each] for each in self.traced.results
        ]
        if any(isinstance(each, jax.Array) for each in given.leaves):
            leaves = [jax.numpy.asarray(each) for each in leaves]
        return jax.tree_util.tree_unflatten(self.traced.tree, leaves)

    def validate(self, *, seed: int = 0, inputs: Kind = "integers", orders: int = 1) -> Report:
        """Executes the program after every pass; see `tcir.validate`.

        The first line, "JAX → linalg", compares the program with JAX's own results on the CPU, in
        f64 and in its own types.
        """
        source = ProgramOrigin(
            "JAX → linalg",
            "JAX",
            lambda given: self._by_jax(given, wide=True),
            lambda given: self._by_jax(given, wide=False),
        )
        return validated(self.part, source, self.target, seed, inputs=inputs, orders=orders)

    def _by_jax(self, given: Sequence[Array], wide: bool) -> list[Array]:
        """Results of the function itself, computed by JAX."""
        types = ["float64" if wide and is_floating(each.dtype) else None for each in given]
        try:
            with _x64(wide), jax.default_device(jax.devices("cpu")[0]):
                arrays = map(jax.numpy.asarray, given, types)
                args, kwargs = self.call.with_arrays(list(arrays))
                leaves = jax.tree_util.tree_leaves(self.function(*args, **kwargs))
        except Exception as error:  # of the function, which may be for its own types alone
            raise InputError(f"cannot run the function: {type(error).__name__}: {error}") from error
        found = {
            result: np.asarray(leaf)
            for result, leaf in zip(self.traced.results, leaves, strict=True)
            if isinstance(result, int) and result >= 0
        }
        return [found[number] for number in sorted(found)]


def _x64(wide: bool) -> AbstractContextManager[None]:
    """Enables f64 if `wide`; otherwise leaves the user's setting."""
    return jax.enable_x64(True) if wide else nullcontext()

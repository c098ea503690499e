"""`tcir.specialise`: compiles a kernel for each of several batch sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tcir.errors import InputError, LaunchError
from tcir.kernel import CallOptions, Kernel
from tcir.program.source import load_module, mlir_context
from tcir.session.entry import compile

if TYPE_CHECKING:
    from tcir.interp import Outcome
    from tcir.passmanager.pipeline import Pass, Pipeline
    from tcir.program.source import ModuleSource


@dataclass(frozen=True)
class Specialised:
    """A program compiled for several sizes of its dynamic dimensions.

    dims:    (argument, dimension) numbers of the dynamic dimensions
    kernels: the kernel of each size
    """

    name: str
    dims: tuple[tuple[int, int], ...]
    kernels: dict[int, Kernel]

    def __call__(self, *buffers: np.ndarray[Any, Any], **options: Unpack[CallOptions]) -> Outcome:
        """Executes the kernel for the buffers' size, see `tcir.Kernel`.

        Raises LaunchError if no kernel has that size, and HazardError if a result depends on
        timing.
        """
        sizes = {
            np.shape(buffers[number])[dim]: number
            for number, dim in reversed(self.dims)
            if number < len(buffers) and dim < np.ndim(buffers[number])
        }
        listed = ", ".join(map(str, self.kernels))
        if len(sizes) != 1 or next(iter(sizes)) not in self.kernels:
            got = ", ".join(f"{size} in argument {number}" for size, number in sizes.items())
            raise LaunchError(
                f"@{self.name}: the batch must be one of {listed} (each is a kernel of its own: "
                f"tensor maps, tiles and grid are fixed at compile time), got {got or 'none'}; "
                "add it to batch of tcir.specialise"
            )
        return self.kernels[next(iter(sizes))](*buffers, **options)


def specialise(
    program: ModuleSource,
    pipeline: Pipeline | str | Iterable[Pass | str],
    batch: Iterable[int],
    *,
    entry: str | None = None,
    **options: Any,
) -> Specialised:
    """Compiles `program` once for each size in `batch`, to which all dynamic dimensions of its
    arguments are set.

    The pass ``specialise-shapes`` sets the dimensions. `entry` and `options` are as in
    `tcir.compile`; with ``validate=True`` the program of each kernel is executed after every pass.
    Raises InputError if no dimension is dynamic.
    """
    from tcir.passes.emit.tensor_functions import functions_with_body
    from tcir.passes.module.specialise_shapes import SpecialiseShapes, dynamic_dims

    sizes = sorted(set(batch))
    texts, dims, name = dict[int, str](), list[tuple[int, int]](), ""
    for size in sizes:
        with mlir_context() as context:
            module = load_module(program, context, entry)
            for function in functions_with_body(module):
                dims, name = dynamic_dims(function), function.name.value
            SpecialiseShapes(size).apply(module)
            texts[size] = module.operation.get_asm(enable_debug_info=True)
    if not dims:
        raise InputError(
            f"@{name}: expected an argument with a dynamic dimension (tensor<?x16xf16>) and sizes "
            f"for it, got batch={sizes} and no such argument; compile it with tcir.compile"
        )
    kernels = {size: compile(text, pipeline, **options) for size, text in texts.items()}
    return Specialised(name, tuple(dims), kernels)

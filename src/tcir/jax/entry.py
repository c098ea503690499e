"""`tcir.jax.compile`."""

from __future__ import annotations

from collections.abc import Callable

from tcir.errors import Error, InputError, InternalError
from tcir.imported.program import Part
from tcir.imported.stablehlo import linalg
from tcir.jax.calls import Call
from tcir.jax.compiled import Compiled
from tcir.jax.tracing import traced
from tcir.passmanager.pipeline import as_pipeline
from tcir.progress import compiling
from tcir.session.apart import compilers
from tcir.session.session import check_target
from tcir.target import DEFAULT_TARGET


def compile(
    function: Callable[..., object],
    *args: object,
    pipeline: str = "layers",
    target: str = DEFAULT_TARGET.name,
    **kwargs: object,
) -> Compiled:
    """A JAX function, whole, as a kernel for arguments of these shapes and types.

    args, kwargs: arrays or `jax.ShapeDtypeStruct`, in any pytree; numbers and strings are fixed

    JAX traces it, StableHLO's own passes make `linalg` of it; arrays that it closes over are
    constants. Products and sums of f16 and bf16 are kept in f32; f32 is multiplied as tf32.
    InputError for a function that JAX cannot trace, and for what is not lowered, with the line of
    the function: nothing else runs it.
    """
    if not callable(function):
        raise InputError(f"jax.compile: expected a function, got {type(function).__name__}")
    as_pipeline(pipeline)
    check_target(pipeline, target)
    call = Call.of(args, kwargs).without_data()
    found = traced(function, call)
    try:
        mlir = linalg(found.stablehlo)
        with compiling("tcir.jax", len(found.primitives)):
            kernel = compilers().compile(mlir, pipeline, target)
    except (InternalError, InputError):
        raise
    except Error as error:
        raise InputError(str(error)) from error
    return Compiled(function, call, found, Part(found.primitives, kernel, mlir, pipeline), target)

"""`tcir.jax.compile`: compiles a JAX function."""

from __future__ import annotations

from collections.abc import Callable

from tcir.errors import Error, InputError, InternalError
from tcir.imported.program import ModelPart
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
    """Compiles a JAX function, as a whole, to a kernel for arguments of these shapes and types.

    args, kwargs: arrays or `jax.ShapeDtypeStruct`, in any pytree; numbers and strings are fixed

    JAX traces the function, and StableHLO's own passes convert it to `linalg`. Arrays that the
    function closes over become constants. Products and sums of f16 and bf16 are computed in f32;
    f32 is multiplied as tf32. Raises InputError, with the function's line, if JAX cannot trace the
    function or an op cannot be lowered; no part falls back to JAX.
    """
    if not callable(function):
        raise InputError(f"jax.compile: expected a function, got {type(function).__name__}")
    as_pipeline(pipeline)
    check_target(pipeline, target)
    call = Call.of(args, kwargs).without_data()
    compilers().start()  # while JAX traces the function
    found = traced(function, call)
    try:
        mlir = linalg(found.stablehlo)
        with compiling("tcir.jax", len(found.primitives)):
            kernel = compilers().compile(mlir, pipeline, target)
    except (InternalError, InputError):
        raise
    except Error as error:
        raise InputError(str(error)) from error
    return Compiled(
        function, call, found, ModelPart(found.primitives, kernel, mlir, pipeline), target
    )

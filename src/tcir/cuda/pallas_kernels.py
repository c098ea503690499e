"""JAX Pallas in a script. Kernels of its Triton and Mosaic GPU backends are lowered as for a GPU,
although JAX runs on the CPU; the simulated device executes them.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

from tcir.cuda.mosaic_plugin import Plugin
from tcir.cuda.program import ProgramDevice
from tcir.doors.imports import Execute
from tcir.doors.launches import DoorLaunch, scratch
from tcir.errors import MissingDependencyError

Run = Callable[[Sequence[np.ndarray]], None]
"""Executes a kernel on its inputs and outputs, which are in the CPU's memory."""
_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn")
_TYPES = (
    *map(np.dtype, ("bool", "float16", "float32", "float64")),
    *(np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(np.dtype(getattr(ml_dtypes, name)) for name in _NARROW),
)
"""Types of elements, as both numpy and MLIR have them."""


class Kernels:
    """Pallas kernels that a script calls."""

    def __init__(self, program: ProgramDevice) -> None:
        self.program, self.plugin = program, Plugin(program)
        self._context: Any = None
        self._custom_call = mlir.custom_call
        mlir.custom_call = self._call

    def lowered_on_the_cpu(self, module: ModuleType, execute: Execute) -> None:
        """Executes the module `jax._src.pallas.pallas_call`, whose kernels are then lowered as for
        a GPU."""
        execute(module)
        lowering = module._pallas_call_lowering

        def lower(context: Any, *nodes: object, **named: object) -> Sequence[object]:
            if named["interpret"]:
                return lowering(context, *nodes, **named)
            outer, self._context = self._context, context
            try:
                return lowering(context.replace(platforms=("cuda",)), *nodes, **named)
            finally:
                self._context = outer

        module.__dict__["_pallas_call_lowering"] = lower
        mlir.register_lowering(module.pallas_call_p, lower)

    def _call(self, call_target_name: str, **named: Any) -> Any:
        """Replacement for `mlir.custom_call`: a kernel becomes a call of Python."""
        kinds = {"__gpu$xla.gpu.triton": self._of_triton, "mosaic_gpu_v2": self.plugin.kernel}
        if self._context is None or call_target_name not in kinds:
            return self._custom_call(call_target_name, **named)
        run = kinds[call_target_name](named["backend_config"])
        inputs = [_shaped(each.type) for each in named["operands"]]
        outputs = [_shaped(each) for each in named["result_types"]]
        aliases = {out: given for given, out in (named["operand_output_aliases"] or {}).items()}

        def execute(*given: jax.Array) -> list[np.ndarray]:
            arrays = [_aligned(np.asarray(each)) for each in given]
            made = [
                _aligned(arrays[aliases[n]] if n in aliases else np.zeros(each.shape, each.dtype))
                for n, each in enumerate(outputs)
            ]
            run([*arrays, *made])
            return made

        def call(*given: jax.Array) -> object:
            return jax.pure_callback(execute, outputs, *given, vmap_method="sequential")

        avals_in, avals_out = (
            [jax.core.ShapedArray(each.shape, each.dtype) for each in shaped]
            for shaped in (inputs, outputs)
        )
        context = self._context.replace(avals_in=avals_in, avals_out=avals_out)
        results = mlir.lower_fun(call, multiple_results=True)(context, *named["operands"])
        return SimpleNamespace(results=results)

    def _of_triton(self, config: Mapping[str, Any]) -> Run:
        try:
            from triton.backends.compiler import GPUTarget
            from triton.compiler import compile as compile_triton
        except ImportError as error:
            raise MissingDependencyError(
                f"Pallas's Triton backend needs Triton ({error}); install tcir[triton]"
            ) from None
        from jax._src.pallas.triton import lowering

        major, minor = self.program.launches.device.chip.capability
        with ir.Context() as context, tempfile.TemporaryDirectory() as folder:
            lowering.tt_dialect.register_dialect(context)
            module = ir.Module.parse(config["ir"].value_bytes)
            text = Path(folder) / "kernel.ttir"
            text.write_text(module.operation.get_asm(enable_debug_info=True))
            options = {name: config[name].value for name in ("num_warps", "num_stages")}
            target = GPUTarget("cuda", 10 * major + minor, 32)
            kernel = compile_triton(str(text), target=target, options=options)
        x, y, z = (config[f"grid_{axis}"].value for axis in "xyz")
        meta = kernel.metadata
        sizes = meta.global_scratch_size, meta.profile_scratch_size

        def run(arrays: Sequence[np.ndarray]) -> None:
            args = [*arrays, *(scratch(size * math.prod((x, y, z))) for size in sizes)]
            sizes_of = (x, y, z), (1, 1, 1), meta.shared
            launch = DoorLaunch(kernel.asm["ptx"], meta.name, *sizes_of, False, args, arrays)
            self.program.launches.execute(launch)

        return run


def _shaped(kind: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of the elements of a tensor type."""
    tensor = ir.RankedTensorType(kind)
    types = {str(mlir.dtype_to_ir_type(each)): each for each in _TYPES}
    return jax.ShapeDtypeStruct(tuple(tensor.shape), types[str(tensor.element_type)])


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy at a multiple of 256 bytes, as XLA allocates buffers."""
    room = np.empty(array.nbytes + 256, np.uint8)
    first = -room.ctypes.data % 256
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy

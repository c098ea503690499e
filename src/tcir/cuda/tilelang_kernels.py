"""TileLang in a script: kernels are compiled to PTX, and the host code treats tensors in CPU memory
as tensors of a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import torch
import tvm_ffi

from tcir.doors.dlpack import moved_to_gpu
from tcir.doors.imports import Around, Execute

_CACHE = "TILELANG_CACHE_DIR"


class _OnAGpu:
    """A tensor as DLPack describes it, on a GPU."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **_: object) -> object:
        return moved_to_gpu(torch.utils.dlpack.to_dlpack(self.tensor))

    def __dlpack_device__(self) -> tuple[int, int]:
        return tvm_ffi.DLDeviceType.kDLCUDA, 0


def _to_ptx(module: ModuleType, execute: Execute) -> None:
    """Compiles to PTX where TileLang asks nvcc for machine code, which the driver loads as well."""
    execute(module)
    compile_cuda = module.compile_cuda

    def compile_to_ptx(code: str, _format: str = "", *given: object, **named: object) -> object:
        return compile_cuda(code, "ptx", *given, **named)

    module.__dict__["compile_cuda"] = compile_to_ptx


def _outputs_by_torch(module: ModuleType, execute: Execute) -> None:
    """Has torch allocate a kernel's outputs, as for other targets, and not its host code."""
    execute(module)
    module.__dict__["_stamp_callee_allocated_decision"] = lambda function: function


def _on_a_gpu(module: ModuleType, execute: Execute) -> None:
    """Passes tensors to compiled host code as tensors of a GPU."""
    execute(module)
    adapter = module.TVMFFIKernelAdapter
    executable = adapter._get_executable

    def wrapped(self: object) -> Callable[..., object]:
        return partial(_call, executable(self))

    adapter._get_executable = wrapped
    adapter.get_exportable_executable = executable


def _call(executable: Callable[..., object], *given: object) -> object:
    return executable(
        *(
            tvm_ffi.from_dlpack(_OnAGpu(each.detach())) if isinstance(each, torch.Tensor) else each
            for each in given
        )
    )


def settings() -> None:
    """Sets TileLang's environment: its cache is separate from the cache of code for a GPU."""
    default = Path("~/.tilelang/cache").expanduser()
    os.environ[_CACHE] = f"{os.environ.get(_CACHE, default)}_tcir"


WORK: dict[str, Around] = {
    "tilelang.contrib.nvcc": _to_ptx,
    "tilelang.jit.abi": _outputs_by_torch,
    "tilelang.jit.adapter.tvm_ffi": _on_a_gpu,
}
"""Work around the imports of TileLang's modules."""

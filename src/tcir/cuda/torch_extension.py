"""CUDA extensions of PyTorch (`torch.utils.cpp_extension.load_inline` and `load`) in a script: the
extensions are compiled to PTX, and their tensors are in CPU memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import cast

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tcir.doors.imports import Execute

_HEADER = Path(__file__).with_name("torch_extension.h")


class TensorRecorder(TorchDispatchMode):
    """Creates tensors for the device "cuda" on the CPU and records each tensor, including those
    that C++ code creates.

    made: called with each tensor that an operator returns
    """

    def __init__(self, made: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self.made = made

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Calls an operator; torch calls this for each of them."""
        given = dict(kwargs or {})
        device = given.get("device")
        if isinstance(device, torch.device) and device.type == "cuda":
            given["device"] = torch.device("cpu")
        result = func(*args, **given)
        with torch._C.DisableTorchFunction():  # the tensors' own devices
            for each in tree_leaves(result):
                if isinstance(each, torch.Tensor) and each.is_cpu:
                    self.made(each)
        return result


def compiled_to_ptx(target: str, module: ModuleType, execute: Execute) -> None:
    """Executes the module `torch.utils.cpp_extension` and changes it so that it compiles to PTX of
    a target.

    The compiled extensions are stored separately from extensions compiled for a GPU.
    """
    execute(module)
    os.environ.setdefault("TORCH_EXTENSIONS_DIR", f"{module.get_default_build_root()}_tcir")
    compile_all, link_flags = module._jit_compile, module._prepare_ldflags
    arch = target.replace("sm_", "compute_")
    include = ["-include", str(_HEADER)]

    def compile_extension(name: str, sources: object, *given: object, **named: object) -> object:
        cflags, nvcc, *rest = given
        both = ([*cast("list[str]", flags or []), *include] for flags in (cflags, nvcc))
        return compile_all(name, sources, *both, *rest, **named)

    def without_the_runtime(*args: object, **named: object) -> list[str]:
        return [flag for flag in link_flags(*args, **named) if flag != "-lcudart"]

    module.__dict__.update(
        _jit_compile=compile_extension,
        _prepare_ldflags=without_the_runtime,
        _get_cuda_arch_flags=lambda *_: [f"-gencode=arch={arch},code={arch}"],
    )

"""Runs the host code of libraries of CuTe DSL kernels without a GPU, on tensors of the CPU.

CuTe DSL compiles, for sm_100a unless another target is given, and launches on `recorder.c`, in
place of the DSL's runtime library. It runs in the libraries' environments.
"""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import recording

MULTIPROCESSORS = 4


class Hardware:
    """In place of CuTe DSL's query of the device."""

    def __init__(self, *_: Any) -> None: ...

    def get_device_multiprocessor_count(self) -> int:
        return MULTIPROCESSORS

    def get_max_active_clusters(self, size: int) -> int:
        return MULTIPROCESSORS // size


def launch(
    driver: Any, kernel: Any, args: list[Any], tensors: list[Any], like: list[Any] | None = None
) -> tuple[str, Any]:
    """PTX of a kernel object, and its launch. tensors: the buffers, in this order.

    like: arguments to compile for, where they are not `args`.
    """
    import cuda.bindings.driver as cuda
    from cutlass import cute

    stream = cuda.CUstream(0)
    flags = f"--gpu-arch {os.environ['CUTE_DSL_ARCH']} --keep-ptx"
    compiled = cute.compile(kernel, *(like or args), stream=stream, options=flags)
    text = compiled.__ptx__
    recorder = recording.Recorder(driver, lambda _entry: text, MULTIPROCESSORS)
    for tensor in tensors:
        recorder.allocated(tensor.data_ptr(), tensor.numel() * tensor.element_size())
    compiled(*args, stream=stream)
    (record,) = recorder.launches
    return text, record | {"contents": recorder.contents()}


def record(
    names: Iterable[str],
    make: Callable[[Any, str], tuple[str, Any]],
    out: Path,
    arch: str = "sm_100a",
) -> None:
    """`make(driver, name)` as `launch`; writes OUT/NAME.ptx and OUT/NAME.json."""
    with tempfile.TemporaryDirectory() as folder:
        library = recording.build(Path(folder))
        os.environ["CUTE_DSL_LIBS"] = str(library)
        os.environ["CUTE_DSL_ARCH"] = arch
        os.environ["QUACK_ARCH"] = arch.strip(
            "sm_a"
        )  # QuACK asks torch otherwise, which needs a driver
        driver = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        import cutlass
        from cutlass.cutlass_dsl import cuda_jit_executor

        cutlass.utils.HardwareInfo = Hardware
        cuda_jit_executor.CudaDialectJitCompiledFunction.num_devices = 1
        for name in names:
            try:
                text, launched = make(driver, name)
            except Exception as error:
                traceback.print_exc()
                (out / f"{name}.json").write_text(json.dumps({"error": f"{error!r}"[:300]}))
                continue
            (out / f"{name}.ptx").write_text(text)
            (out / f"{name}.json").write_text(json.dumps(launched))

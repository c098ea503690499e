"""Kernels of JAX's Mosaic GPU: `python jax_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json.

The kernels are jax.experimental.pallas.ops.gpu.blackwell_* as shipped, and small ones after the
Pallas guide. The plugin's own compiler makes the PTX and its host code launches on the recorder.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import recording

KERNELS: dict[str, Callable[[], Any]] = {}
MULTIPROCESSORS = 4


def kernel(function: Callable[[], Any]) -> Callable[[], Any]:
    """Registers a function that gives a function of arrays and their shapes and types."""
    KERNELS[function.__name__] = function
    return function


def array(dtype: str, *shape: int) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape, dtype)


def matmul(dtype: str, m: int, n: int, k: int, **config: Any) -> Any:
    from jax.experimental.pallas.ops.gpu import blackwell_matmul_mgpu as gpu

    options = {"tile_m": 128, "tile_n": 128, "tile_k": 64, "max_concurrent_steps": 2}
    tuning = gpu.TuningConfig(**(options | {"collective": False, "epilogue_tile_n": 32} | config))
    return lambda a, b: gpu.matmul_kernel(a, b, tuning), array(dtype, m, k), array(dtype, k, n)


@kernel
def matmul_f16() -> Any:
    return matmul("float16", 256, 128, 256)


@kernel
def matmul_bf16_wide() -> Any:
    return matmul("bfloat16", 128, 256, 192, tile_n=256, max_concurrent_steps=3)


@kernel
def matmul_bf16_pair() -> Any:
    return matmul("bfloat16", 256, 512, 128, collective=True)


@kernel
def matmul_f16_pair_narrow() -> Any:
    return matmul("float16", 512, 128, 256, tile_n=64, collective=True, epilogue_tile_n=64)


@kernel
def matmul_bf16_narrow() -> Any:
    return matmul("bfloat16", 256, 128, 320, tile_n=64, max_concurrent_steps=4)


@kernel
def matmul_f16_deep() -> Any:
    """k of 128 a step: two spans of the swizzle."""
    return matmul("float16", 128, 256, 512, tile_k=128, epilogue_tile_n=64)


@kernel
def matmul_bf16_minor_m() -> Any:
    """Five tiles and more for each of the CTAs, in a snake two wide."""
    return matmul("bfloat16", 512, 512, 64, grid_minor_dim=0, grid_tile_width=2)


@kernel
def matmul_bf16_pair_minor_m() -> Any:
    return matmul(
        "bfloat16", 512, 512, 128, tile_n=64, collective=True, grid_minor_dim=0, grid_tile_width=2
    )


@kernel
def matmul_f16_pair_deep() -> Any:
    return matmul(
        "float16", 256, 256, 384, tile_k=128, collective=True, epilogue_tile_n=64,
        max_concurrent_steps=3,
    )  # fmt: skip


def ragged(dtype: str, m: int, n: int, k: int) -> Any:
    """Two CTAs: with one, the example of JAX 0.10.2 does not trace."""
    from jax.experimental.pallas.ops.gpu import blackwell_matmul_mgpu as matmul_gpu
    from jax.experimental.pallas.ops.gpu import blackwell_ragged_dot_mgpu as gpu

    tuning = gpu.TuningConfig(
        tile_m=128, tile_n=64, tile_k=64, max_concurrent_steps=2,
        collective=True, grid_tile_width=1, epilogue_tile_n=64,
        grid_minor_dim=matmul_gpu.MatmulDimension.N,
    )  # fmt: skip
    shapes = array(dtype, m, k), array(dtype, 3, k, n), array("int32", 3)
    return lambda a, b, sizes: gpu.ragged_dot_kernel(a, b, sizes, tuning), *shapes


@kernel
def ragged_dot_bf16_pair() -> Any:
    return ragged("bfloat16", 512, 128, 128)


@kernel
def ragged_dot_f16_pair() -> Any:
    return ragged("float16", 256, 256, 64)


@kernel
def ragged_dot_bf16_pair_deep() -> Any:
    return ragged("bfloat16", 256, 128, 320)


@kernel
def ragged_dot_f16_pair_one() -> Any:
    """A group that is empty and one of a single row."""
    return ragged("float16", 256, 128, 128)


@kernel
def pipelined_add() -> Any:
    """Tiles through shared memory by TMA, two ahead."""
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import mosaic_gpu as gpu

    def tile(_index: Any, x: Any, y: Any, out: Any) -> None:
        out[...] = x[...] + y[...]

    spec = gpu.BlockSpec(
        (64, 64),
        lambda i, j: (i, j),
        transforms=(gpu.TilingTransform((8, 32)), gpu.SwizzleTransform(128)),
    )

    def body(x: Any, y: Any, out: Any) -> None:
        pipeline = gpu.emit_pipeline(
            tile, grid=(2, 2), in_specs=[spec, spec], out_specs=[spec], max_concurrent_steps=2
        )
        pipeline(x, y, out)

    shape = array("float32", 128, 128)
    del pl
    call = gpu.kernel(
        body, out_type=jax.ShapeDtypeStruct((128, 128), "float32"), grid=(1,), grid_names=("x",)
    )
    return call, shape, shape


def trace(function: Any, shapes: Any) -> tuple[bytes, list[Any], list[Any]]:
    """The kernel as serialised MLIR; the types of its inputs and outputs."""
    import jax
    from jax.experimental.mosaic.gpu import core

    core.KNOWN_KERNELS.clear()
    traced = jax.jit(function).trace(*shapes)
    traced.lower(lowering_platforms=("cuda",))
    (module,) = core.KNOWN_KERNELS.values()
    return module, list(shapes), jax.tree.leaves(traced.out_info)


def plugin() -> ctypes.CDLL:
    """The CUDA plugin, its compiler for NVPTX made ready: it expects a client to have done so."""
    from jax_plugins import xla_cuda13

    path = xla_cuda13._get_library_path()
    dll = ctypes.CDLL(str(path))
    names = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    wanted = r"^(\w+) \w (LLVMInitializeNVPTX\w+|MosaicGpuCompile)\b"
    at = {name: int(address, 16) for address, name in re.findall(wanted, names, re.M)}
    loaded = ctypes.cast(dll.MosaicGpuCompile, ctypes.c_void_p).value
    assert loaded is not None
    shift = loaded - at.pop("MosaicGpuCompile")
    for address in at.values():
        ctypes.CFUNCTYPE(None)(shift + address)()
    dll.MosaicGpuCompile.restype = ctypes.POINTER(ctypes.c_void_p)
    return dll


def compile_and_launch(dll: Any, driver: Any, name: str, out: Path) -> None:
    import numpy as np

    module, inputs, outputs = trace(*(lambda f, *shapes: (f, shapes))(*KERNELS[name]()))
    dump = out / name
    shutil.rmtree(dump, ignore_errors=True)
    dump.mkdir()
    os.environ["MOSAIC_GPU_DUMP_TO"] = str(dump)
    compiled = dll.MosaicGpuCompile(ctypes.c_char_p(module), ctypes.c_int(len(module)))
    if not compiled:
        raise RuntimeError("MosaicGpuCompile failed")
    text = next(dump.glob("*.ptx")).read_text()
    recorder = recording.Recorder(driver, lambda _entry: text, MULTIPROCESSORS)
    memory = []
    for kind in [*inputs, *outputs]:
        size = int(np.prod(kind.shape)) * kind.dtype.itemsize
        memory.append(ctypes.create_string_buffer(size + 1024))
        base = -(-ctypes.addressof(memory[-1]) // 1024) * 1024
        recorder.allocated(base, size)
    pointers = (ctypes.c_void_p * len(memory))(*(base for base, _ in recorder.buffers))
    start = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(compiled[1])
    start(compiled[0], None, ctypes.cast(pointers, ctypes.c_void_p))
    (launch,) = recorder.launches
    (out / f"{name}.ptx").write_text(text)
    (out / f"{name}.json").write_text(json.dumps(launch))


def main(out: Path) -> None:
    scratch = Path(os.environ["LD_LIBRARY_PATH"].split(":")[0])
    os.environ["JAX_PLATFORMS"] = "cpu"
    driver = ctypes.CDLL(str(scratch / "libcuda.so.1"), ctypes.RTLD_GLOBAL)
    import jax
    from jax.experimental.mosaic.gpu import core

    core._infer_arch = lambda: (10, 0)
    jax.local_devices = lambda: [SimpleNamespace(core_count=MULTIPROCESSORS)]
    dll = plugin()
    for name in sys.argv[2:] or KERNELS:
        try:
            compile_and_launch(dll, driver, name, out)
        except Exception as error:
            traceback.print_exc()
            (out / f"{name}.json").write_text(json.dumps({"error": f"{error!r}"[:300]}))


if __name__ == "__main__":
    if "TCIR_PEERS_CHILD" in os.environ:
        main(Path(sys.argv[1]))
    else:  # the loader reads LD_LIBRARY_PATH once, when a process starts
        with tempfile.TemporaryDirectory() as folder:
            recording.build(Path(folder))
            path = f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"
            environment = os.environ | {"LD_LIBRARY_PATH": path, "TCIR_PEERS_CHILD": "1"}
            sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)

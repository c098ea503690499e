"""The launcher: what it refuses, DLPack, and on a GPU the launches themselves."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir import runtime
from tcir.codegen import assemble
from tcir.errors import IncompleteError, InputError
from tcir.interp import OutputSpec
from tcir.program.launch import Launch, LaunchSequence
from tcir.runtime import dlpack
from tcir.runtime import launching as kernels
from tcir.runtime.module import architecture

from .programs import counted, pointer

PTX = Path(__file__).with_name("saxpy.ptx").read_text()


@cache
def cubin(target: str = "sm_90a") -> bytes:
    return assemble(PTX.replace("8.0", "8.8").replace("sm_90a", target), target=target).data


def has_gpu() -> bool:
    try:
        runtime.device()
    except IncompleteError:
        return False
    return True


# --- without a GPU -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_architecture_of_a_cubin(target: str) -> None:
    assert architecture(cubin(target)) == target.removesuffix("a")


@pytest.mark.parametrize("data", [b"", b".version 8.0", bytes(100)])
def test_no_cubin(data: bytes) -> None:
    with pytest.raises(InputError, match="expected a cubin"):
        architecture(data)


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_no_device_is_one_sentence() -> None:
    with pytest.raises(runtime.NoDeviceError, match="nothing can be launched") as caught:
        runtime.run_cubin(cubin(), entry="saxpy", grid=1, block=1)
    assert "\n" not in str(caught.value)


def test_imports_without_mlir() -> None:
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch_mlir', 'mlir', 'llvmlite', 'numba'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from tcir import runtime\n"
        "[getattr(runtime, name) for name in runtime.__all__]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_dlpack_view() -> None:
    array = np.arange(24, dtype=np.int16).reshape(4, 6)
    view = dlpack.view(array)
    assert (view.pointer, view.shape, view.dtype) == (array.ctypes.data, (4, 6), np.int16)
    assert view.contiguous and view.device_type == dlpack.CPU
    other = dlpack.view(array[:, ::2])
    assert other.strides == (6, 2) and not other.contiguous
    assert dlpack.view(array[1:]).pointer == array.ctypes.data + 12


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float16", "uint8"]
)
def test_dlpack_types_round_trip(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    memory = np.zeros(6, dtype)
    shared = SimpleNamespace(
        __dlpack__=lambda: dlpack.export(memory, memory.ctypes.data, (2, 3), dtype, (dlpack.CPU, 0))
    )
    view = dlpack.view(shared)
    assert (view.dtype, view.shape, view.strides) == (dtype, (2, 3), (3, 1))


def test_dlpack_export_keeps_the_owner_alive() -> None:
    class Owner(np.ndarray):
        """A weakly referable array."""

        def __dlpack__(self, **_: Any) -> Any:
            return dlpack.export(self, self.ctypes.data, self.shape, self.dtype, (dlpack.CPU, 0))

    owner = np.arange(12, dtype=np.float32).reshape(3, 4).view(Owner)
    alive = weakref.ref(owner)
    shared = np.from_dlpack(owner)
    del owner
    gc.collect()
    assert alive() is not None and shared.tolist() == np.arange(12).reshape(3, 4).tolist()
    del shared
    gc.collect()
    assert alive() is None and not dlpack._ALIVE


def test_capsule_that_nobody_takes_is_given_back() -> None:
    memory = np.zeros(3)
    capsule = dlpack.export(memory, memory.ctypes.data, (3,), memory.dtype, (dlpack.CPU, 0))
    assert dlpack._ALIVE
    del capsule
    gc.collect()
    assert not dlpack._ALIVE


class Stub:
    """What `runtime.launch` reads of a kernel."""

    name = "saxpy"
    f32 = np.dtype(np.float32)
    signature = SimpleNamespace(
        inputs=(OutputSpec((256,), f32),),
        outputs=(OutputSpec((256,), f32), OutputSpec((4,), np.dtype(np.uint32))),
    )
    launch_config = Launch("saxpy", (4, 1, 1), (64, 1, 1), 0, ())

    @property
    def launches(self) -> LaunchSequence:
        return LaunchSequence((self.launch_config,))

    @property
    def cubin(self) -> bytes:
        return cubin()


def arrays() -> list[Any]:
    return [np.ones(256, np.float32), np.ones(256, np.float32), np.zeros(4, np.uint32)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.pop(), r"expected 3 arrays \(float32\[256\], .*\), got 2"),
        (lambda a: a.__setitem__(0, np.ones(255, np.float32)), r"argument 0: expected .*\[256\]"),
        (lambda a: a.__setitem__(2, np.zeros(4, np.int32)), r"argument 2: .*uint32.*got int32"),
        (lambda a: a.__setitem__(1, [1.0] * 256), r"argument 1: expected a numpy array or one"),
        (
            lambda a: a.__setitem__(
                1, SimpleNamespace(__dlpack__=None, __dlpack_device__=lambda: (1, 0))
            ),
            "expected an array in CUDA device memory, got one of DLPack device type 1",
        ),
    ],
)
def test_wrong_arrays(change: Any, words: str) -> None:
    buffers = arrays()
    change(buffers)
    with pytest.raises(InputError, match=words):
        runtime.launch(Stub(), *buffers)  # type: ignore[arg-type]


def test_wrong_stream() -> None:
    with pytest.raises(InputError, match="stream: expected a handle"):
        runtime.launch(Stub(), *arrays(), stream="fast")  # type: ignore[arg-type]


def test_stream_handles() -> None:
    assert kernels.stream_handle(7) == 7
    assert kernels.stream_handle(SimpleNamespace(__cuda_stream__=lambda: (0, 9))) == 9
    assert kernels.stream_handle(SimpleNamespace(cuda_stream=11)) == 11
    assert kernels.stream_handle(SimpleNamespace(ptr=13)) == 13
    assert kernels.current_stream(arrays()) == 0


def test_workspace_on_the_machine() -> None:
    params = ({"kind": "pointer", "arg": 0}, {"kind": "workspace", "bytes": 64})
    sizes = replace(Stub.launch_config, params=params)
    first, second = sizes.arguments([np.zeros(4)], [])
    assert first.shape == (4,) and second.array.nbytes == 64


# --- with a GPU ----------------------------------------------------------------------------------


@pytest.fixture
def gpu() -> Any:
    try:
        found = runtime.device()
    except IncompleteError as error:
        pytest.skip(str(error))
    if found.capability != (9, 0):
        pytest.skip(f"expected a Hopper GPU (sm_90), got {found}")
    return found


def sizes() -> dict[str, Any]:
    return {"entry": "saxpy", "grid": 4, "block": 64}


@pytest.mark.gpu
def test_run_cubin(gpu: Any) -> None:
    x, y, seen = np.arange(256, dtype=np.float32), np.ones(256, np.float32), np.zeros(4, np.uint32)
    runtime.run_cubin(cubin(), args=[np.float32(2), x, y, seen], **sizes())
    assert (y == 2 * x + 1).all() and seen.tolist() == [0, 1, 2, 3]


@pytest.mark.gpu
def test_wrong_architecture(gpu: Any) -> None:
    with pytest.raises(runtime.WrongArchitectureError, match=r"\(sm_90\), got one for sm_100"):
        runtime.run_cubin(cubin("sm_100a"), **sizes())


@pytest.mark.gpu
def test_launches_that_are_refused(gpu: Any) -> None:
    args = [np.float32(2), *(np.ones(256, np.float32) for _ in range(3))]
    with pytest.raises(InputError, match=r"expected parameters of \(4, 8, 8, 8\) bytes"):
        runtime.run_cubin(cubin(), args=args[:3], **sizes())
    with pytest.raises(InputError, match="expected a kernel of this cubin, got 'saxpi'"):
        runtime.run_cubin(cubin(), args=args, **(sizes() | {"entry": "saxpi"}))
    with pytest.raises(runtime.LaunchFailedError, match="launch of @saxpy"):
        runtime.run_cubin(cubin(), args=args, **(sizes() | {"block": 2048}))
    with pytest.raises(InputError, match="expected at most 232448 bytes of shared memory"):
        runtime.run_cubin(cubin(), args=args, dynamic_smem=300 << 10, **sizes())


@pytest.mark.gpu
def test_a_fault_names_the_kernel(gpu: Any) -> None:
    """In a process of its own: a fault ends the use of the context."""
    code = (
        "import sys, numpy as np; from tcir import runtime\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "try: runtime.run_cubin(data, entry='saxpy', grid=1, block=1,\n"
        "    args=[np.float32(1), *[np.uint64(64)] * 3])\n"
        "except runtime.LaunchFailedError as error: print(error)\n"
    )
    path = Path(__file__).parent / "fault.cubin"
    path.write_bytes(cubin())
    try:
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    finally:
        path.unlink()
    assert "kernel @saxpy failed: CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout, done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_device_arrays_are_used_in_place(gpu: Any, library: str) -> None:
    module = pytest.importorskip(library)
    params = (
        {"kind": "workspace", "bytes": 4},  # in the place of `a`: any float will do
        {"kind": "pointer", "arg": 0},
        {"kind": "pointer", "arg": 1},
        {"kind": "pointer", "arg": 2},
    )
    stub = Stub()
    ptx = PTX.replace(".param .f32 a", ".param .u64 a").replace(
        "ld.param.f32 %f0, [a]", ("mov.f32 %f0, 0f40400000")
    )
    data = assemble(ptx, target="sm_90a").data
    stub.__class__ = type("Kernel", (Stub,), {"cubin": data})
    stub.launch_config = replace(Stub.launch_config, params=params)
    on = {"device": "cuda"} if library == "torch" else {}
    x = module.arange(256, dtype=module.float32, **on)
    y = module.ones(256, dtype=module.float32, **on)
    seen = runtime.to_device(np.zeros(4, np.uint32))
    runtime.launch(stub, x, y, seen)  # type: ignore[arg-type]
    assert bool((y == 3 * x + 1).all())
    assert seen.numpy().tolist() == [0, 1, 2, 3]
    host = np.ones(256, np.float32)
    runtime.launch(stub, x, host, np.zeros(4, np.uint32))  # type: ignore[arg-type]
    assert (host == 3 * np.arange(256) + 1).all()
    back = module.from_dlpack(seen)
    assert int(back[3]) == 3
    if library == "torch":
        stream = module.cuda.Stream()
        with module.cuda.stream(stream):
            y.fill_(2)
            runtime.launch(stub, x, y, seen)  # type: ignore[arg-type]
            assert kernels.current_stream([x]) == stream.cuda_stream
        stream.synchronize()
        assert bool((y == 3 * x + 2).all())
        with pytest.raises(InputError, match="expected a C-contiguous array"):
            wide = module.zeros(256, 2, device="cuda")[:, 0]
            runtime.launch(stub, wide, y, seen)  # type: ignore[arg-type]


@pytest.mark.gpu
def test_times(gpu: Any) -> None:
    function = runtime.load(cubin()).function("saxpy")
    memory = runtime.empty((256,), np.float32)
    value = memory.pointer.to_bytes(8, "little")
    values = [np.float32(0).tobytes(), value, value, value]
    times = runtime.measure(
        lambda: function.launch(values, grid=(4, 1, 1), block=(64, 1, 1)), repeats=5
    )
    assert len(times) == 5 and all(0 < t < 100 for t in times)


@pytest.mark.gpu
def test_a_sequence_with_a_workspace_between(gpu: Any) -> None:
    """First, on the stream; the second reads what the first left in the workspace."""
    one = (1, 1, 1)
    launches = (
        Launch("first", one, (32, 1, 1), 0, (pointer(0), pointer(2))),
        Launch("second", one, (32, 1, 1), 0, (pointer(2), pointer(1))),
    )
    x, y = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    runtime.launch(counted(("first", "second"), launches, (128,)), x, y)
    assert (y == x + 2).all()

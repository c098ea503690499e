"""The launcher on a driver without a GPU: what it tells it, and what it says of failures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcir
from tcir import runtime
from tcir.codegen import assemble
from tcir.errors import InputError, MissingDependencyError
from tcir.interp import OutputSpec
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.program.inputs import make_inputs
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.workspaces import Workspaces
from tcir.runtime import dlpack, driver

from . import fake_driver
from .programs import counted, pointer
from .test_cluster import TEXT, pipeline

CONV = """
func.func @conv(%x: tensor<1x8x16x64xf16>, %w: tensor<3x3x64x64xf16>) -> tensor<1x6x14x64xf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x6x14x64xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x6x14x64xf32>) -> tensor<1x6x14x64xf32>
  %out = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x8x16x64xf16>, tensor<3x3x64x64xf16>)
      outs(%init : tensor<1x6x14x64xf32>) -> tensor<1x6x14x64xf32>
  return %out : tensor<1x6x14x64xf32>
}
"""
SAXPY = Path(__file__).with_name("saxpy.ptx").read_text()


@pytest.fixture(autouse=True)
def afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # ends in front of it
    yield
    fake_driver.forget()


def on_fake_b200(monkeypatch: pytest.MonkeyPatch, kernel: Any) -> fake_driver.FakeDriver:
    """A device that has the kernels of `kernel`."""
    sizes = {
        launch.name: ([128 if p["kind"] == "tensor_map" else 8 for p in launch.params], kernel.ptx)
        for launch in kernel.launches.launches
    }
    return fake_driver.install(monkeypatch, sizes, (10, 0))


@pytest.mark.parametrize(
    ("program", "chosen"),
    [
        (TEXT, "matmul"),
        (TEXT, pipeline(2)),
        (TEXT, "matmul{programmatic=true}"),
        (CONV, "conv-implicit-gemm"),
        (CONV, "conv-shift-reuse"),
    ],
    ids=["matmul", "matmul in clusters", "programmatic", "conv-implicit-gemm", "conv-shift-reuse"],
)
def test_a_pipeline_through_the_launcher(
    monkeypatch: pytest.MonkeyPatch, program: str, chosen: Any
) -> None:
    """The bits of the machine, by way of driver calls alone; what it was told is what is in PTX."""
    kernel = tcir.compile(program, chosen)
    inputs = make_inputs(kernel.signature.inputs, 3, "integers")
    expected, got = (np.empty(s.shape, s.dtype) for s in 2 * kernel.signature.outputs)
    kernel(*inputs, expected)
    fake = on_fake_b200(monkeypatch, kernel)
    kernel.launch(*inputs, got)
    assert got.tobytes() == expected.tobytes()
    (launched,) = fake.launches
    sizes = kernel.launch_config
    for name in ("grid", "block", "cluster", "dynamic_smem", "programmatic"):
        assert getattr(launched, name) == getattr(sizes, name)
    if sizes.dynamic_smem > 48 << 10:
        assert ("MAX_DYNAMIC_SHARED_SIZE_BYTES", sizes.dynamic_smem) in fake.attributes
    directive = re.search(r"\.reqnctapercluster (\d+), (\d+), (\d+)", kernel.ptx)
    cluster = tuple(map(int, directive.groups())) if directive else (1, 1, 1)
    assert launched.cluster == cluster


NONE = """
func.func @f(%a: tensor<ROWSx0xf16>, %b: tensor<0x96xf16>, %c: tensor<ROWSx96xf32>)
    -> tensor<ROWSx96xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<ROWSx0xf16>, tensor<0x96xf16>)
      outs(%c : tensor<ROWSx96xf32>) -> tensor<ROWSx96xf32>
  return %y : tensor<ROWSx96xf32>
}
"""


@pytest.mark.parametrize("rows", [0, 40])
def test_without_elements(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """No grid is 0, and no allocation of 0 bytes is asked for; the accumulator is the result."""
    kernel = tcir.compile(NONE.replace("ROWS", str(rows)), "gemm")
    fake = on_fake_b200(monkeypatch, kernel)
    asked: list[int] = []
    allocate = fake._cuMemAlloc
    monkeypatch.setattr(
        fake, "_cuMemAlloc", lambda n: asked.append(n) or allocate(n), raising=False
    )
    a, b = np.empty((rows, 0), np.float16), np.empty((0, 96), np.float16)
    c = np.arange(rows * 96, dtype=np.float32).reshape(rows, 96)
    got = np.full_like(c, 77)
    kernel.launch(a, b, c, got)
    assert got.tobytes() == c.tobytes()
    assert [launched.grid for launched in fake.launches] == [(15, 1, 1)] * (rows > 0)
    assert 0 not in asked


PACK = """
func.func @f(%c: tensor<2x24xi8>) -> tensor<2x24xf4E2M1FN> {
  %a = "tc.pack_codes"(%c) : (tensor<2x24xi8>) -> tensor<2x24xf4E2M1FN>
  return %a : tensor<2x24xf4E2M1FN>
}
"""


def test_a_packed_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into an array of one element a byte, and into packed rows."""
    kernel = tcir.compile(PACK, ["convert-to-simt", *LOWER_TO_LLVM])
    on_fake_b200(monkeypatch, kernel)
    codes = np.arange(48, dtype=np.uint8).reshape(2, 24)
    elements = np.zeros((2, 24), kernel.signature.outputs[0].dtype)
    rows = np.zeros((2, 12), np.uint8)
    for result in (elements, rows):
        kernel.launch(codes.view(np.int8), result)
    assert (elements.view(np.uint8) == codes & 15).all()
    assert (rows == (codes[:, ::2] & 15 | codes[:, 1::2] << 4)).all()


TABLE = """
func.func @f(%x: tensor<2x24xf16>) -> tensor<2x24xf16> {
  %t = arith.constant dense<VALUES> : tensor<2x24xf16>
  %y = arith.addf %x, %t : tensor<2x24xf16>
  return %y : tensor<2x24xf16>
}
"""


def test_constants_are_brought_along(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.arange(1, 49, dtype=np.float16).reshape(2, 24)
    kernel = tcir.compile(TABLE.replace("VALUES", str(table.tolist())), "simt-elementwise")
    fake = on_fake_b200(monkeypatch, kernel)
    x, y = np.linspace(0, 47, 48, dtype=np.float16).reshape(2, 24), np.zeros((2, 24), np.float16)
    kernel.launch(x, y)
    assert (y == x + table).all()
    y[:] = 0
    kernel.launch(x, y)
    assert (y == x + table).all()
    tables = {int.from_bytes(launched.values[1], "little") for launched in fake.launches}
    assert len(tables) == 1 and not tables & set(fake.freed), "copied once"
    assert not kernel.launches.constants[0].flags.writeable
    with pytest.raises(InputError, match="expected 2 arrays"):
        kernel.launch(x, table, y)


# --- workspaces ----------------------------------------------------------------------------------


def test_two_launches_with_a_workspace_between(monkeypatch: pytest.MonkeyPatch) -> None:
    one = (1, 1, 1)
    launches = (
        Launch("first", one, (32, 1, 1), 0, (pointer(0), pointer(2))),
        Launch("second", one, (32, 1, 1), 0, (pointer(2), pointer(1))),
    )
    program = counted(("first", "second"), launches, (128,))
    fake = fake_driver.install(monkeypatch, {n: ([8, 8], program.ptx) for n in ("first", "second")})
    x, y = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    runtime.launch(program, x, y, stream=5)
    assert (y == x + 2).all()
    assert [launched.kernel for launched in fake.launches] == ["first", "second"]
    assert [launched.stream for launched in fake.launches] == [5, 5]
    assert fake.launches[0].values[1] == fake.launches[1].values[0]
    assert int.from_bytes(fake.launches[0].values[1], "little") in fake.freed


def test_workspaces_share_one_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the third one are never in use together."""
    names, chain = ("a", "b", "c", "d"), (0, 2, 3, 4, 1)
    launches = tuple(
        Launch(name, (1, 1, 1), (32, 1, 1), 0, (pointer(chain[n]), pointer(chain[n + 1])))
        for n, name in enumerate(names)
    )
    program = counted(names, launches, (128, 128, 128))
    planned = Workspaces((128, 128, 128), (0, 256, 0))
    program.launches = LaunchSequence(launches, planned)
    fake = fake_driver.install(monkeypatch, {n: ([8, 8], program.ptx) for n in names})
    x, y = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    runtime.launch(program, x, y)
    assert (y == x + 4).all()
    first, second, third = (
        int.from_bytes(launched.values[1], "little") for launched in fake.launches[:3]
    )
    assert (second - first, third) == (256, first)
    assert fake.workspaces.count(first) == 1 and first in fake.freed and second not in fake.freed


def test_a_workspace_of_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = {"kind": "workspace", "bytes": 128}
    launches = (Launch("fill", (1, 1, 1), (32, 1, 1), 0, (pointer(0), scratch)),)
    program = counted(("fill",), launches, ())
    fake = fake_driver.install(monkeypatch, {"fill": ([8, 8], program.ptx)})
    x = np.arange(32, dtype=np.uint32)
    runtime.launch(program, x, np.zeros(32, np.uint32))
    address = int.from_bytes(fake.launches[0].values[1], "little")
    assert (fake.memory[address].view(np.uint32) == x + 1).all()
    assert address in fake.freed


def test_a_workspace_is_freed_when_the_launch_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = {"kind": "workspace", "bytes": 128}
    launches = (Launch("fill", (1, 1, 1), (32, 1, 1), 0, (pointer(0), scratch)),)
    program = counted(("fill",), launches, ())
    fake = fake_driver.install(monkeypatch, {"fill": ([8, 8], program.ptx)})
    fake.fail["cuLaunchKernelEx"] = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
    with pytest.raises(runtime.LaunchFailedError, match=r"launch of @fill \(grid \(1, 1, 1\)"):
        runtime.launch(program, np.zeros(32, np.uint32), np.zeros(32, np.uint32))
    assert len(fake.workspaces) == 1 and fake.workspaces[0] in fake.freed


# --- arrays of others, streams, time --------------------------------------------------------------


class OnDevice:
    """An array of another library, in device memory."""

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        self.memory, self.asked = memory, 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, 0

    def __dlpack__(self, *, stream: int) -> Any:
        self.asked = stream
        m = self.memory
        return dlpack.export(m, m.ctypes.data, m.shape, m.dtype, (dlpack.CUDA, 0))


def test_device_arrays_are_used_in_place_on_their_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = (Launch("add", (1, 1, 1), (32, 1, 1), 0, (pointer(0), pointer(1))),)
    program = counted(("add",), launches, ())
    fake = fake_driver.install(monkeypatch, {"add": ([8, 8], program.ptx)})
    x, y = (OnDevice(np.arange(32, dtype=np.uint32)) for _ in range(2))
    for array in (x, y):
        fake.memory[array.memory.ctypes.data] = array.memory.view(np.uint8)
    stream = SimpleNamespace(__cuda_stream__=lambda: (0, 77))
    runtime.launch(program, x, y, stream=stream)
    assert (y.memory == x.memory + 1).all()
    assert fake.launches[0].stream == 77 and x.asked == y.asked == 77
    assert fake.launches[0].values == [a.memory.ctypes.data.to_bytes(8, "little") for a in (x, y)]


def test_times_are_those_between_events(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_driver.install(monkeypatch, {})
    told: list[Any] = []
    numbers = iter(range(100))
    fake.__dict__["_cuEventCreate"] = lambda flags: (next(numbers),)
    fake.__dict__["_cuEventRecord"] = lambda event, stream: told.append((event, stream)) or ()
    fake.__dict__["_cuEventElapsedTime"] = lambda start, stop: (float(10 * start + stop),)
    times = runtime.measure(lambda: told.append("launch"), repeats=2, warmup=1, stream=9)
    assert told == ["launch", (0, 9), "launch", (1, 9), (2, 9), "launch", (3, 9)]
    assert times == [1.0, 23.0]


# --- failures -------------------------------------------------------------------------------------


def test_a_cubin_for_another_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch, {"saxpy": ([4, 8, 8, 8], SAXPY)}, (9, 0))
    cubin = assemble(SAXPY.replace("8.0", "8.8").replace("sm_90a", "sm_100a"), "sm_100a").data
    words = r"expected a cubin for Fake \(sm_90\), got one for sm_100: .*simulated machine"
    with pytest.raises(runtime.WrongArchitectureError, match=words):
        runtime.run_cubin(cubin, entry="saxpy", grid=1, block=1)


def test_a_fault_names_the_kernels_since_the_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = (Launch("add", (1, 1, 1), (32, 1, 1), 0, (pointer(0), pointer(1))),)
    program = counted(("add",), launches, ())
    fake = fake_driver.install(monkeypatch, {"add": ([8, 8], program.ptx)})
    runtime.launch(program, np.zeros(32, np.uint32), np.zeros(32, np.uint32))
    x = runtime.to_device(np.zeros(32, np.uint32))
    y = runtime.to_device(np.zeros(32, np.uint32))
    function = runtime.load(program.cubin).function("add")
    values = [a.pointer.to_bytes(8, "little") for a in (x, y)]
    function.launch(values, grid=(1, 1, 1), block=(32, 1, 1))
    fake.fail["cuStreamSynchronize"] = "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(runtime.LaunchFailedError, match=r"kernel @add failed: .*ILLEGAL_ADDRESS"):
        runtime.synchronize()


def test_too_large_a_cluster_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_driver.install(monkeypatch, {"saxpy": ([], SAXPY)})
    cubin = assemble(SAXPY, "sm_90a").data
    fake.fail["cuLaunchKernelEx"] = "CUDA_ERROR_INVALID_CLUSTER_SIZE"
    with pytest.raises(runtime.LaunchFailedError, match=r"cluster \(16, 1, 1\).*INVALID_CLUSTER"):
        runtime.run_cubin(cubin, entry="saxpy", grid=16, block=32, cluster=16)
    assert ("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1) in fake.attributes


def test_without_cuda_python(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    original = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("cuda"):
            raise ImportError(f"no {name}")
        return original(name, *rest)

    driver.bindings.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r"pip install cuda-python"):
        driver.bindings()


def test_a_device_number_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch, {})
    with pytest.raises(runtime.NoDeviceError, match="numbered below 1, got 3"):
        runtime.device(3)


def test_packed_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """fp4 from numpy is packed on the way; on the device it has to be packed already."""
    import ml_dtypes

    f4 = np.dtype(ml_dtypes.float4_e2m1fn)
    launches = (Launch("add", (1, 1, 1), (4, 1, 1), 0, (pointer(0), pointer(1))),)
    program = counted(("add",), launches, ())
    program.signature.inputs = (OutputSpec((4, 8), f4),)
    program.signature.outputs = (OutputSpec((4,), np.dtype(np.uint32)),)
    fake = fake_driver.install(monkeypatch, {"add": ([8, 8], program.ptx)})
    codes = np.arange(32, dtype=np.uint8).reshape(4, 8) % 16
    y = np.zeros(4, np.uint32)
    runtime.launch(program, codes.view(f4), y)
    packed = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)
    assert (y == packed.view(np.uint32).ravel() + 1).all()
    again = np.zeros(4, np.uint32)
    runtime.launch(program, packed, again)
    assert (again == y).all()
    image = OnDevice(packed)
    fake.memory[packed.ctypes.data] = packed.reshape(-1)
    third = np.zeros(4, np.uint32)
    runtime.launch(program, image, third)
    assert (third == y).all()
    with pytest.raises(InputError, match=r"argument 0: expected an array int8\[4, 4\], got"):
        runtime.launch(program, OnDevice(codes.view(f4)), y)

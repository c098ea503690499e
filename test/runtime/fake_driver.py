"""A CUDA driver without a GPU, for tests: memory is the host's, launches run on the machine.

Enumerations and structures are those of cuda-python. A kernel's parameters are read from the
pointers that the launcher passes; the PTX it came from is executed by `tcir.run_ptx` on arrays over
the memory "on the device".
"""

from __future__ import annotations

import ctypes
import gc
import traceback
from copy import copy
from typing import Any

import numpy as np
import pytest

from tcir import runtime
from tcir.machine import TensorMap
from tcir.run import run_ptx
from tcir.runtime import devices, driver, launch_graph, launch_list, module, tensor_map

NATIVE = {
    (b"cuLaunchKernelEx", 11060): 4,
    (b"cuGraphLaunch", 10000): 2,
    (b"cuCtxPushCurrent", 4000): 1,
    (b"cuCtxPopCurrent", 4000): 1,
}
"""Functions that are called as C calls them, by name and version: the number of arguments."""


class Launched:
    """Arguments of one launch that the driver received."""

    def __init__(self, kernel: str, config: Any, values: list[bytes]) -> None:
        self.kernel, self.values = kernel, values
        self.grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        self.block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        self.dynamic_smem = config.sharedMemBytes
        self.stream = int(config.hStream)
        self.cluster, self.programmatic = (1, 1, 1), False
        for attribute in _attributes(config):
            if attribute.id.name == "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION":
                size = attribute.value.clusterDim
                self.cluster = (size.x, size.y, size.z)
            else:
                assert attribute.id.name.endswith("PROGRAMMATIC_STREAM_SERIALIZATION")
                self.programmatic = attribute.value.programmaticStreamSerializationAllowed == 1


def _attributes(config: Any) -> list[Any]:
    """The attributes of a launch, which cuda-python does not read from memory (cuda.h: `attrs` is
    at byte 40 of CUlaunchConfig; a CUlaunchAttribute has 72 bytes)."""
    from cuda.bindings import driver as real

    first = ctypes.c_uint64.from_address(config.getPtr() + 40).value
    return [real.CUlaunchAttribute(_ptr=first + 72 * n) for n in range(config.numAttrs)]


class FakeDriver:
    """`cuda.bindings.driver` for one device; `kernels`: name -> (bytes of each parameter, PTX)."""

    def __init__(self, capability: tuple[int, int], kernels: dict[str, tuple[list[int], str]]):
        from cuda.bindings import driver as real

        self.real, self.capability, self.kernels = real, capability, kernels
        self.memory: dict[int, Any] = {}
        self.maps: dict[bytes, Any] = {}
        self.launches: list[Launched] = []
        self.attributes: list[tuple[str, int]] = []
        self.workspaces: list[int] = []
        self.freed: list[int] = []
        self.fail: dict[str, str] = {}
        self.old = False  # a driver older than the toolkit of every cubin
        self.loaded: list[bytes] = []
        self.native: dict[bytes, Any] = {}
        self.errors: list[BaseException] = []
        self.contexts: list[int] = []
        self.captured: list[Launched] | None = None  # between the begin and the end of a capture
        self.side: int | None = None  # a stream that is captured for a graph of the launcher's own
        self.graphs: dict[int, list[Launched]] = {}  # executable ones
        self.made = iter(range(1 << 20, 1 << 21))  # handles of streams and graphs

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu") or name[2:3].islower():
            return getattr(self.real, name)
        return lambda *a: self._call(name, *a)

    def _call(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        codes = self.real.CUresult
        if name in self.fail:
            return (getattr(codes, self.fail[name]),)
        found = getattr(self, f"_{name}", lambda *a: ())(*arguments)
        if isinstance(found, codes):
            return (found,)
        return (codes.CUDA_SUCCESS, *found)

    # --- device, modules -----------------------------------------------------------------------

    def _cuDeviceGetCount(self) -> Any:
        return (1,)

    def _cuDeviceGet(self, ordinal: int) -> Any:
        return (ordinal,)

    def _cuDeviceGetName(self, size: int, handle: int) -> Any:
        return (b"Fake" + bytes(size - 4),)

    def _cuDevicePrimaryCtxRetain(self, handle: int) -> Any:
        return (1,)

    def _cuDriverGetVersion(self) -> Any:
        return (13000,)

    def _cuDeviceGetAttribute(self, attribute: Any, handle: int) -> Any:
        values = {
            "COMPUTE_CAPABILITY_MAJOR": self.capability[0],
            "COMPUTE_CAPABILITY_MINOR": self.capability[1],
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
            "MULTIPROCESSOR_COUNT": 148,
            "CLOCK_RATE": 1965000,
            "MEMORY_CLOCK_RATE": 3996000,
        }
        return (values[attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")],)

    def _cuDeviceTotalMem(self, handle: int) -> Any:
        return (180 << 30,)

    def _cuGetErrorString(self, status: Any) -> Any:
        return (f"words of {status.name}".encode(),)

    def _cuModuleLoadData(self, image: bytes) -> Any:
        mine = f"sm_{self.capability[0]}{self.capability[1]}"
        self.loaded.append(image)
        if not image.startswith(b"\x7fELF"):
            assert image.endswith(b"\0") and f".target {mine}".encode() in image
            return ("module",)
        if self.old or module.architecture(image) != mine:
            return self.real.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
        return ("module",)

    def _cuModuleGetFunction(self, handle: Any, name: bytes) -> Any:
        if name.decode() not in self.kernels:
            return self.real.CUresult.CUDA_ERROR_NOT_FOUND
        return (1 + list(self.kernels).index(name.decode()),)

    def _cuFuncGetAttribute(self, attribute: Any, function: int) -> Any:
        return (32 if attribute.name.endswith("NUM_REGS") else 0,)

    def _cuFuncSetAttribute(self, function: int, attribute: Any, value: int) -> Any:
        self.attributes.append((attribute.name.removeprefix("CU_FUNC_ATTRIBUTE_"), value))
        return ()

    def _cuFuncGetParamInfo(self, function: int, index: int) -> Any:
        sizes = self.kernels[self._name(function)][0]
        if index >= len(sizes):
            return self.real.CUresult.CUDA_ERROR_INVALID_VALUE
        return (0, sizes[index])

    # --- memory --------------------------------------------------------------------------------

    def _cuMemAlloc(self, size: int) -> Any:
        array = np.full(size + 512, 0xCB, np.uint8)
        address = -(-array.ctypes.data // 256) * 256
        self.memory[address] = array[address - array.ctypes.data :][:size]
        return (address,)

    def _cuMemAllocAsync(self, size: int, stream: int) -> Any:
        (address,) = self._cuMemAlloc(size)
        self.workspaces.append(address)
        return (address,)

    def _cuMemFree(self, address: int) -> Any:
        self.freed.append(int(address))
        return ()

    def _cuMemFreeAsync(self, address: int, stream: int) -> Any:
        return self._cuMemFree(address)

    def _cuMemcpyHtoDAsync(self, to: int, source: int, size: int, stream: int) -> Any:
        ctypes.memmove(to, source, size)
        return ()

    def _cuMemcpyDtoHAsync(self, to: int, source: int, size: int, stream: int) -> Any:
        ctypes.memmove(to, source, size)
        return ()

    # --- launches ------------------------------------------------------------------------------

    def _cuGetProcAddress(self, name: bytes, version: int, flags: int) -> Any:
        """The function as C calls it; an exception in it is in `errors`."""
        assert (name, version) in NATIVE, (name, version)
        if name not in self.native:
            work = getattr(self, f"_{name.decode()}")

            def run(*arguments: int | None) -> int:
                if name.decode() in self.fail:
                    return int(getattr(self.real.CUresult, self.fail[name.decode()]))
                try:
                    work(*arguments)
                except BaseException as error:
                    traceback.print_exception(error)  # it cannot pass through the caller in C
                    self.errors.append(error)
                    return int(self.real.CUresult.CUDA_ERROR_UNKNOWN)
                return 0

            pointers = [ctypes.c_void_p] * NATIVE[name, version]
            self.native[name] = ctypes.CFUNCTYPE(ctypes.c_int, *pointers)(run)
        return (ctypes.cast(self.native[name], ctypes.c_void_p).value, None)

    def _cuCtxSetCurrent(self, context: int) -> Any:
        self.contexts[-1:] = [context]
        return ()

    def _cuCtxPushCurrent(self, context: int) -> None:
        assert context == 1
        self.contexts.append(context)

    def _cuCtxPopCurrent(self, popped: int) -> None:
        self.contexts.pop()

    def _name(self, function: int) -> str:
        return list(self.kernels)[function - 1]

    def _cuLaunchKernelEx(self, at: int, handle: int, params: int, extra: int | None) -> None:
        config, function = self.real.CUlaunchConfig(_ptr=at), self._name(handle)
        assert self.contexts and extra is None
        sizes, _ = self.kernels[function]
        pointers = ctypes.cast(params, ctypes.POINTER(ctypes.c_void_p))
        values = [ctypes.string_at(pointers[n] or 0, size) for n, size in enumerate(sizes)]
        launched = Launched(function, config, values)
        if launched.stream == self.side:
            self.recorded.append(launched)
            return
        self.launches.append(launched)
        if self.captured is None:
            self.execute(launched)
        else:
            self.captured.append(launched)

    # --- graphs of the launcher's own ----------------------------------------------------------

    def _cuStreamCreate(self, flags: Any) -> Any:
        return (next(self.made),)

    def _cuStreamBeginCapture(self, stream: int, mode: Any) -> Any:
        assert self.side is None and self.captured is None
        self.side, self.recorded = stream, []
        return ()

    def _cuStreamEndCapture(self, stream: int) -> Any:
        assert self.side == stream
        self.side = None
        return (self.recorded,)

    def _cuGraphInstantiate(self, graph: list[Launched], flags: int) -> Any:
        handle = next(self.made)
        self.graphs[handle] = graph
        return (handle,)

    def _cuGraphExecDestroy(self, handle: int) -> Any:
        del self.graphs[handle]
        return ()

    def _cuGraphLaunch(self, handle: int, stream: int | None) -> None:
        assert self.contexts and self.captured is None
        for each in self.graphs[handle]:
            launched = copy(each)
            launched.stream = stream or 0
            self.launches.append(launched)
            self.execute(launched)

    def execute(self, launched: Launched) -> None:
        """A launch on the machine."""
        report = run_ptx(
            self.kernels[launched.kernel][1],
            entry=launched.kernel,
            grid=launched.grid,
            block=launched.block,
            cluster=launched.cluster,
            dynamic_smem=launched.dynamic_smem,
            programmatic=launched.programmatic,
            args=[self._argument(value) for value in launched.values],
        )
        assert report.ok and not report.incomplete, str(report)

    def _argument(self, value: bytes) -> Any:
        if value in self.maps:
            fields, address = self.maps[value]
            return TensorMap(self._array(address), fields)
        if len(value) > 8:
            return self._parts(value)
        found = self._array(int.from_bytes(value, "little"))
        return value if found is None else found

    def _array(self, address: int) -> Any:
        """The memory from an address on; None where there is none."""
        for base, array in self.memory.items():
            if base <= address < base + array.size:
                return array[address - base :]
        return None

    def _parts(self, value: bytes) -> list[Any]:
        """A struct: the tensor maps and pointers in it, and the bytes between them."""
        out, at = [], 0
        while at < len(value):
            size = 128 if value[at : at + 128] in self.maps else 8
            piece = value[at : at + size]
            out.append(self._argument(piece))
            at += size
        return out


def install(
    monkeypatch: pytest.MonkeyPatch,
    kernels: dict[str, tuple[list[int], str]],
    capability: tuple[int, int] = (9, 0),
) -> FakeDriver:
    """Puts the driver in the place of cuda-python's for one test."""
    fake = FakeDriver(capability, kernels)
    for where in (driver, devices, module, tensor_map, launch_list, launch_graph):
        monkeypatch.setattr(where, "bindings", lambda: fake)
    devices.device.cache_clear()
    runtime.load.cache_clear()
    module._SHARED.clear()

    def encode(fields: Any, address: int) -> bytes:
        key = (b"map" + len(fake.maps).to_bytes(2, "little")).ljust(128, b"\xff")
        fake.maps[key] = fields, address
        return key

    for where in ("launch_list", "cubin"):
        monkeypatch.setattr(f"tcir.runtime.{where}.encode", encode)
    return fake


def forget() -> None:
    """What was cached of the fake device; called while it is there, as modules in cycles would be
    unloaded by a real driver later."""
    runtime.load.cache_clear()
    module._SHARED.clear()
    devices.device.cache_clear()
    gc.collect()
    gc.freeze()  # what stays need not be visited again

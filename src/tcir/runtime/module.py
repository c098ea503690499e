"""Loads cubins and launches their kernels."""

from __future__ import annotations

import contextlib
import ctypes
import re
import struct
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tcir.errors import Error, InputError
from tcir.runtime.devices import Device, device
from tcir.runtime.driver import CudaError, bindings, call, failed, native
from tcir.target import EMULATED, EMULATING, architecture_of

Triple = tuple[int, int, int]

#: Shared memory a CTA may have without asking for more (CUDA C++ Programming Guide, "Technical
#: Specifications per Compute Capability").
DEFAULT_SHARED = 48 << 10
#: CTAs of a cluster that every device with clusters accepts; more need a function attribute.
PORTABLE_CLUSTER = 8


class WrongArchitectureError(InputError):
    """Raised for a cubin whose architecture is not the device's."""


class DriverTooOldError(InputError):
    """Raised for code whose toolkit is newer than the driver supports."""


class LaunchFailedError(Error):
    """Raised if a launch was rejected or its kernel faulted; the message names the kernel."""

    exit_code = 1


def architecture(cubin: bytes) -> str:
    """Architecture ``sm_<number>`` of a cubin, from its ELF header. `InputError` for data that is
    not a cubin.

    The number is in bits 15..8 of e_flags from ELF ABI version 8 (CUDA 13) on, and in bits 7..0
    before (LLVM, BinaryFormat/ELF.h, EF_CUDA_SM).
    """
    if len(cubin) < 64 or cubin[:4] != b"\x7fELF" or cubin[18:20] != b"\xbe\x00":
        raise InputError(
            f"expected a cubin (an ELF file for EM_CUDA), got {len(cubin)} bytes starting "
            f"{cubin[:8].hex(' ')}"
        )
    (flags,) = struct.unpack_from("<I", cubin, 48)
    return f"sm_{flags >> 8 & 0xFF if cubin[8] >= 8 else flags & 0xFF}"


#: What a driver answers to code that it does not know.
_REFUSED = tuple(
    f"CUDA_ERROR_{name}"
    for name in (
        "NO_BINARY_FOR_GPU", "INVALID_SOURCE", "INVALID_IMAGE", "INVALID_PTX",
        "UNSUPPORTED_PTX_VERSION", "JIT_COMPILER_NOT_FOUND",
    )
)  # fmt: skip
#: The first CUDA whose driver compiles a version of PTX (PTX ISA, "Release Notes").
_PTX_SINCE = {"8.6": "12.7", "8.7": "12.8", "8.8": "12.9", "9.0": "13.0", "9.1": "13.1"}


def _made(image: bytes) -> tuple[str, str]:
    """The architecture of a cubin or of PTX, and the CUDA version that it needs."""
    version = re.search(rb"^\s*\.version\s+(\S+)", image, re.M)
    target = re.search(rb"^\s*\.target\s+(sm_\d+)", image, re.M)
    if image[:4] == b"\x7fELF" or not (version and target):
        return architecture(image), "13.0" if image[8] >= 8 else "12.0"
    return target[1].decode(), _PTX_SINCE.get(version[1].decode(), "13.0")


class Module:
    """A cubin (or PTX that ends with a zero byte) that is loaded on a device. It is unloaded by
    `close`, or when the object is deleted.
    """

    def __init__(self, image: bytes, on: Device | None = None) -> None:
        self.device = on or device()
        self.handle: Any = None
        self.architecture, since = _made(image)
        self.device.activate()
        try:
            self.handle = call("cuModuleLoadData", image)
        except CudaError as error:
            if self.architecture != self.device.architecture:
                made_for = self.architecture, self.device.architecture
                emulated = made_for == tuple(map(architecture_of, (EMULATED, EMULATING)))
                raise WrongArchitectureError(
                    f"expected a cubin for {self.device}, got one for {self.architecture}: machine "
                    "code runs on its own architecture only; "
                    f"{'emulate=True runs it here by emulation; or ' if emulated else ''}compile "
                    f"for this one, or execute the PTX on the simulated machine ({error.code})"
                ) from None
            if error.code in _REFUSED:
                kind = "cubin" if image[:4] == b"\x7fELF" else "PTX"
                knows = f"{self.device.driver // 1000}.{self.device.driver % 1000 // 10}"
                raise DriverTooOldError(
                    f"expected a driver of CUDA {since} or later for this {kind}, got one of CUDA "
                    f"{knows} (nvidia-smi shows it), which rejects it: {error.code}"
                ) from None
            raise
        self._functions: dict[str, LoadedFunction] = {}

    def function(self, name: str) -> LoadedFunction:
        """The kernel called `name`."""
        if name not in self._functions:
            self.device.activate()
            try:
                handle = call("cuModuleGetFunction", self.handle, name.encode())
            except CudaError as error:
                raise InputError(
                    f"expected a kernel of this cubin, got '{name}' ({error.code})"
                ) from None
            self._functions[name] = LoadedFunction(self, name, handle)
        return self._functions[name]

    def write(self, name: str, value: np.generic) -> None:
        """Sets a variable of the module."""
        self.device.activate()
        try:
            address, size = call("cuModuleGetGlobal", self.handle, name.encode())
        except CudaError as error:
            raise InputError(
                f"expected a variable of this cubin, got '{name}' ({error.code})"
            ) from None
        if size != value.nbytes:
            raise InputError(f"{name}: expected {size} bytes, got {value.nbytes}")
        call("cuMemcpyHtoD", address, value.tobytes(), value.nbytes)

    def close(self) -> None:
        """Unloads the cubin after waiting until the device is idle."""
        handle, self.handle = self.handle, None
        if handle is not None:
            self.device.activate()
            call("cuCtxSynchronize")
            call("cuModuleUnload", handle)

    def __del__(self) -> None:
        # At interpreter exit, or after a fault of the device, there is nothing left to unload.
        with contextlib.suppress(Exception):
            self.close()


_SHARED: WeakValueDictionary[tuple[bytes, int], Module] = WeakValueDictionary()
"""Loaded modules that are in use, by the code and the number of the device."""


def shared(cubin: bytes, on: Device) -> Module:
    """The module of `cubin` on the device. It is loaded once, shared by all its users, and unloaded
    when the last user has released it.
    """
    key = cubin, on.ordinal
    found = _SHARED.get(key)
    return _SHARED.setdefault(key, Module(cubin, on)) if found is None else found


@lru_cache(maxsize=256)
def load(cubin: bytes, on: Device | None = None) -> Module:
    """Loads `cubin`, or returns the module that an earlier call loaded."""
    return shared(cubin, on or device())


def load_or_compile(cubin: bytes, ptx: str, on: Device) -> tuple[Module, str]:
    """Loads the cubin. If the driver is older than the cubin's toolkit, loads the PTX instead,
    which the driver compiles. Returns the module, and a text that says which of the two was loaded.
    """
    try:
        return load(cubin, on), "cubin"
    except DriverTooOldError as error:
        return load(ptx.encode() + b"\0", on), f"PTX, compiled by the driver ({error})"


class LoadedFunction:
    """A kernel of a module, with the sizes of its parameters and of its static shared memory in
    bytes."""

    def __init__(self, module: Module, name: str, handle: Any) -> None:
        self.module, self.name, self.handle = module, name, handle
        self.parameter_bytes = self._parameters()
        self.static_smem = self._attribute("SHARED_SIZE_BYTES")
        self.registers = self._attribute("NUM_REGS")
        self._dynamic_smem = 0
        self._large_clusters = False

    def _attribute(self, name: str) -> int:
        attribute = getattr(bindings().CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(call("cuFuncGetAttribute", attribute, self.handle))

    def _parameters(self) -> tuple[int, ...]:
        sizes: list[int] = []
        while True:
            try:
                _, size = call("cuFuncGetParamInfo", self.handle, len(sizes))
            except CudaError as error:
                if error.code != "CUDA_ERROR_INVALID_VALUE":
                    raise
                return tuple(sizes)
            sizes.append(int(size))

    def _allow(self, dynamic_smem: int, cluster: Triple) -> None:
        """Sets the kernel attributes that exceed the defaults of a launch."""
        attributes = bindings().CUfunction_attribute
        total = self.static_smem + dynamic_smem
        if total > DEFAULT_SHARED and dynamic_smem > self._dynamic_smem:
            most = self.module.device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
            if total > most:
                raise InputError(
                    f"@{self.name}: expected at most {most} bytes of shared memory per CTA on "
                    f"{self.module.device}, got {self.static_smem} static and {dynamic_smem} "
                    "dynamic"
                )
            which = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call("cuFuncSetAttribute", self.handle, which, dynamic_smem)
            self._dynamic_smem = dynamic_smem
        if cluster[0] * cluster[1] * cluster[2] > PORTABLE_CLUSTER and not self._large_clusters:
            which = attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            call("cuFuncSetAttribute", self.handle, which, 1)
            self._large_clusters = True

    def configured(
        self,
        *,
        grid: Triple,
        block: Triple,
        cluster: Triple = (1, 1, 1),
        dynamic_smem: int = 0,
        programmatic: bool = False,
        stream: int = 0,
    ) -> Any:
        """The CUlaunchConfig of a launch; also sets the kernel attributes that the launch needs.
        The arguments are those of `launch`.
        """
        self.module.device.activate()
        driver = bindings()
        self._allow(dynamic_smem, cluster)
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes = dynamic_smem
        config.hStream = driver.CUstream(stream)
        config.attrs = _launch_attributes(cluster, programmatic)
        config.numAttrs = len(config.attrs)
        return config

    def check_parameters(self, sizes: tuple[int, ...]) -> None:
        """Raises `InputError` unless the parameters have these sizes in bytes."""
        if sizes != self.parameter_bytes:
            raise InputError(
                f"@{self.name}: expected parameters of {self.parameter_bytes} bytes, got {sizes}"
            )

    def rejected(self, config: Any, status: int) -> LaunchFailedError:
        """Returns the error for a launch that the driver rejected with `status`."""
        grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        return LaunchFailedError(
            f"launch of @{self.name} (grid {grid}, block {block}, cluster {_cluster(config)}, "
            f"{config.sharedMemBytes} bytes of dynamic shared memory, {self.registers} registers "
            f"per thread) on {self.module.device}: {failed('cuLaunchKernelEx', status)}"
        )

    def launch(
        self,
        values: Sequence[bytes],
        *,
        grid: Triple,
        block: Triple,
        cluster: Triple = (1, 1, 1),
        dynamic_smem: int = 0,
        programmatic: bool = False,
        stream: int = 0,
    ) -> None:
        """Puts a launch on `stream`; `values` are the parameters' bytes, in order.

        programmatic: whether the launch may start before the previous one on the stream has ended

        `LaunchFailedError` if the driver rejects the launch. A fault of the kernel is reported
        later, by `synchronize`.
        """
        self.check_parameters(tuple(len(value) for value in values))
        config = self.configured(
            grid=grid,
            block=block,
            cluster=cluster,
            dynamic_smem=dynamic_smem,
            programmatic=programmatic,
            stream=stream,
        )
        held = [ctypes.create_string_buffer(value, len(value)) for value in values]
        pointers = (ctypes.c_void_p * max(1, len(held)))(*[ctypes.addressof(h) for h in held])
        launch = native(*LAUNCH, 4)
        if status := launch(config.getPtr(), int(self.handle), ctypes.addressof(pointers), None):
            raise self.rejected(config, status)
        LAUNCHED.append(self.name)


LAUNCH = ("cuLaunchKernelEx", 11060)
"""Arguments of `entry` for the function that launches a kernel. Its own are the addresses of a
CUlaunchConfig, of a CUfunction, and of the parameters' addresses, and no other form of them."""


def _cluster(config: Any) -> Triple:
    which = bindings().CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    for attribute in config.attrs[: config.numAttrs]:
        if attribute.id == which:
            size = attribute.value.clusterDim
            return size.x, size.y, size.z
    return 1, 1, 1


def _launch_attributes(cluster: Triple, programmatic: bool) -> list[Any]:
    """Attributes of a launch that are not defaults."""
    driver = bindings()
    made = []
    if cluster != (1, 1, 1):
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = cluster
        made.append(attribute)
    if programmatic:
        which = "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
        attribute = driver.CUlaunchAttribute()
        attribute.id = getattr(driver.CUlaunchAttributeID, which)
        attribute.value.programmaticStreamSerializationAllowed = 1
        made.append(attribute)
    return made


LAUNCHED: deque[str] = deque(maxlen=64)
"""The last kernels launched since the last synchronisation: candidates for a fault."""


def synchronize(stream: int = 0) -> None:
    """Waits for `stream`. If a kernel faulted, raises `LaunchFailedError`, which names the kernels
    launched since the last synchronisation.
    """
    try:
        call("cuStreamSynchronize", bindings().CUstream(stream))
    except CudaError as error:
        names = list(dict.fromkeys(LAUNCHED)) or ["(none by tcir)"]
        raise LaunchFailedError(
            f"kernel {', '.join('@' + n for n in names[-4:])} failed: {error.code} "
            f"({error.words}); the CUDA context of this process is unusable now"
        ) from None
    finally:
        LAUNCHED.clear()

"""The CUDA runtime that CuTe DSL's host code calls; the simulated machine executes its launches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from cutlass._mlir import execution_engine

from tcir.cuda.module import Module
from tcir.cuda.tensor_maps import encoded
from tcir.cute.bindings import Copies
from tcir.cute.memory import DlpackMemory
from tcir.cute.tensor_maps import MAP_BYTES, with_machine_maps
from tcir.doors.launches import DoorLaunch, Launches
from tcir.doors.limits import RefusedError
from tcir.errors import IncompleteError, LaunchError

INVALID_VALUE, NOT_FOUND, LAUNCH_FAILURE, NOT_SUPPORTED = 1, 500, 719, 801
"""Values of cudaError_t."""
COOPERATIVE, CLUSTER, PROGRAMMATIC = 2, 4, 6
"""Values of cudaLaunchAttributeID."""
_C = ctypes
_INT, _AT = _C.c_int, _C.c_void_p
_ENCODE = (_AT, _INT, _C.c_uint32, *[_AT] * 5, *[_INT] * 4)
_DONE = (
    "_cudaStreamDestroy", "_cudaStreamSynchronize", "_cudaStreamWaitEvent", "_cudaEventDestroy",
    "_cudaEventQuery", "_cudaEventRecord", "_cudaEventRecordWithFlags", "_cudaEventSynchronize",
    "_cudaLibraryUnload", "_cudaProfilerStart", "_cudaProfilerStop",
)  # fmt: skip
"""Functions without effect here: they return success."""
UNKNOWN = {
    "_cuLibraryGetGlobal",
    "_cuLibraryGetManaged",
    "_cuTensorMapReplaceAddress",
    "_cudaEventElapsedTime",
    "_cudaGetDeviceProperties",
    "_cudaGraphAddKernelNode",
    "_cudaGraphCreate",
    "_cudaGraphDestroy",
    "_cudaGraphExecDestroy",
    "_cudaGraphInstantiate",
    "_cudaGraphKernelNodeGetAttribute",
    "_cudaGraphKernelNodeSetAttribute",
    "_cudaGraphLaunch",
    "_cudaLaunchKernel",
    "_cudaLibraryGetGlobal",
    "_cudaLibraryGetKernelCount",
    "_cudaLibraryGetManaged",
    "_cudaLibraryGetUnifiedFunction",
    "_cudaLibraryLoadFromFile",
    "_cudaMallocHost",
    "_cudaMallocManaged",
    "_cudaFreeHost",
    "_cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "_cudaStreamAddCallback",
    "_cudaStreamBeginCapture",
    "_cudaStreamEndCapture",
}
"""Other functions that the host code may call; they are rejected by name. Without a replacement the
host code would look for the GPU's driver, and end the process if there is none."""
Functions = dict[str, tuple[tuple[type, ...], Callable[..., int]]]
"""Functions by name: the types of the parameters, and a callable that returns the cudaError_t."""


class _Attribute(ctypes.Structure):
    _fields_ = (("id", _C.c_uint32), ("pad", _C.c_uint32), ("value", _C.c_uint32 * 16))


class _Config(ctypes.Structure):
    """cudaLaunchConfig_t."""

    _fields_ = (
        ("grid", _C.c_uint32 * 3),
        ("block", _C.c_uint32 * 3),
        ("shared", _C.c_uint64),
        ("stream", _C.c_void_p),
        ("attributes", _C.POINTER(_Attribute)),
        ("count", _C.c_uint32),
    )


class Engine:
    """Executes the launches of all functions that CuTe DSL compiles.

    dumps:  the folder into which CuTe DSL writes PTX
    failed: the error that ended the last launch. Exceptions cannot propagate through the compiled
        host code, so the call returns an error code instead
    """

    def __init__(self, launches: Launches, memory: DlpackMemory, dumps: Path) -> None:
        self.launches, self.memory, self.dumps = launches, memory, dumps
        self.failed: Exception | None = None
        self._map_error: Exception | None = None
        self.kernels: dict[int, tuple[Module, str]] = {}
        self._kept: list[object] = []
        initialise = execution_engine.ExecutionEngine.__init__

        def keep(engine: object, *given: object, **named: object) -> None:
            initialise(engine, *given, **named)
            self._provide(engine)

        execution_engine.ExecutionEngine.__init__ = keep

    def _provide(self, engine: object) -> None:
        """Connects compiled host code to this runtime; the PTX found in `dumps` belongs to it."""
        modules = []
        for file in sorted(self.dumps.glob("*.ptx")):
            modules.append(Module.from_ptx(file))
            file.unlink()

        def find(where: int, _library: int, name: bytes) -> int:
            entry = name.decode()
            module = next((each for each in modules if entry in each.kernels), None)
            if module is None:
                self.failed = IncompleteError(f"{entry}: CuTe DSL wrote no PTX for this kernel")
                return NOT_FOUND
            self.kernels[len(self.kernels) + 1] = module, entry
            return _put(where, len(self.kernels))

        known = self.launches.device.attributes
        functions: Functions = {
            **self._of_memory(),
            "_cuTensorMapEncodeTiled": (_ENCODE, self._encode),
            "_cudaLibraryLoadData": ((_AT,), lambda where: _put(where, 1)),
            "_cudaLibraryGetKernel": ((_AT, _AT, _C.c_char_p), find),
            "_cudaLaunchKernelEx": ((_AT, _AT, _AT), self._launch),
            "_cudaDeviceGetAttribute": (
                (_AT, _INT, _INT),
                lambda where, which, _: _put(where, known.get(which, 0), _C.c_int),
            ),
            "_cuKernelGetAttribute": (
                (_AT, _INT, _AT, _INT),
                lambda where, *_: _put(where, 0, _C.c_int),
            ),
            "_cudaGetDevice": ((_AT,), lambda where: _put(where, 0, _C.c_int)),
            "_cudaGetDeviceCount": ((_AT,), lambda where: _put(where, 1, _C.c_int)),
            "_cudaSetDevice": ((_INT,), lambda _: 0),
            "_cudaFuncSetAttribute": ((_AT, _INT, _INT), lambda *_: 0),
            "_cudaKernelSetAttributeForDevice": ((_AT, _INT, _INT, _INT), lambda *_: 0),
            "_cudaDeviceSynchronize": ((), lambda: 0),
        }
        for name in UNKNOWN - functions.keys():
            functions[name] = (), partial(self._unknown, name)
        for name, (kinds, work) in functions.items():
            callback = ctypes.CFUNCTYPE(_INT, *kinds)(work)
            self._kept.append(callback)
            engine.raw_register_runtime(name, ctypes.cast(callback, _AT))  # type: ignore[attr-defined]

    def _of_memory(self) -> Functions:
        """Functions for memory, streams and events; work is completed when it is issued."""
        memory, work = self.memory, Copies(self.memory)

        def allocate(where: int, size: int, *_: int) -> int:
            return _put(where, memory.allocate(size))

        def release(base: int, *_: int) -> int:
            return 0 if not base or memory.release(base) else INVALID_VALUE

        def copy(to: int, source: int, size: int, *_: int) -> int:
            work.copy(to, source, size)
            return 0

        def fill(to: int, value: int, size: int, *_: int) -> int:
            work.fill(1, to, value, size)
            return 0

        made: Functions = {}
        for name, kinds, call in (
            ("Malloc", (_AT, _C.c_size_t), allocate),
            ("Free", (_AT,), release),
            ("Memcpy", (_AT, _AT, _C.c_size_t, _INT), copy),
            ("Memset", (_AT, _INT, _C.c_size_t), fill),
        ):
            made[f"_cuda{name}"] = kinds, call
            made[f"_cuda{name}Async"] = (*kinds, _AT), call
        for name in ("StreamCreate", "EventCreate"):
            made[f"_cuda{name}"] = (_AT,), lambda where: _put(where, 0)
        made["_cudaEventCreateWithFlags"] = (_AT, _INT), lambda where, _: _put(where, 0)
        return made | {name: ((), lambda: 0) for name in _DONE}

    def _encode(self, where: int, *given: int) -> int:
        """cuTensorMapEncodeTiled, which writes the machine's form of a tensor map."""
        kind, rank, address, dims, strides, box, steps, interleave, swizzle, _, fill = given
        try:
            if not 1 <= rank <= 5:
                raise LaunchError(f"cuTensorMapEncodeTiled: expected 1 to 5 dimensions, got {rank}")
            fields = [0, kind, rank, address or 0, *[0] * 19, interleave, swizzle, fill]
            fields[4 : 4 + rank] = (_C.c_uint64 * rank).from_address(dims)
            fields[9 : 8 + rank] = (_C.c_uint64 * (rank - 1)).from_address(strides or dims)
            fields[13 : 13 + rank] = (_C.c_uint32 * rank).from_address(box)
            fields[18 : 18 + rank] = (_C.c_uint32 * rank).from_address(steps)
            _C.memmove(where, encoded(fields), MAP_BYTES)
        except Exception as error:  # told by the launch: for an error here the host code would
            self._map_error = error  # end the process
            _C.memset(where, 0, MAP_BYTES)
        return 0

    def _unknown(self, name: str) -> int:
        """Returns the error for a function that is not supported. The error is printed at once,
        because for some functions the host code ends the process."""
        self.failed = IncompleteError(
            f"{name.lstrip('_')}: compiled host code called a function that the simulated CUDA "
            "runtime does not have (docs/how-to/cute.md)"
        )
        self.launches.say(f"error: {self.failed}")
        self.launches.failed(self.failed)
        return NOT_SUPPORTED

    def _launch(self, config: int, kernel: int, arguments: int) -> int:
        self.failed = None
        try:
            if self._map_error is not None:
                error, self._map_error = self._map_error, None
                raise error
            self.launches.execute(self._made(_Config.from_address(config), kernel, arguments))
        except RefusedError as error:  # which a script may expect
            self.failed = error
            return error.cuda
        except Exception as error:
            self.failed = error
            return LAUNCH_FAILURE
        return 0

    def _made(self, config: _Config, kernel: int, arguments: int) -> DoorLaunch:
        module, name = self.kernels[kernel]
        params = module.syntax.functions[name].params
        where = (_C.c_void_p * len(params)).from_address(arguments)
        given = [_C.string_at(at or 0, p.size) for at, p in zip(where, params, strict=True)]
        words = b"".join(raw[: len(raw) // 8 * 8] for raw in given)
        memory = self.memory.arrays(np.frombuffer(words, np.int64))
        held = tuple((a.ctypes.data, a.ctypes.data + a.nbytes) for a in memory)
        cluster, programmatic, cooperative = (1, 1, 1), False, False
        for number in range(config.count):
            attribute = config.attributes[number]
            if attribute.id == CLUSTER:
                x, y, z = attribute.value[:3]
                cluster = (x, y, z)
            if attribute.id == PROGRAMMATIC:
                programmatic = bool(attribute.value[0])
            if attribute.id == COOPERATIVE:
                cooperative = bool(attribute.value[0])
        x, y, z = config.grid
        u, v, w = config.block
        args = [with_machine_maps(raw, p.align, held) for raw, p in zip(given, params, strict=True)]
        return DoorLaunch(
            module.ptx, name, (x, y, z), cluster, config.shared, programmatic, args, memory,
            memory, (u, v, w), module.variables, cooperative,
        )  # fmt: skip


def _put(where: int, value: int, kind: type = ctypes.c_uint64) -> int:
    """Writes a result of the runtime to an address; returns success."""
    kind.from_address(where).value = value  # type: ignore[attr-defined]
    return 0

"""The CUDA runtime that the host code of CuTe DSL calls: launches are executed by the machine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cutlass._mlir import execution_engine

from tcir.cuda.module import Module
from tcir.cute.bindings import ATTRIBUTES
from tcir.cute.memory import Memory
from tcir.cute.tensor_maps import with_machine_maps
from tcir.doors.launches import Launch, Launches
from tcir.doors.limits import RefusedError
from tcir.errors import IncompleteError

NOT_FOUND, LAUNCH_FAILURE = 500, 719
"""cudaError_t."""
COOPERATIVE, CLUSTER, PROGRAMMATIC = 2, 4, 6
"""cudaLaunchAttributeID."""
_C = ctypes
_INT, _AT = _C.c_int, _C.c_void_p


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
    """Takes the launches of everything that CuTe DSL compiles.

    dumps: the folder where it leaves PTX. failed: what ended the last launch; nothing can be raised
    through its host code, so that returns an error.
    """

    def __init__(self, launches: Launches, memory: Memory, dumps: Path) -> None:
        self.launches, self.memory, self.dumps = launches, memory, dumps
        self.failed: Exception | None = None
        self.kernels: dict[int, tuple[Module, str]] = {}
        self._kept: list[object] = []
        initialise = execution_engine.ExecutionEngine.__init__

        def keep(engine: object, *given: object, **named: object) -> None:
            initialise(engine, *given, **named)
            self._provide(engine)

        execution_engine.ExecutionEngine.__init__ = keep

    def _provide(self, engine: object) -> None:
        """Gives compiled host code its runtime; PTX that was left belongs to it."""
        modules = []
        for file in sorted(self.dumps.glob("*.ptx")):
            modules.append(Module.from_ptx(file))
            file.unlink()

        def find(where: int, _library: int, name: bytes) -> int:
            entry = name.decode()
            module = next((each for each in modules if entry in each.kernels), None)
            if module is None:
                self.failed = IncompleteError(f"{entry}: expected its PTX, which CuTe DSL left out")
                return NOT_FOUND
            self.kernels[len(self.kernels) + 1] = module, entry
            return _put(where, len(self.kernels))

        functions: dict[str, tuple[tuple[type, ...], Callable[..., int]]] = {
            "_cudaLibraryLoadData": ((_AT,), lambda where: _put(where, 1)),
            "_cudaLibraryGetKernel": ((_AT, _AT, _C.c_char_p), find),
            "_cudaLaunchKernelEx": ((_AT, _AT, _AT), self._launch),
            "_cudaDeviceGetAttribute": (
                (_AT, _INT, _INT),
                lambda where, which, _: _put(where, ATTRIBUTES.get(which, 1), _C.c_int),
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
            "_cudaStreamSynchronize": ((_AT,), lambda _: 0),
        }
        for name, (kinds, work) in functions.items():
            callback = ctypes.CFUNCTYPE(_INT, *kinds)(work)
            self._kept.append(callback)
            engine.raw_register_runtime(name, ctypes.cast(callback, _AT))  # type: ignore[attr-defined]

    def _launch(self, config: int, kernel: int, arguments: int) -> int:
        self.failed = None
        try:
            self.launches.execute(self._made(_Config.from_address(config), kernel, arguments))
        except RefusedError as error:  # which a script may expect
            self.failed = error
            return error.cuda
        except Exception as error:
            self.failed = error
            return LAUNCH_FAILURE
        return 0

    def _made(self, config: _Config, kernel: int, arguments: int) -> Launch:
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
        return Launch(
            module.ptx, name, (x, y, z), cluster, config.shared, programmatic, args, memory,
            memory, (u, v, w), module.variables, cooperative,
        )  # fmt: skip


def _put(where: int, value: int, kind: type = ctypes.c_uint64) -> int:
    """Writes a result of the runtime; success."""
    kind.from_address(where).value = value  # type: ignore[attr-defined]
    return 0

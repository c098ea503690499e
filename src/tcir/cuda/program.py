"""A whole CUDA program, including its host code, whose device is the simulated machine."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tcir.codegen.cuda import LAUNCHES_FROM_KERNELS
from tcir.cuda.host_library import compile_library, undefined_symbols
from tcir.cuda.libraries import FUNCTIONS
from tcir.cuda.libraries.functions import HostFunction
from tcir.cuda.module import ELF, Module
from tcir.cuda.tensor_maps import encoded
from tcir.doors.causes import shown_name
from tcir.doors.launches import DoorLaunch, Launches
from tcir.doors.limits import Limits, RefusedError
from tcir.errors import Error, IncompleteError, InputError, UnknownNameError, VerdictError
from tcir.exit_status import INTERRUPTED, exit_status, explain
from tcir.interp.ptx.arguments import holds_addresses
from tcir.interp.ptx.launch_sizes import MAX_THREADS

INVALID_VALUE, INVALID_CONFIGURATION, NO_BINARY, NOT_FOUND, LAUNCH_FAILURE = 1, 9, 209, 500, 719
"""Values of cudaError_t."""
SOURCES = ("graphs.c", "textures.c", "runtime.c", "driver.c")
"""Files of the runtime; the last includes the others."""
MOST_ATTRIBUTES = 256
"""An upper bound on the number of cudaDeviceAttr values."""
_C = ctypes
_LAUNCH = _C.CFUNCTYPE(
    _C.c_int, _C.c_uint64, _C.c_char_p, _C.POINTER(_C.c_uint32), _C.POINTER(_C.c_void_p)
)
_SET = _C.CFUNCTYPE(_C.c_int, _C.c_uint64, _C.c_char_p, _C.c_int, _C.c_int)
_MAP = _C.CFUNCTYPE(_C.c_int, _C.c_void_p, _C.POINTER(_C.c_uint64))
_ALLOCATED = _C.CFUNCTYPE(None, _C.c_void_p, _C.c_uint64)
_FREED = _C.CFUNCTYPE(_C.c_int, _C.c_void_p)
_WRITTEN = _C.CFUNCTYPE(None, _C.c_void_p, _C.c_void_p, _C.c_uint64)
_LOADED = _C.CFUNCTYPE(None, _C.c_uint64, _C.c_void_p, _C.c_uint64)
_VARIABLE = _C.CFUNCTYPE(_C.c_void_p, _C.c_uint64, _C.c_char_p, _C.POINTER(_C.c_uint64))
_ENDED = _C.CFUNCTYPE(None, _C.c_int)
_ATTRIBUTES = _C.CFUNCTYPE(_C.c_int, _C.c_uint64, _C.c_char_p, _C.POINTER(_C.c_int64))
_OCCUPANCY = _C.CFUNCTYPE(_C.c_int, _C.c_uint64, _C.c_char_p, _C.c_int, _C.c_uint64)
_MISSING = _C.CFUNCTYPE(None, _C.c_char_p)
_HAS = _C.CFUNCTYPE(_C.c_int, _C.c_uint64, _C.c_char_p)
_PARAMETER = _C.CFUNCTYPE(_C.c_int, _C.c_uint64, _C.c_char_p, _C.c_uint64, _C.POINTER(_C.c_uint64))
_HEAP = _C.CFUNCTYPE(_C.c_int, _C.c_uint64)
_MAIN = _C.CFUNCTYPE(_C.c_int, _C.c_int, _C.POINTER(_C.c_char_p))


_STUBS = "#include <stddef.h>\nvoid tcir_missing(const char *); int tcir_capturing(void);"
_OF_CUDA = re.compile(
    r"_*(cu|cuda|cublas\w*|curand|cufft\w*|cusparse|cusolver\w*|cudnn|nvrtc|nvml|nccl)[A-Z]"
)


class _Callbacks(ctypes.Structure):
    """The callbacks, laid out as in runtime.c."""

    _fields_ = (
        ("launch", _LAUNCH),
        ("set", _SET),
        ("map", _MAP),
        ("allocated", _ALLOCATED),
        ("freed", _FREED),
        ("written", _WRITTEN),
        ("loaded", _LOADED),
        ("variable", _VARIABLE),
        ("ended", _ENDED),
        ("attributes", _ATTRIBUTES),
        ("occupancy", _OCCUPANCY),
        ("missing", _MISSING),
        ("registered", _ALLOCATED),
        ("has", _HAS),
        ("parameter", _PARAMETER),
        ("heap", _HEAP),
    )


def compile_runtime(folder: Path) -> Path:
    """Compiles the simulated CUDA driver and runtime to one library, with the C compiler that nvcc
    also uses. Once that library is loaded, a program that loads the driver by name gets this
    library.
    """
    for name in SOURCES:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
    return compile_library(folder / "driver.c", "libcuda.so.1")


def _end_when_interrupted() -> None:
    """SIGINT ends the process at once: Python's own handler would wait for the end of `main`."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGINT, lambda *_: None)  # which has Python write to the pipe

    def end() -> None:
        while os.read(reader, 1)[0] != signal.SIGINT:
            pass
        os.write(2, b"error: interrupted\n")
        os._exit(INTERRUPTED)

    threading.Thread(target=end, daemon=True).start()


class ProgramDevice:
    """The device of a program: its memory, modules and launches.

    limits: limits of its kernels, by module number and kernel name
    addressed: finds memory that a script passes only by its address, given the 64-bit integers
        among a kernel's arguments and the addresses of tensor maps
    mapped: addresses of all tensor maps that were encoded so far
    machine_code: returns the PTX for machine code that is being loaded; None: there is no such
        function
    errors: errors that calls of the program raised, in order
    globals: variables whose address the program has requested, by module number and name; all
        kernels may access them, also by that address
    images: address and size of each module's fat binary or PTX, which is read when it is needed
    """

    addressed: Callable[[np.ndarray], list[np.ndarray]] = staticmethod(lambda _: [])

    def __init__(self, launches: Launches) -> None:
        self.launches, self.name = launches, ""
        self.limits: dict[tuple[int, str], Limits] = {}
        self.allocations: dict[int, np.ndarray] = {}
        self.mapped: set[int] = set()
        self.machine_code: Callable[[], str] | None = None
        self.errors: list[Exception] = []
        self.globals: dict[tuple[int, bytes], np.ndarray] = {}
        self.images: dict[int, tuple[int, int]] = {}
        self.modules: dict[int, Module | InputError] = {}
        self._host: list[ctypes._CFunctionType] = []  # functions of libraries
        self._callbacks = _Callbacks(
            _LAUNCH(self.launch), _SET(self.set), _MAP(self.map), _ALLOCATED(self.allocated),
            _FREED(self.freed), _WRITTEN(self.written), _LOADED(self.loaded),
            _VARIABLE(self.variable), _ENDED(self.ended), _ATTRIBUTES(self.attributes),
            _OCCUPANCY(self.occupancy), _MISSING(self.missing),
            _ALLOCATED(self.registered), _HAS(self.has), _PARAMETER(self.parameter),
            _HEAP(self.heap),
        )  # fmt: skip

    def start(self, runtime: Path) -> ctypes.CDLL:
        """Loads the library of `compile_runtime`; its functions then call this device. The file may
        be deleted afterwards.
        """
        library = ctypes.CDLL(str(runtime), ctypes.RTLD_GLOBAL)
        device = self.launches.device
        known = device.attributes
        table = (ctypes.c_int32 * MOST_ATTRIBUTES)(
            *map(known.get, range(MOST_ATTRIBUTES), repeat(0))
        )
        library.tcir_start(
            ctypes.byref(self._callbacks),
            table,
            ctypes.c_uint64(device.target.memory),
            device.chip.name.encode(),
        )
        return library

    def load(self, runtime: Path, program: Path, name: str) -> Callable[[Sequence[str]], int]:
        """Loads the program and returns its `main`, a function from arguments to the exit status.
        The files may be deleted afterwards. name: name of the program, argv[0].
        """
        library, self.name = self.start(runtime), name
        try:
            main = self._loaded(program, library).main
        except OSError as error:
            raise InputError(f"{name}: {error}") from None
        except AttributeError:
            raise InputError(
                f"{name}: expected a program with main(), got none; for kernels alone there is "
                f"tcir.cuda.Module.from_source({name!r}), or tc-run"
            ) from None

        def run(arguments: Sequence[str]) -> int:
            words = [name, *arguments]
            argv = (ctypes.c_char_p * (len(words) + 1))(*map(os.fsencode, words), None)
            sys.stdout.flush()
            _end_when_interrupted()
            status: int = library.tcir_main(_C.cast(main, _MAIN), len(words), argv)
            return self.launches.ended(status & 0xFF)

        return run

    def _loaded(self, program: Path, runtime: ctypes.CDLL) -> ctypes.CDLL:
        """Loads the program as a library. Functions of CUDA's libraries are computed here;
        undefined ones of CUDA end it when they are called."""
        names = [n for n in undefined_symbols(program) if _OF_CUDA.match(n)]
        here = {name: FUNCTIONS[name] for name in names if name in FUNCTIONS}
        stubs = missing_functions(names, runtime, program.parent, here)
        table = (_C.c_void_p * (len(here) + 1)).in_dll(stubs, "tcir_functions")
        for n, (name, host) in enumerate(here.items()):
            self._host.append(host.bound(self, name))
            table[n] = _C.cast(self._host[-1], _C.c_void_p)
        if here:
            libraries = sorted({re.split("[A-Z]", name)[0] for name in here})
            self.launches.say(f"computed on the host, not by kernels: {', '.join(libraries)}")
        return ctypes.CDLL(str(program))

    def ended(self, status: int) -> None:
        """Ends the process when the program calls exit(status)."""
        closed = exit_status(self._close)  # nothing can be raised through its exit()
        os._exit(self.launches.ended(status & 0xFF or closed))

    def _close(self) -> int:
        self.launches.close()
        return 0

    def loaded(self, number: int, image: int, size: int) -> None:
        """Registers a module: a fat binary or PTX text, whose memory stays valid."""
        self.images[number] = image, size
        if self.machine_code is not None and ctypes.string_at(image, 4) == ELF:
            self.modules[number] = Module.from_ptx(self.machine_code())

    def has(self, number: int, name: bytes | None) -> int:
        """Reads a module and looks for a kernel. Returns an error code if the module is not PTX or
        has no kernel of that name.
        """

        def read() -> int:
            kernels = self._module(number).kernels
            return 0 if name is None or name.decode() in kernels else NOT_FOUND

        return self.guarded("module", read, NO_BINARY)

    def parameter(
        self, number: int, name: bytes, which: int, place: ctypes.Array[ctypes.c_uint64]
    ) -> int:
        """Writes the offset and size of one of a kernel's parameters; returns the error code."""
        offset = 0
        for n, each in enumerate(self._module(number).syntax.functions[name.decode()].params):
            offset = -(-offset // each.align) * each.align
            if n == which:
                place[0], place[1] = offset, each.size
                return 0
            offset += each.size
        return INVALID_VALUE

    def allocated(self, base: int, size: int) -> None:
        """Registers memory of the device."""
        self.registered(base, size)
        self.launches.memory.allocated(base, size)

    def registered(self, base: int, size: int) -> None:
        """Makes host memory, with its contents, accessible to the device."""
        memory = (ctypes.c_uint8 * size).from_address(base)
        self.allocations[base] = np.ctypeslib.as_array(memory)

    def heap(self, size: int) -> bool:
        """Sets the heap limit of malloc in device code; returns whether it is too late to do so."""
        heap = self.launches.heap
        heap.limit = heap.limit if heap.used else size
        return heap.used

    def freed(self, base: int) -> bool:
        """Unregisters memory; returns whether it was registered."""
        self.launches.memory.freed(base)
        return self.allocations.pop(base, None) is not None

    def written(self, to: int, source: int | None, size: int) -> None:
        """Records that the runtime copied bytes, or filled them with one value."""
        if source is None:
            self.launches.memory.wrote(to, size)
        else:
            self.launches.memory.copied(to, source, size)

    def map(self, where: int, fields: ctypes.Array[ctypes.c_uint64]) -> int:
        """Encodes a tensor map; returns the error code."""

        def encode() -> int:
            ctypes.memmove(where, encoded(fields[:34]), 128)
            self.mapped.add(fields[3])
            return 0

        return self.guarded("cuTensorMapEncode", encode, INVALID_VALUE)

    def variable(self, number: int, name: bytes, size: ctypes.Array[ctypes.c_uint64]) -> int | None:
        """Address of a variable's bytes, whose size is written to `size`; None if the variable
        cannot be copied to or from."""
        try:
            image = self._module(number).variable(name.decode())
        except UnknownNameError:  # the program asks whether there is one
            return None
        except InputError as error:
            self.launches.say(f"error: {error}")
            return None
        size[0] = image.nbytes
        self.globals[number, name] = image
        return image.ctypes.data

    def launch(
        self,
        number: int,
        name: bytes,
        sizes: ctypes.Array[ctypes.c_uint32],
        arguments: ctypes.Array[ctypes.c_void_p],
    ) -> int:
        """Executes a kernel; returns the error code."""

        def execute() -> int:
            module, entry = self._module(number), name.decode()
            limits = self._limits(number, entry)
            params = module.syntax.functions[entry].params
            x, y, z, u, v, w, i, j, k, smem, programmatic, cooperative = sizes[:12]
            required = module.syntax.functions[entry].reqcluster
            if (i, j, k) == (1, 1, 1) and required is not None:  # __cluster_dims__
                i, j, k = required
            variables = [
                module.variable(v.name)
                for v in module.syntax.variables.values()
                if v.space == "global" and not v.extern and not holds_addresses(v)
            ]
            given = [ctypes.string_at(arguments[n] or 0, p.size) for n, p in enumerate(params)]
            words = b"".join(raw[: len(raw) // 8 * 8] for raw in given)
            memory = list(self.allocations.values())
            memory += self.addressed(np.array([*memoryview(words).cast("q"), *self.mapped]))
            known = module.syntax.variables
            memory += [
                image
                for (other, variable), image in self.globals.items()
                if other != number or known[variable.decode()].space == "global"
            ]
            launch = DoorLaunch(
                module.ptx, entry, (x, y, z), (i, j, k), smem, bool(programmatic), given,
                [*memory, *variables], memory, (u, v, w), module.variables, bool(cooperative),
            )  # fmt: skip
            if max(u, v, w, u * v * w) <= MAX_THREADS:  # no more of it is looked at first
                limits.check((u, v, w), (i, j, k), smem)
            self.launches.execute(launch)
            return 0

        try:
            error = self.guarded(shown_name(name.decode()), execute, INVALID_CONFIGURATION)
            if error:
                self.launches.failed(VerdictError("a launch was rejected", 1))
            return error
        finally:
            sys.stdout.flush()

    def set(self, number: int, name: bytes, attribute: int, value: int) -> int:
        """Sets an attribute of a kernel; returns the error code."""

        def work() -> int:
            self._limits(number, name.decode()).set(attribute, value)
            return 0

        return self.guarded(shown_name(name.decode()), work, INVALID_VALUE)

    def attributes(self, number: int, name: bytes, out: ctypes.Array[ctypes.c_int64]) -> int:
        """Writes the `Limits.attributes` of a kernel to `out`; returns the error code."""

        def work() -> int:
            for n, value in enumerate(self._limits(number, name.decode()).attributes):
                out[n] = value
            return 0

        return self.guarded(shown_name(name.decode()), work, INVALID_VALUE)

    def occupancy(self, number: int, name: bytes, threads: int, shared: int) -> int:
        """Number of CTAs of a kernel that fit on an SM at a time."""
        found = 0

        def work() -> int:
            nonlocal found
            found = self._limits(number, name.decode()).active(threads, shared)
            return 0

        self.guarded(shown_name(name.decode()), work, INVALID_VALUE)
        return found

    def missing(self, name: bytes) -> None:
        """Ends the program because it called a function that does not exist."""
        self.launches.say(f"error: {_unknown(self.name, name.decode())}")
        self.launches.failed(IncompleteError(name.decode()))
        self.ended(0)

    def _limits(self, number: int, name: str) -> Limits:
        given = Limits(self._module(number).ptx, name)
        return self.limits.setdefault((number, name), given)

    def _module(self, number: int) -> Module:
        if number not in self.images:
            self.launches.failed(VerdictError("a launch was rejected", 1))
            raise InputError(
                "expected a kernel of the program, got an unregistered one: a library such as CUB "
                "in CuPy contains it as machine code, which is not executed"
            )
        if number not in self.modules:
            try:
                self.modules[number] = Module.from_image(ctypes.string_at(*self.images[number]))
            except InputError as error:
                self.modules[number] = error
        module = self.modules[number]
        if isinstance(module, InputError):
            raise module
        return module

    def guarded(self, what: str, work: Callable[[], int], wrong: int) -> int:
        """Calls `work` and converts an exception to an error code, because exceptions must not
        propagate through the program's C frames.

        wrong: the error code for arguments that do not fit
        """
        try:
            return work()
        except Error as error:
            self.errors.append(error)
            said = str(error) if str(error).startswith(what) else f"{what}: {error}"
            self.launches.say(f"error: {said}")
            if isinstance(error, InputError):  # the program is told, and may do something else
                return error.cuda if isinstance(error, RefusedError) else wrong
            self.launches.failed(error)
            return LAUNCH_FAILURE
        except Exception as error:
            self.errors.append(error)
            self.launches.say(f"error: {what}: {explain(error)[0]}")
            self.launches.failed(error)
            return LAUNCH_FAILURE


def missing_functions(
    names: Iterable[str],
    runtime: ctypes.CDLL,
    folder: Path,
    here: Mapping[str, HostFunction] = MappingProxyType({}),
) -> ctypes.CDLL:
    """Loads a library that defines the functions `names`, which the runtime lacks. A function of
    `here` calls its entry of `tcir_functions`, whose order is that of `here`; any other function
    ends the program with a message. The files may be deleted afterwards.
    """
    source = Path(tempfile.mkdtemp(dir=folder)) / "missing.c"
    missing = [name for name in names if name not in here and not hasattr(runtime, name)]
    calls = [f'void {n}(void) {{ tcir_missing("{n}"); }}' for n in missing]
    calls += [host.stub(name, n) for n, (name, host) in enumerate(here.items())]
    head = [_STUBS, f"void *tcir_functions[{len(here) + 1}];"]
    source.write_text("\n".join([*head, *calls]))
    return ctypes.CDLL(str(compile_library(source)), ctypes.RTLD_GLOBAL)


def _unknown(name: str, missing: str) -> str:
    """Error message for an undefined function."""
    if missing.startswith("__cudaRegisterLinkedBinary"):
        return (
            f"{name}: device code of several files (-rdc=true) is linked as machine code, which is "
            f"not executed: include the files in one, and leave -rdc out; {LAUNCHES_FROM_KERNELS}"
        )
    return (
        f"{name}: the simulated CUDA runtime has no function {missing}; libraries contain only "
        "machine code, which is not executed: call its counterpart on the host, or write the host "
        "part in Python (docs/how-to/cuda.md)"
    )

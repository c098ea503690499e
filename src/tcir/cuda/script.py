"""Runs a Python script with a simulated CUDA driver, runtime and compiler of CUDA C++. CuPy,
cuda.core, numba.cuda and other libraries run unchanged in such a script.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType

from tcir.codegen.tools import find_tool
from tcir.cuda.program import ProgramDevice, missing_functions
from tcir.cuda.redirect import functions, redirect
from tcir.doors.command import failed, status_of
from tcir.doors.imports import Around, Execute, around_imports
from tcir.doors.script import run_named
from tcir.errors import InputError

OWN_RUNTIMES = (
    *("cupy_backends.cuda.api.runtime", "cupy.random._generator_api"),
    *("cupy.cuda.thrust", "cupy.cuda.cub", "cupy.cuda.jitify"),
    "cuda.bindings._internal.runtime",
)
"""Modules whose libraries have a copy of CUDA's runtime."""
_LOGS = ("GetErrorLogSize", "GetErrorLog", "GetInfoLogSize", "GetInfoLog")
_LINKED = ("GetLinkedCubinSize", "GetLinkedCubin")
_OF_LINKER = ("Create", "AddData", "Complete", "Destroy", *_LINKED, *_LOGS)
_COMPILERS = {
    "nvrtc": {"nvrtcGetCUBINSize": "nvrtcGetPTXSize", "nvrtcGetCUBIN": "nvrtcGetPTX"},
    "nvJitLink": {f"nvJitLink{name}": f"tcirLink{name}" for name in _OF_LINKER},
}
"""Functions that are redirected, with their targets: in the same library, or in the driver."""
_SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "CUPY_CACHE_IN_MEMORY": "1",  # machine code of a GPU must not come from its files
    "CUPY_ACCELERATORS": "",  # CUB is machine code in CuPy
}
_NVCC = "--compress-mode=none -lineinfo -DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK"
"""Flags of nvcc where a library calls it (`tcir.codegen.cuda`)."""
_RUNTIME = re.compile(r"cuda[A-Z]\w*")


def run_python(given: argparse.Namespace, program: ProgramDevice, runtime: Path) -> int:
    """Runs a script or module; returns the exit status.

    given: the parsed arguments of the command
    """
    script = Path(given.program)
    program.name = given.program
    if given.nvcc:
        raise InputError("--nvcc: expected a .cu file, got a Python script")
    if not given.module and not script.is_file():
        raise InputError(f"{script}: expected the path of a Python script, got no such file")

    def run() -> None:
        with simulated_driver(program, runtime):
            run_named(given.program, given.module, given.arguments)

    return status_of(run, program.launches, partial(failed, given.program))


@contextmanager
def simulated_driver(program: ProgramDevice, runtime: Path) -> Iterator[None]:
    """Context in which the device of this process is the simulated one.

    runtime: the library of `compile_runtime`
    """
    driver = program.start(runtime)
    os.environ |= _SETTINGS
    os.environ.setdefault("CUDA_HOME", str(find_tool("nvcc").parent.parent))
    os.environ["NVCC_APPEND_FLAGS"] = f"{os.environ.get('NVCC_APPEND_FLAGS', '')} {_NVCC}".lstrip()
    work: dict[str, Around] = {
        name: partial(_with_own_runtime, driver, runtime.parent) for name in OWN_RUNTIMES
    }
    with ExitStack() as stack:
        stack.callback(driver.tcir_stop)
        work |= {
            "torch": partial(_on_the_cpu, program, stack),
            "tilelang": partial(_tilelang, stack),
            "jax._src.pallas.pallas_call": partial(_pallas, program),
            "jax.experimental.mosaic.gpu.core": partial(_for_its_architecture, program),
        }
        stack.enter_context(around_imports(work))
        _compile_to_ptx(driver)
        yield


def _on_the_cpu(
    program: ProgramDevice, stack: ExitStack, module: ModuleType, execute: Execute
) -> None:
    """Executes torch and replaces its GPU by the CPU; kernels reach its tensors."""
    execute(module)
    from tcir.cuda.torch_extension import TensorRecorder, compiled_to_ptx
    from tcir.doors.torch_cuda import cuda_on_the_cpu
    from tcir.triton.addresses import Addresses

    addresses = Addresses()
    program.addressed = lambda words: addresses.reached([words])
    target = program.launches.device.target.name
    name = "torch.utils.cpp_extension"
    stack.enter_context(around_imports({name: partial(compiled_to_ptx, target)}))
    stack.enter_context(cuda_on_the_cpu(program.launches, addresses.taken))
    stack.enter_context(TensorRecorder(addresses.taken))


def _tilelang(stack: ExitStack, module: ModuleType, execute: Execute) -> None:
    """Executes TileLang's package, whose modules are adapted when it imports them."""
    from tcir.cuda.tilelang_kernels import WORK, settings

    settings()
    stack.enter_context(around_imports(WORK))
    execute(module)


def _pallas(program: ProgramDevice, module: ModuleType, execute: Execute) -> None:
    """Executes the module of `pallas_call`, whose kernels are lowered as for a GPU."""
    from tcir.cuda.pallas_kernels import Kernels

    Kernels(program).lowered_on_the_cpu(module, execute)


def _for_its_architecture(program: ProgramDevice, module: ModuleType, execute: Execute) -> None:
    """Executes a module of Mosaic GPU, which compiles for the device's architecture."""
    execute(module)
    module.__dict__["_infer_arch"] = lambda: program.launches.device.chip.capability


def _with_own_runtime(
    driver: ctypes.CDLL, folder: Path, module: ModuleType, execute: Execute
) -> None:
    """Redirects a library's copy of CUDA's runtime before its module is executed."""
    if module.__spec__ is not None and module.__spec__.origin:
        copy = functions(Path(module.__spec__.origin))
        there = {name: at for name, at in copy.items() if _RUNTIME.fullmatch(name)}
        stubs = missing_functions(there, driver, folder)
        places = {}
        for name, at in there.items():
            plain = re.sub("_pts[dz]$", "", name)  # of a stream for each thread
            places[at] = _address(driver if hasattr(driver, plain) else stubs, plain)
        redirect(places)
    execute(module)


def _compile_to_ptx(driver: ctypes.CDLL) -> None:
    """Makes CUDA's compilers and linker return PTX, which the driver loads as well, where a library
    asks them for machine code."""
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError:
        return
    for name, targets in _COMPILERS.items():
        try:
            library = ctypes.CDLL(load_nvidia_dynamic_lib(name).abs_path)
        except DynamicLibNotFoundError:
            continue
        for function, target in targets.items():
            where = _address(library if hasattr(library, target) else driver, target)
            redirect({_address(library, function): where})


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0

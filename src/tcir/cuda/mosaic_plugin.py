"""Uses JAX's CUDA plugin as the compiler of Mosaic GPU's kernels. The host code that it generates
launches the kernels through the CUDA driver of the simulated device.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tcir.cuda.program import ProgramDevice
from tcir.cuda.redirect import functions
from tcir.errors import IncompleteError, MissingDependencyError

_C = ctypes
_DUMP = "MOSAIC_GPU_DUMP_TO"
_START = _C.CFUNCTYPE(None, _C.c_void_p, _C.c_void_p, _C.c_void_p)


class Plugin:
    """The plugin's compiler, loaded when a kernel needs it."""

    def __init__(self, program: ProgramDevice) -> None:
        self.program = program

    def kernel(self, config: Mapping[str, Any]) -> Callable[[Sequence[np.ndarray]], None]:
        """Compiles a kernel; returns a function that executes it on its inputs and outputs."""
        module = config["module"].value_bytes
        with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {_DUMP: folder}):
            self.program.machine_code = lambda: next(Path(folder).glob("*.ptx")).read_text()
            compiled = self._library.MosaicGpuCompile(module, len(module))
            self.program.machine_code = None
        if not compiled:
            raise IncompleteError("Mosaic GPU could not compile a kernel")

        def run(arrays: Sequence[np.ndarray]) -> None:
            failed = len(self.program.errors)
            where = [each.ctypes.data for each in arrays]
            for at, each in zip(where, arrays, strict=True):
                self.program.registered(at, each.nbytes)
            pointers = (_C.c_void_p * len(where))(*where)
            _START(compiled[1])(compiled[0], None, pointers)
            for at in where:
                self.program.freed(at)
            if self.program.errors[failed:]:
                raise self.program.errors[failed]

        return run

    @cached_property
    def _library(self) -> ctypes.CDLL:
        """The plugin, its compiler initialised as a client of XLA does."""
        try:
            from jax_plugins import xla_cuda13
        except ImportError as error:
            raise MissingDependencyError(
                f"Mosaic GPU needs JAX's CUDA plugin ({error}); install tcir[pallas]"
            ) from None
        path = xla_cuda13._get_library_path()
        library = ctypes.CDLL(str(path))
        for name, at in functions(Path(path)).items():
            if re.fullmatch(r"LLVMInitializeNVPTX\w+", name):
                ctypes.CFUNCTYPE(None)(at)()
        library.MosaicGpuCompile.restype = _C.POINTER(_C.c_void_p)
        library.MosaicGpuCompile.argtypes = _C.c_char_p, _C.c_int
        return library

"""tcir lowers linalg programs to kernels, above all for Blackwell (sm_100a), and executes the
program after every pass.

Names are imported on first use. `tcir.run_ptx`, `tcir.TensorMap` and `tcir.machine` need neither
the MLIR bindings nor LLVM.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tcir import cuda as cuda
    from tcir import debug as debug
    from tcir import formats as formats
    from tcir.arrays.attention import compile_attention as compile_attention
    from tcir.arrays.attention_backward import (
        compile_attention_backward as compile_attention_backward,
    )
    from tcir.arrays.block_scaled import compile_block_scaled_matmul as compile_block_scaled_matmul
    from tcir.arrays.conv2d import compile_conv2d as compile_conv2d
    from tcir.arrays.kernel import ArrayKernel as ArrayKernel
    from tcir.arrays.matmul import compile_matmul as compile_matmul
    from tcir.arrays.varlen_attention import (
        compile_varlen_attention as compile_varlen_attention,
    )
    from tcir.emulation import Emulated as Emulated
    from tcir.emulation import EmulatedLaunch as EmulatedLaunch
    from tcir.emulation import EmulationError as EmulationError
    from tcir.emulation import emulate as emulate
    from tcir.errors import Error as Error
    from tcir.errors import IncompleteError as IncompleteError
    from tcir.errors import InputError as InputError
    from tcir.errors import LaunchError as LaunchError
    from tcir.errors import MissingDependencyError as MissingDependencyError
    from tcir.errors import NativeCrashError as NativeCrashError
    from tcir.errors import PassError as PassError
    from tcir.errors import UnknownNameError as UnknownNameError
    from tcir.errors import VerdictError as VerdictError
    from tcir.kernel import HazardError as HazardError
    from tcir.kernel import Kernel as Kernel
    from tcir.layout import LayoutError as LayoutError
    from tcir.machine.errors import Deadlock as Deadlock
    from tcir.machine.errors import MachineError as MachineError
    from tcir.machine.errors import NotModelled as NotModelled
    from tcir.machine.refusal import Refusal as Refusal
    from tcir.machine.tma.tensor_map import TensorMap as TensorMap
    from tcir.passmanager.pipeline import NamedPipeline as NamedPipeline
    from tcir.passmanager.pipeline import Pass as Pass
    from tcir.passmanager.pipeline import Pipeline as Pipeline
    from tcir.passmanager.pipeline import named_pipeline as named_pipeline
    from tcir.passmanager.pipeline import register_pass as register_pass
    from tcir.passmanager.pipeline import register_pipeline as register_pipeline
    from tcir.prover.proof import Proofs as Proofs
    from tcir.prover.prove import prove as prove
    from tcir.run import PtxSyntaxError as PtxSyntaxError
    from tcir.run import RunReport as RunReport
    from tcir.run import Uninitialized as Uninitialized
    from tcir.run import run_ptx as run_ptx
    from tcir.session.entry import compile as compile
    from tcir.session.entry import validate as validate
    from tcir.session.specialise import Specialised as Specialised
    from tcir.session.specialise import specialise as specialise
    from tcir.validation.report import Report as Report

_EXPORTS = {
    "ArrayKernel": "arrays.kernel",
    "Deadlock": "machine.errors",
    "Emulated": "emulation",
    "EmulatedLaunch": "emulation",
    "EmulationError": "emulation",
    "Error": "errors",
    "HazardError": "kernel",
    "IncompleteError": "errors",
    "InputError": "errors",
    "Kernel": "kernel",
    "LaunchError": "errors",
    "LayoutError": "layout",
    "MachineError": "machine.errors",
    "MissingDependencyError": "errors",
    "NamedPipeline": "passmanager.pipeline",
    "NativeCrashError": "errors",
    "NotModelled": "machine.errors",
    "Pass": "passmanager.pipeline",
    "PassError": "errors",
    "Pipeline": "passmanager.pipeline",
    "Proofs": "prover.proof",
    "PtxSyntaxError": "run",
    "Refusal": "machine.refusal",
    "Report": "validation.report",
    "RunReport": "run",
    "Specialised": "session.specialise",
    "TensorMap": "machine.tma.tensor_map",
    "Uninitialized": "run",
    "UnknownNameError": "errors",
    "VerdictError": "errors",
    "compile": "session.entry",
    "compile_attention": "arrays.attention",
    "compile_block_scaled_matmul": "arrays.block_scaled",
    "compile_conv2d": "arrays.conv2d",
    "compile_matmul": "arrays.matmul",
    "compile_attention_backward": "arrays.attention_backward",
    "compile_varlen_attention": "arrays.varlen_attention",
    "emulate": "emulation",
    "named_pipeline": "passmanager.pipeline",
    "prove": "prover.prove",
    "register_pass": "passmanager.pipeline",
    "register_pipeline": "passmanager.pipeline",
    "run_ptx": "run",
    "specialise": "session.specialise",
    "validate": "session.entry",
}

_RENAMED = {name: f"compile_{name}" for name in ("block_scaled_matmul", "conv2d", "matmul")}
"""Names from before 0.1.0, whose use warns, and the new names."""

_PACKAGES = ("cuda", "debug", "formats")

__all__ = ["__version__", *_EXPORTS, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"tcir.{name}")
    if new := _RENAMED.get(name):
        text = f"tcir.{name} is now tcir.{new}: it returns a kernel, not an array"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[__name__], new)
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tcir.threads import LOCK

    with LOCK:
        value = getattr(importlib.import_module(f"tcir.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS, *_PACKAGES})

"""Kernels in the cache: which kernels may be stored, their cache keys, and their serialised
form.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tcir.cache import Store, digest, versions
from tcir.cache.data import from_bytes, to_bytes
from tcir.dialect.base import DIALECTS
from tcir.interp import OutputSpec
from tcir.kernel import Kernel
from tcir.passmanager.pipeline import Pipeline, UpstreamPass, is_own
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.signature import Signature
from tcir.program.workspaces import Workspaces
from tcir.session.texts import Texts
from tcir.target import TARGETS
from tcir.time.roofline import ExecutedWork, Roofline, RooflineTime
from tcir.validation.report import Line, Report, Unchanged

if TYPE_CHECKING:
    from tcir._mlir import ir

_FIELDS = ("signature", "launches", "target", "ptx", "llvm", "report", "ir")
_CLASSES = (
    ExecutedWork, Launch, LaunchSequence, Line, RooflineTime, OutputSpec, Report, Roofline,
    Signature, Texts, Unchanged, Workspaces,
)  # fmt: skip
"""Classes of which a kernel's fields consist, besides numbers, texts and arrays."""
_CONVERTER = "tcir.passes.nvvm.converter"


def kernel_key(module: ir.Module, steps: Pipeline, target: str, prefixes: Mapping[str, str]) -> str:
    """Cache key of a kernel. It depends on the program with its locations, the path prefixes in its
    code, the passes with their options, the target, and the versions.
    """
    text = module.operation.get_asm(enable_debug_info=True)
    return digest("kernel", text, list(prefixes.items()), steps, TARGETS.get(target), versions())


def is_ours(steps: Pipeline) -> bool:
    """Whether all code that takes part in the compilation belongs to this package, whose source is
    part of the key. The source of passes, dialects and conversion rules from plugins is not part of
    the key.
    """
    passes = all(isinstance(item, UpstreamPass) or is_own(type(item)) for item in steps)
    converter = sys.modules.get(_CONVERTER)
    rules = list(converter.RULES.values()) if converter is not None else ()
    return passes and set(DIALECTS) <= {"tc"} and all(_own(rule.__module__) for rule in rules)


def _own(module: str) -> bool:
    return module.startswith("tcir.")


def find_kernel(store: Store, key: str) -> Kernel | None:
    """The kernel stored under a key; None if there is none. Its report is that of the compilation
    that created it.
    """
    found = store.get(key)
    if found is None:
        return None
    try:
        values = from_bytes(found, _CLASSES)
        kernel = Kernel(**dict(zip(_FIELDS, values, strict=True)), store=store)
    except ValueError:
        return None
    kernel.report.notes.append("from the cache: the passes ran in an earlier compilation")
    return kernel


def keep_kernel(store: Store, key: str, kernel: Kernel) -> None:
    """Stores a kernel that was just compiled."""
    store.put(key, to_bytes([getattr(kernel, name) for name in _FIELDS]))

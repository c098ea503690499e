"""LLVM IR to PTX, by LLVM's NVPTX back end."""

from __future__ import annotations

import re
import struct

from tcir.codegen.worker import WORKER
from tcir.errors import Error, UnknownNameError, did_you_mean
from tcir.target import DEFAULT_TARGET, TARGETS


def emit_ptx(llvm_ir: str, target: str = DEFAULT_TARGET.name) -> str:
    """PTX of `llvm_ir` for `target`.

    For an unknown PTX version the back end silently falls back to its lowest one. Raises `Error`
    if LLVM rejects the module or leaves an unknown intrinsic as a call, `NativeCrashError` if it
    crashes.
    """
    if target not in TARGETS:
        raise UnknownNameError(f"unknown target '{target}'" + did_you_mean(target, TARGETS))
    version = TARGETS[target].ptx_version
    features = f"+ptx{version.replace('.', '')}"
    ptx: str = WORKER.call("emit_ptx", _older_floats(llvm_ir), ".ll", cpu=target, features=features)
    left = sorted(set(re.findall(r"llvm\.nvvm\.[\w.]+", ptx)))
    if left:
        raise Error(
            f"the NVPTX back end has no instruction for {', '.join(left)}; "
            "say it as inline PTX instead"
        )
    if f".version {version}\n" not in ptx:
        raise Error(f"expected PTX {version}, got another version from the NVPTX back end")
    return ptx


def _older_floats(llvm_ir: str) -> str:
    """`llvm_ir` with ``float f0x3FB8AA3B`` (newer LLVM) as the double it is, which all can read."""
    if "f0x" not in llvm_ir:
        return llvm_ir
    kind = ""

    def spelled(match: re.Match[str]) -> str:
        nonlocal kind
        if match["type"]:  # of the operands that follow: fmul float %x, f0x3FB8AA3B
            kind = match["type"]
            return kind
        digits = match["digits"]
        if kind == "float":
            digits = struct.pack(">d", *struct.unpack(">f", bytes.fromhex(digits))).hex().upper()
        return "0x" + {"half": "H", "bfloat": "R"}.get(kind, "") + digits

    return re.sub(
        r"\b(?:(?P<type>float|double|half|bfloat)\b|f0x(?P<digits>[0-9A-F]+))", spelled, llvm_ir
    )

"""Compiles LLVM IR to PTX with LLVM's NVPTX back end."""

from __future__ import annotations

import re
import struct

from tcir.codegen.worker import WORKER
from tcir.errors import Error, UnknownNameError, did_you_mean
from tcir.target import DEFAULT_TARGET, TARGETS


def emit_ptx(llvm_ir: str, target: str = DEFAULT_TARGET.name) -> str:
    """Compiles `llvm_ir` to PTX for `target`.

    Raises `Error` if LLVM rejects the module, leaves an unknown intrinsic as a call, or emits
    another PTX version (for an unknown version the back end silently falls back to its lowest one);
    `NativeCrashError` if LLVM crashes.
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
            "write it as inline PTX instead"
        )
    if f".version {version}\n" not in ptx:
        raise Error(f"expected PTX {version}, got another version from the NVPTX back end")
    return ptx


SPECIAL = {
    "+inf": ("0x7FF0000000000000", "0xH7C00", "0xR7F80"),
    "-inf": ("0xFFF0000000000000", "0xHFC00", "0xRFF80"),
    "+qnan": ("0x7FF8000000000000", "0xH7E00", "0xR7FC0"),
    "-qnan": ("0xFFF8000000000000", "0xHFE00", "0xRFFC0"),
}
"""Special values as older LLVM writes them: for float and double, for half, for bfloat."""
_PLACES = {"half": 1, "bfloat": 2}


def _older_floats(llvm_ir: str) -> str:
    """`llvm_ir` with the float constants of newer LLVM rewritten as doubles, which all versions
    read: ``float f0x3FB8AA3B``, ``+inf``, and ``float 4.471500e-02``, which is not exactly a
    float."""
    kind = ""

    def spelled(match: re.Match[str]) -> str:
        nonlocal kind
        if match["type"]:  # of the operands that follow: fmul float %x, f0x3FB8AA3B
            kind = match["type"]
            return kind
        if match["name"]:
            return SPECIAL[match["name"]][_PLACES.get(kind, 0)]
        digits = match["digits"]
        if match["decimal"]:
            return _exact(match["decimal"], kind)
        if kind == "float":
            digits = struct.pack(">d", *struct.unpack(">f", bytes.fromhex(digits))).hex().upper()
        return "0x" + {"half": "H", "bfloat": "R"}.get(kind, "") + digits

    lines = llvm_ir.split("\n")
    return "\n".join(_FLOAT.sub(spelled, each) if _HAS_FLOAT(each) else each for each in lines)


_FLOAT = re.compile(
    r"\b(?:(?P<type>float|double|half|bfloat)\b|f0x(?P<digits>[0-9A-F]+))"
    r"|(?P<name>[+-](?:inf|qnan)\b)|(?<![\w.])(?P<decimal>-?\d\.\d+e[+-]\d+)"
)
"""A type of a line, and constants of this type after it."""
_HAS_FLOAT = re.compile(r"f0x|[+-](?:inf|qnan)|\de[+-]\d").search


def _exact(decimal: str, kind: str) -> str:
    """The number of type `kind` nearest to a decimal: the decimal itself if it is exact, otherwise
    the hexadecimal form."""
    if kind not in ("float", "half", "bfloat"):
        return decimal
    number = float(decimal)
    if kind == "half":
        bits = struct.pack(">e", number)
        same = struct.unpack(">e", bits)[0] == number
        return decimal if same else "0xH" + bits.hex().upper()
    (rounded,) = struct.unpack(">f", struct.pack(">f", number))
    if kind == "bfloat":
        (word,) = struct.unpack(">I", struct.pack(">f", number))
        word = (word + 0x7FFF + (word >> 16 & 1)) >> 16
        same = struct.unpack(">f", struct.pack(">I", word << 16))[0] == number
        return decimal if same else f"0xR{word:04X}"
    return decimal if rounded == number else "0x" + struct.pack(">d", rounded).hex().upper()

"""NVRTC, implemented by nvcc. In place of machine code it returns PTX, which the simulated driver
also loads.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tcir.codegen.cuda import compile_cuda
from tcir.cuda.libraries.functions import (
    HostCall,
    Objects,
    array,
    function,
    succeeds,
    text_at,
)
from tcir.errors import Error

COMPILATION = 6
_NAMES = {0: "NVRTC_SUCCESS", COMPILATION: "NVRTC_ERROR_COMPILATION"}
_ARCHITECTURE = ("--gpu-architecture", "-arch")


@dataclass
class NvrtcProgram:
    """A program: its text, and headers by name."""

    text: str
    headers: dict[str, str]
    ptx: str = ""
    log: str = ""


def _text(address: int) -> str:
    return ctypes.string_at(address).decode()


_KNOWN: Objects[NvrtcProgram] = Objects()


@function("nvrtcCreateProgram", given="out:p source:p name:p count:i headers:p header_names:p")
def create(call: HostCall) -> int:
    """Creates a program from its text."""
    tables = [
        array(each, call.count, "<u8").tolist()
        for each in (call.header_names, call.headers)
        if call.count
    ]
    given = {_text(name): _text(header) for name, header in zip(*tables, strict=True)}
    return _KNOWN.made(call.out, NvrtcProgram(_text(call.source), given))


@function("nvrtcCompileProgram", given="program:p count:i options:p")
def compile_program(call: HostCall) -> int:
    """Compiles a program for the target of the device, whatever architecture the options
    request.
    """
    known = _KNOWN[call.program]
    options = array(call.options, call.count, "<u8").tolist() if call.count else []
    flags = [flag for flag in map(_text, options) if not flag.startswith(_ARCHITECTURE)]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**known.headers, "program.cu": known.text}.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text)
        target = call.device.launches.device.target.name
        try:
            known.ptx = compile_cuda(Path(folder) / "program.cu", target, flags)
        except Error as error:
            known.log = str(error)
            return COMPILATION
    return 0


def _size(read: Callable[[NvrtcProgram], str]) -> Callable[[HostCall], int]:
    def write(call: HostCall) -> int:
        array(call.out, 1, "<u8")[0] = len(read(_KNOWN[call.program]).encode()) + 1
        return 0

    return write


def _copy(read: Callable[[NvrtcProgram], str]) -> Callable[[HostCall], int]:
    def write(call: HostCall) -> int:
        data = read(_KNOWN[call.program]).encode() + b"\0"
        ctypes.memmove(call.out, data, len(data))
        return 0

    return write


_READS: dict[str, Callable[[NvrtcProgram], str]] = {
    "PTX": lambda source: source.ptx,
    "CUBIN": lambda source: source.ptx,
    "ProgramLog": lambda source: source.log,
}
for _name, _read in _READS.items():
    function(f"nvrtcGet{_name}Size", given="program:p out:p")(_size(_read))
    function(f"nvrtcGet{_name}", given="program:p out:p")(_copy(_read))
succeeds("nvrtcDestroyProgram", given="program:p")
function("nvrtcGetErrorString", given="status:i", text=True)(
    lambda call: text_at(_NAMES.get(call.status, f"status {call.status}"))
)


@function("nvrtcVersion", given="major:p minor:p")
def version(call: HostCall) -> int:
    """Version 13.0."""
    array(call.major, 1, "<i4")[0], array(call.minor, 1, "<i4")[0] = 13, 0
    return 0

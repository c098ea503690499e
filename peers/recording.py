"""Runs other projects' host code without a GPU and keeps what it would have launched.

`recorder.c` stands in for the CUDA driver and runtime. A record is JSON: the entry, grid, block,
cluster and shared memory of one launch, its parameters in parts (bytes, places in buffers, tensor
maps), and the buffers they point into. `peers.recorded` makes arguments of `run_ptx` from it.
Standard library only: it runs in the other projects' environments.
"""

from __future__ import annotations

import base64
import ctypes
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MAP_BYTES = 128
LAUNCH = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_void_p)
)
MAP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
BUFFER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
SIZES = {"u8": 1, "b8": 1, "s8": 1, "u16": 2, "b16": 2, "f16": 2, "u32": 4, "b32": 4, "s32": 4}
SIZES |= {"f32": 4, "u64": 8, "b64": 8, "s64": 8, "f64": 8, "s16": 2}


def build(folder: Path) -> Path:
    """`recorder.c` as libcuda.so.1, the name under which the driver is looked for."""
    out = folder / "libcuda.so.1"
    cc = os.environ.get("CC") or shutil.which("cc") or "gcc"
    command = [cc, "-O1", "-shared", "-fPIC", "-w", str(HERE / "recorder.c"), "-o", str(out)]
    subprocess.run(command, check=True)
    return out


def parameter_sizes(ptx: str, entry: str) -> list[int]:
    """Bytes of each parameter of an entry."""
    header = re.search(rf"\.entry\s+{re.escape(entry)}\s*\((.*?)\)", ptx, re.S)
    assert header is not None, f"no entry {entry}"
    sizes = []
    for text in filter(str.strip, header[1].split(",")):
        match = re.search(r"\.param\b.*?\.(\w?\d+)\s.*?(?:\[(\d+)\])?\s*$", text.strip(), re.S)
        assert match is not None, text
        sizes.append(SIZES[match[1]] * int(match[2] or 1))
    return sizes


@dataclass(repr=False)
class Recorder:
    """Launches seen since it was made. `ptx` gives the text that holds an entry."""

    library: ctypes.CDLL
    ptx: Any
    multiprocessors: int = 148
    buffers: list[tuple[int, int]] = field(default_factory=list)
    maps: dict[bytes, list[int]] = field(default_factory=dict)
    launches: list[dict[str, Any]] = field(default_factory=list)
    on_launch: Any = None

    def __post_init__(self) -> None:
        self.callbacks = LAUNCH(self.launched), MAP(self.mapped), BUFFER(self.allocated)
        self.library.recorder_name.restype = ctypes.c_char_p
        self.library.recorder_name.argtypes = [ctypes.c_void_p]
        self.library.recorder_start(*self.callbacks, self.multiprocessors)

    def allocated(self, base: int, size: int) -> None:
        self.buffers.append((base, size))

    def mapped(self, where: int, fields: Any) -> None:
        """A map is 128 bytes that say which one it is."""
        mark = b"tensor map".ljust(16, b"\0") + len(self.maps).to_bytes(8, "little")
        mark = mark.ljust(MAP_BYTES, b"\xa5")
        self.maps[mark] = [fields[n] for n in range(34)]
        ctypes.memmove(where, mark, MAP_BYTES)

    def launched(self, kernel: int, sizes: Any, arguments: Any) -> None:
        entry = self.library.recorder_name(kernel).decode()
        params = []
        for place, size in enumerate(parameter_sizes(self.ptx(entry), entry)):
            params.append(self.parts(ctypes.string_at(arguments[place], size)))
        record = {
            "entry": entry,
            "grid": list(sizes[0:3]),
            "block": list(sizes[3:6]),
            "cluster": list(sizes[6:9]),
            "dynamic_smem": sizes[9],
            "params": params,
            "buffers": [size for _, size in self.buffers],
        }
        self.launches.append(record)
        if self.on_launch is not None:
            self.on_launch(record)

    def contents(self) -> dict[str, str]:
        """Of the buffers that are not all zero, in base 64 by index."""
        found = {}
        for index, (base, size) in enumerate(self.buffers):
            raw = ctypes.string_at(base, size)
            if raw.strip(b"\0"):
                found[str(index)] = base64.b64encode(raw).decode()
        return found

    def place(self, address: int) -> tuple[int, int] | None:
        """Index of the buffer that holds the address, and the offset in it."""
        for index, (base, size) in enumerate(self.buffers):
            if base <= address < base + max(size, 1):
                return index, address - base
        return None

    def parts(self, raw: bytes) -> list[list[Any]]:
        """["bytes", hex], ["buffer", index, offset], ["map", fields, buffer, offset] in order.

        CuTe DSL's host code encodes a map without the driver: ["encoded", hex, buffer, offset].
        """
        first = self.place(int.from_bytes(raw[:8], "little"))
        if len(raw) == MAP_BYTES and first is not None:
            return [["encoded", raw.hex(), *first]]
        out: list[list[Any]] = []
        at = 0
        while at < len(raw):
            if (piece := raw[at : at + MAP_BYTES]) in self.maps:
                fields = self.maps[piece]
                where = self.place(fields[3])
                assert where is not None, "a tensor map outside all buffers"
                out.append(["map", fields, *where])
                at += MAP_BYTES
                continue
            word = raw[at : at + 8]
            found = self.place(int.from_bytes(word, "little")) if len(word) == 8 else None
            if found is not None:
                out.append(["buffer", *found])
            elif out and out[-1][0] == "bytes":
                out[-1][1] += word.hex()
            else:
                out.append(["bytes", word.hex()])
            at += len(word)
        return out

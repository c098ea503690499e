"""Arguments of `run_ptx` from a launch that `recording.py` kept."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from peers.case import Launch
from tcir.machine import TensorMap

#: CUtensorMapDataType and CUtensorMapSwizzle, in the order of the enumerations.
TYPES = (
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32",
    "tf32_ftz", "u4_align8b", "u4_align16b", "u6_align16b",
)  # fmt: skip
SWIZZLES = (
    "NONE", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B",
)  # fmt: skip
#: Elements of `encoded_map` by code.
ENCODED = {6: "f16", 10: "bf16"}
INTERLEAVES = ("NONE", "16B", "32B")
FILLS = ("zero", "nan")


class Recorded:
    """The buffers of a recorded launch as arrays of bytes; `launch` binds them."""

    def __init__(self, meta: dict[str, Any]) -> None:
        self.meta = meta
        self.buffers = [np.zeros(max(size, 16), "u1") for size in meta["buffers"]]
        for index, text in meta.get("contents", {}).items():
            raw = np.frombuffer(base64.b64decode(text), "u1")
            self.buffers[int(index)][: len(raw)] = raw

    def array(self, index: int, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
        """A buffer's first elements, in place."""
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return self.buffers[index][:count].view(dtype).reshape(shape)

    def fill(self, index: int, values: np.ndarray) -> np.ndarray:
        self.array(index, values.dtype, values.shape)[...] = values
        return values

    def launch(self, *want: tuple[Any, Any, float]) -> Launch:
        meta = self.meta
        args = [self.argument(parts) for parts in meta["params"]]
        return Launch(
            tuple(meta["grid"]),
            args,
            list(want),
            tuple(meta["cluster"]),
            tuple(meta["block"]),
            meta["dynamic_smem"],
        )

    def argument(self, parts: list[list[Any]]) -> Any:
        made = [self.part(kind, *rest) for kind, *rest in parts]
        return made[0] if len(made) == 1 else tuple(made)

    def part(self, kind: str, *rest: Any) -> Any:
        if kind == "bytes":
            return bytes.fromhex(rest[0])
        if kind == "buffer":
            index, offset = rest
            return self.buffers[index][offset:]
        if kind == "encoded":
            return encoded_map(bytes.fromhex(rest[0]), self.buffers[rest[1]], rest[2])
        return self.tensor_map(*rest)

    def tensor_map(self, fields: list[int], index: int, offset: int) -> TensorMap:
        im2col, dtype, rank = fields[:3]
        more: dict[str, Any] = {
            "dtype": TYPES[dtype],
            "dims": fields[4 : 4 + rank],
            "strides_bytes": fields[9 : 8 + rank],
            "element_strides": fields[18 : 18 + rank],
            "interleave": INTERLEAVES[fields[23]],
            "swizzle": SWIZZLES[fields[24]],
            "oob_fill": FILLS[fields[25]],
            "offset_bytes": offset,
        }
        array = self.buffers[index]
        if not im2col:
            return TensorMap.tiled(array, box=fields[13 : 13 + rank], **more)
        lower, upper = (
            [(v + (1 << 63)) % (1 << 64) - (1 << 63) for v in fields[at : at + rank - 2]]
            for at in (26, 29)
        )
        return TensorMap.im2col(
            array,
            lower_corner=lower,
            upper_corner=upper,
            channels_per_pixel=fields[32],
            pixels_per_column=fields[33],
            **more,
        )


def encoded_map(raw: bytes, array: np.ndarray, offset: int) -> TensorMap:
    """A tiled map as CuTe DSL's host code lays it out, read off its output for known tensors.

    Words: address 2, kinds, strides / 16 4, high bits, dims - 1 5, box - 1 as bytes from 55 on.
    Kinds, from bit 4: rank - 1 (3 bits), element (4), interleave (2), swizzle (2).
    """
    words = np.frombuffer(raw, "<u4").tolist()
    rank, element, swizzle = (words[2] >> 4 & 7) + 1, words[2] >> 7 & 15, words[2] >> 13 & 3
    return TensorMap.tiled(
        array,
        dtype=ENCODED[element],
        dims=[n + 1 for n in words[8 : 8 + rank]],
        strides_bytes=[16 * n for n in words[3 : 2 + rank]],
        box=[n + 1 for n in raw[55 : 55 + rank]],
        swizzle=SWIZZLES[swizzle],
        offset_bytes=offset,
    )

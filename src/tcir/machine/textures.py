"""Textures and surfaces: their descriptors, the texels that a coordinate selects, and filtering.

The formulas are those of the CUDA C++ Programming Guide, "Texture Fetching"; the rounding is that
of an H200. A texture or surface object is the address in global memory of a descriptor with the
fields of `RECORD`. The texels are stored row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError

MAGIC = 0x54584354
BYTES = 128
"""Size of a descriptor."""
SIGNED, UNSIGNED, FLOAT = range(3)
"""Formats of a channel (cudaChannelFormatKind)."""
WRAP, CLAMP, MIRROR, BORDER = range(4)
"""Address modes (cudaTextureAddressMode)."""
_U4, _U8 = "<u4", "<u8"
_HEAD = {"magic": _U4, "dims": _U4, "layers": _U4, "faces": _U4, "base": _U8, "pitch": _U8}
_TEXEL = {"slice": _U8, "size": "3<u4", "bits": _U4, "channels": _U4, "format": _U4}
_READ = {"normalized": _U4, "linear": _U4, "modes": "3<u4", "scaled": _U4, "border": "4<f4"}
_FIELDS = {**_HEAD, **_TEXEL, **_READ, "buffer": _U4, "surface": _U4}
RECORD = np.dtype(list(_FIELDS.items()))
"""dims: 1 to 3. layers: 0 unless the texture is layered. faces: 6 of a cube, else 0. pitch, slice:
bytes from row to row, and from layer or depth to the next. size: width, height, depth in texels.
bits, channels, format: of a texel. normalized: coordinates from 0 to 1. linear: a linear filter.
scaled: integers are read as floats from 0 or -1 to 1. border: the color of BORDER. buffer: linear
memory, read by integers. surface: whether the object is a surface."""
SIGNED_16, UNSIGNED_16 = 2**15 - 1, 2**16 - 1
"""Units of 1 in the fixed point to which an H200 rounds filtered integers: the sum, or each part of
it if they are signed."""
WHOLE = 256
"""Sum of a filter's weights, which have 8 bits after the point."""
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Texels:
    """Texels that coordinates select; each array is [texels per coordinate, coordinates].

    at: addresses of the texels; inside: whether each texel exists; weights: weights of the filter,
        which add up to `WHOLE`
    """

    at: Indices
    inside: NDArray[np.bool_]
    weights: Indices


@dataclass(frozen=True)
class Texture:
    """A decoded texture or surface; its attributes are the fields of `RECORD`."""

    dims: int
    layers: int
    faces: int
    base: int
    pitch: int
    slice: int
    size: tuple[int, int, int]
    bits: int
    channels: int
    format: int
    normalized: bool
    linear: bool
    modes: tuple[int, int, int]
    scaled: bool
    border: tuple[float, float, float, float]
    buffer: bool
    surface: bool

    @staticmethod
    @lru_cache
    def decode(raw: bytes) -> Texture:
        """Reads a descriptor. Raises MachineError if the bytes are not a descriptor."""
        record = np.frombuffer(raw, RECORD, 1)[0]
        if record["magic"] != MAGIC:
            raise MachineError(
                "bad-texture",
                "expected a handle of cudaCreateTextureObject or cudaCreateSurfaceObject, got "
                "another value",
            )
        fields = {name: record[name].tolist() for name in _FIELDS if name != "magic"}
        triples = {name: tuple(fields[name]) for name in ("size", "modes", "border")}
        flags = ("normalized", "linear", "scaled", "buffer", "surface")
        return Texture(**{**fields, **triples, **{name: bool(fields[name]) for name in flags}})

    @property
    def texel(self) -> int:
        """Size of a texel in bytes."""
        return self.bits * self.channels // 8

    @property
    def nbytes(self) -> int:
        """Bytes from the first texel to the last, both included."""
        slices = self.size[2] if self.dims == 3 else max(self.layers, 1) * max(self.faces, 1)
        rows = (self.size[1] - 1) * self.pitch if self.dims > 1 else 0
        return (slices - 1) * self.slice + rows + self.size[0] * self.texel

    @property
    def floats(self) -> bool:
        """Whether fetched values are f32; if not, they are integers."""
        return self.scaled or self.format == FLOAT

    def fetched(self, coordinates: Floats, layer: Indices) -> Texels:
        """Texels that a fetch reads at f32 coordinates [dims, n], in layers [n]."""
        if self.faces:
            coordinates, face = _on_face(coordinates)
            layer = self.faces * layer + face
        scale = np.array(self.size[: len(coordinates)])[:, None]
        x = _finite(coordinates * scale if self.normalized or self.faces else coordinates)
        if not self.linear:
            return self._texels(np.floor(x).astype(np.int64)[None], None, layer)
        if self.dims == 1 and self.modes[1] == BORDER and not self.buffer:
            x = np.stack([x[0], np.zeros(x.shape[1])])  # one row, between rows of the border
        first = np.floor(x - 0.5)
        weights = _split(np.floor((x - 0.5 - first) * WHOLE + 0.5).astype(np.int64))
        corners = np.array(list(np.ndindex(*(2,) * len(x))))[:, :, None]
        return self._texels(first.astype(np.int64) + corners, weights, layer)

    def gathered(self, coordinates: Floats, layer: Indices) -> Texels:
        """The four texels that a linear filter of 2-D coordinates would use, counterclockwise from
        the lower left (PTX ISA 9.7.10.4, "tld4")."""
        scaled = coordinates * np.array(self.size[:2])[:, None] if self.normalized else coordinates
        first = np.floor(_finite(scaled) - 0.5).astype(np.int64)
        around = np.array([(0, 1), (1, 1), (1, 0), (0, 0)])[:, :, None]
        return self._texels(first + around, None, layer)

    def indexed(self, coordinates: Indices, layer: Indices) -> Texels:
        """Texels at integer coordinates [dims, n]."""
        return self._texels(coordinates[None], None, layer)

    def _texels(self, index: Indices, weights: Indices | None, layer: Indices) -> Texels:
        """Texels at indices [texels, dims, n], by the address modes."""
        places, inside = [], np.ones(index.shape[::2], bool)
        for axis, mode in zip(range(index.shape[1]), self.modes, strict=False):
            at, size = index[:, axis], self.size[axis]
            if self.buffer or mode == BORDER:
                inside &= (at >= 0) & (at < size)
            elif mode != CLAMP and self.normalized:  # the others need normalized coordinates
                at = at % (size if mode == WRAP else 2 * size)
                at = np.where(at >= size, 2 * size - 1 - at, at)
            places.append(at.clip(0, size - 1))
        if weights is None:
            weights = np.full(inside.shape, WHOLE)
        return Texels(self.address(places, layer), inside, weights)

    def address(self, places: list[Indices], layer: Indices) -> Indices:
        """Addresses of the texels at these indices. The texels must exist; a layer index above the
        last layer counts as the last layer.
        """
        steps = (self.texel, self.pitch, self.slice)
        at = self.base + sum(place * step for place, step in zip(places, steps, strict=False))
        if self.layers or self.faces:
            last = max(self.layers, 1) * max(self.faces, 1) - 1
            at = at + layer.clip(0, last) * self.slice
        return np.asarray(at, np.int64)

    def values(self, raw: NDArray[np.uint8]) -> NDArray[np.float64] | Indices:
        """Values of texels, uint8 [..., bytes], by channel: f64 if the texture holds floats, else
        int64.
        """
        letter = {SIGNED: "i", UNSIGNED: "u", FLOAT: "f"}[self.format]
        found = np.ascontiguousarray(raw).view(f"<{letter}{self.bits // 8}")
        if not self.floats:
            return found.astype(np.int64)
        whole = found.astype(np.float64)
        if self.format == UNSIGNED:
            return whole / (2**self.bits - 1)
        return whole if self.format == FLOAT else np.maximum(whole / (2 ** (self.bits - 1) - 1), -1)

    def combined(
        self, found: Texels, wanted: NDArray[np.bool_], raw: NDArray[np.uint8]
    ) -> NDArray[np.float64] | Indices:
        """Returns the results of a fetch, [n, channels], from the texels that it read.

        wanted: the texels, each array [texels, n]; raw: their bytes, uint8 [wanted, bytes]
        """
        values = self.each(wanted, raw)
        if not self.linear:
            return values[0]
        parts = values * found.weights[..., None] / WHOLE
        if self.scaled and self.format == UNSIGNED:  # in fixed point of 16 bits
            return np.floor(parts.sum(axis=0) * UNSIGNED_16 + 0.5) / UNSIGNED_16
        if self.scaled:
            parts = np.copysign(np.floor(np.abs(parts) * SIGNED_16 + 0.5), parts) / SIGNED_16
        return np.asarray(parts.sum(axis=0))

    def each(
        self, wanted: NDArray[np.bool_], raw: NDArray[np.uint8]
    ) -> NDArray[np.float64] | Indices:
        """Values of the texels by channel, [texels, n, channels]; the arguments are those of
        `combined`.
        """
        values = np.broadcast_to(self.outside, (*wanted.shape, self.channels))
        values = values.astype(np.float64 if self.floats else np.int64)
        values[wanted] = self.values(raw)
        return values

    @property
    def outside(self) -> NDArray[np.float64]:
        """Value, by channel, that a fetch returns for a texel outside the texture."""
        return np.array(self.border[: self.channels]) * (BORDER in self.modes)


def _split(fractions: Indices) -> Indices:
    """Weights of the corners, [2 ** dims, n], in the order of their indices.

    An axis after another splits each weight in two, rounded to 1/256: in a plane y, then x, in a
    volume z, x, then y. Ties round in favour of the upper part in a plane, of the lower in a
    volume. Measured on an H200; the guide gives exact products.
    """
    dims, count = fractions.shape
    weights = np.full((1,) * dims + (count,), WHOLE)
    tie = WHOLE // 2 - (dims < 3)
    for axis in ((0,), (1, 0), (2, 0, 1))[dims - 1]:
        low = weights * (WHOLE - fractions[axis]) + tie >> 8
        weights = np.concatenate([low, weights - low], axis=axis)
    return weights.reshape(2**dims, count)


def _finite(x: Floats) -> Floats:
    """Coordinates that an index can hold; NaN is 0."""
    return np.nan_to_num(x).clip(-(2.0**30), 2.0**30)


def _on_face(direction: Floats) -> tuple[Floats, Indices]:
    """Coordinates on a face of a cube, [2, n] from 0 to 1, and the number of the face, of a
    direction [3, n] (CUDA C++ Programming Guide, "Cubemap Textures")."""
    x, y, z = direction
    size = np.abs(direction)
    axis = np.where(
        (size[0] >= size[1]) & (size[0] >= size[2]), 0, np.where(size[1] >= size[2], 1, 2)
    )
    negative = np.take_along_axis(direction, axis[None], 0)[0] < 0
    sides = [((-z, -y), (z, -y)), ((x, z), (x, -z)), ((x, -y), (-x, -y))]
    s, t = (
        np.choose(axis, [np.where(negative, down[n], up[n]) for up, down in sides]) for n in (0, 1)
    )
    major = np.take_along_axis(size, axis[None], 0)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (np.stack([s, t]) / major + 1) / 2, (2 * axis + negative).astype(np.int64)

"""tex, tld4 and txq of texture objects (PTX ISA 9.7.10), and the handles of texture and surface
objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Unknown
from tcir.interp.ptx.isa.memory import read
from tcir.interp.ptx.lanes import LANE_INDICES, LANE_MASK
from tcir.interp.ptx.lanes import bits as lane_mask
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import S32, U32, U64, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Address, Operand, Reg, Site
from tcir.interp.ptx.warp import Warp
from tcir.machine import MachineError
from tcir.machine.memory.undefined import Origin, Undefined
from tcir.machine.order.distinct import distinct
from tcir.machine.textures import BYTES, Texels, Texture

F32 = view("f32")
GEOMETRIES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3}
"""Number of coordinates of each geometry, without the layer."""
_LEVELS = {None: 0, "base": 0, "level": 1, "grad": 2}
"""Number of operands after the coordinates."""
_GEOMETRY_WORDS = {
    (dims, layered): f"{'a' if layered else ''}{dims}d" for dims in (1, 2, 3) for layered in (0, 1)
}


@dataclass(frozen=True)
class ObjectPlace:
    """The operand `[object, {coordinates}]`: slots of the handle, of the layer (-1: no layer) and
    of the coordinates. view: register view of the coordinates
    """

    handle: int
    layer: int
    coordinates: tuple[int, ...]
    view: int
    geometry: str
    surface: bool
    site: Site

    @staticmethod
    def of(d: Decode, operand: Operand, geometry: str, kind: str, surface: bool) -> ObjectPlace:
        """Decodes the operand. kind: name of the type of a coordinate"""
        if not isinstance(operand, Address) or operand.coordinates is None:
            raise d.malformed("expected [object, {coordinates}]")
        handle = handle_of(d, operand)
        layered, count, given = (
            geometry.startswith("a"),
            GEOMETRIES[geometry],
            [*operand.coordinates],
        )
        length = layered + count
        if len(given) not in (length, 4 if length == 3 else length):
            raise d.malformed(f"expected {length} coordinates for .{geometry}, got {len(given)}")
        layer = d.src(given.pop(0), TYPES["u32"]) if layered else -1
        slots = tuple(d.src(each, TYPES[kind]) for each in given[:count])
        return ObjectPlace(handle, layer, slots, view(kind), geometry, surface, d.site)

    def objects(self, w: Warp, m: int) -> Iterator[tuple[Texture, np.ndarray]]:
        """The objects that the active lanes use, each with its lanes."""
        for slot in (self.handle, *self.slots):
            if w.undef[slot] & m:
                w.read_undefined(self.site, (slot,), m)
        for found, lanes in objects(w, self.handle, m, self.site):
            self._check(w, found)
            yield found, lanes

    def _check(self, w: Warp, found: Texture) -> None:
        name = _GEOMETRY_WORDS[found.dims, int(found.layers > 0)]
        if found.faces:
            name = "acube" if found.layers else "cube"
        right = {name, *(("a2d",) if found.surface and found.faces else ())}
        if self.geometry not in right or found.surface != self.surface:
            kind = "surface" if found.surface else "texture"
            raise w.error(
                "wrong-texture",
                f"expected a {'surface' if self.surface else 'texture'} object of .{self.geometry},"
                f" got a {kind} of .{name}",
                self.site,
            )

    @property
    def slots(self) -> tuple[int, ...]:
        """Slots of the layer, if there is one, and of the coordinates."""
        return (*((self.layer,) if self.layer >= 0 else ()), *self.coordinates)

    @property
    def views(self) -> tuple[int, ...]:
        """Register views of `slots`."""
        layer = (U32,) if self.layer >= 0 else ()
        return (*layer, *(self.view,) * len(self.coordinates))

    def rows(self, w: Warp, lanes: np.ndarray) -> list[np.ndarray]:
        """Values of `slots` in the given lanes."""
        return [w.v[n][slot][lanes] for slot, n in zip(self.slots, self.views, strict=True)]

    def apart(self, rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Divides values of `slots` into coordinates [dims, n] (f64 or int64) and layers [n]."""
        wide = np.stack(rows[len(rows) - len(self.coordinates) :])
        wide = wide.astype(np.float64 if self.view == F32 else np.int64)
        layer = rows[0].astype(np.int64) if self.layer >= 0 else np.zeros(len(rows[0]), np.int64)
        return wide, layer


def handle_of(d: Decode, operand: Address) -> int:
    """Slot of an object's handle. Variables such as .texref are reported as incomplete."""
    if not isinstance(operand.base, Reg) or operand.base.type.size != 8 or operand.sampler:
        raise d.incomplete(
            "no rule for .texref, .samplerref and .surfref; pass the handle of a texture or "
            "surface object in a register"
        )
    slot, _, _, _ = d.base(operand)
    return slot


def objects(w: Warp, handle: int, m: int, site: Site) -> Iterator[tuple[Texture, np.ndarray]]:
    """The distinct objects that the handles of the active lanes identify, each with the lanes that
    use it.
    """
    lanes = LANE_INDICES[m]
    handles = w.v[U64][handle][lanes]
    for each in [int(handles[0])] if (handles == handles[0]).all() else distinct(handles).tolist():
        try:
            buffer = w.launch.machine.memory.find(each, each + BYTES, site)
            raw = buffer.data[each - buffer.base : each - buffer.base + BYTES].tobytes()
            found = Texture.decode(raw)
        except MachineError as error:
            raise w.error(
                "bad-texture",
                "expected the handle of a texture or surface object that exists, got "
                f"{each:#x}: {error}",
                site,
            ) from None
        yield found, lanes[handles == each]


def texels(
    w: Warp, texture: Texture, found: Texels, lanes: np.ndarray, site: Site
) -> tuple[np.ndarray, np.ndarray, Undefined | None]:
    """Reads the texels: returns a mask of the texels that are read, [texels, n], their bytes, and
    the undefined ones among them.

    It is an error if the launch writes these texels, because texture accesses are not coherent with
    stores (PTX ISA 9.7.10).
    """
    wanted = found.inside & (found.weights > 0)
    if not wanted.any():
        return wanted, np.zeros((0, texture.texel), np.uint8), None
    who = np.broadcast_to(lanes, wanted.shape)[wanted]
    data, undefined = read(
        w, "global", found.at[wanted], texture.texel, who, site, None, constant=True
    )
    if undefined is None:
        return wanted, data, None
    lost = np.zeros(wanted.shape, bool)
    lost[wanted] = undefined.where.any(axis=1)
    return wanted, data, Undefined(lost, undefined.origin).any(axis=0)


@dataclass(frozen=True)
class FetchedRegisters:
    """The four destination registers of a texture fetch; their view is U32, S32 or F32."""

    slots: tuple[int, ...]
    view: int

    @staticmethod
    def of(d: Decode, kind: str) -> FetchedRegisters:
        """Decodes the vector of destination registers. kind: name of their type"""
        slots = tuple(d.dst(each, TYPES[kind]) for each in d.vector(d.operands[0], 4))
        return FetchedRegisters(slots, {"f32": F32, "s32": S32, "u32": U32}[kind])

    def check(self, w: Warp, texture: Texture, site: Site) -> None:
        """Raises MachineError if the texture gives floats and the registers hold integers, or vice
        versa.
        """
        if texture.floats != (self.view == F32):
            kinds = ("an integer", "a float")
            raise w.error(
                "wrong-texture",
                f"expected {kinds[self.view == F32]} texture for the type of the result, got "
                f"{kinds[texture.floats]} one (the object's format and read mode)",
                site,
            )

    def write(
        self, w: Warp, lanes: np.ndarray, values: np.ndarray, undefined: Undefined | None
    ) -> None:
        """Writes values [n, channels] to the registers. undefined: mask [n] of the lanes with
        undefined values
        """
        mask = lane_mask(_among(lanes))
        unknown = None
        if undefined is not None:
            bits = np.where(_among(lanes[undefined.where]), 0xFF, 0).astype(np.uint8)
            unknown = Unknown(bits[:, None].repeat(4, axis=1), undefined.origin)
        for n, slot in enumerate(self.slots):
            if n < values.shape[1]:
                row = w.v[self.view][slot]
                row[lanes] = values[:, n].astype(row.dtype)
                w.define(slot, mask, unknown)

    def leave(self, w: Warp, m: int, channels: int, site: Site) -> None:
        """Makes the registers of channels that the format lacks undefined, because their value is
        not documented.
        """
        bits = np.where(LANE_MASK[m], np.uint8(0xFF), np.uint8(0))[:, None].repeat(4, axis=1)
        words = f"channel of a texel that has {channels}"
        origin = Origin("undefined-register", site, words, "the format lacks it", what=words)
        for slot in self.slots[channels:]:
            w.define(slot, m, Unknown(bits, origin))


@dataclass(frozen=True)
class TextureFetch:
    """A tex: its object and coordinates, and its destination registers."""

    place: ObjectPlace
    results: FetchedRegisters

    def texels(self, texture: Texture, rows: Sequence[np.ndarray]) -> Texels:
        """The texels of each lane. rows: the values of the slots of the object operand"""
        fetch = texture.fetched if self.place.view == F32 else texture.indexed
        return fetch(*self.place.apart(rows))


def _among(lanes: np.ndarray) -> np.ndarray:
    """Mask of 32 lanes."""
    mask = np.zeros(32, bool)
    mask[lanes] = True
    return mask


@instruction("tex")
def tex(d: Decode) -> Op:
    """`d, [object, {coordinates}] {, level of detail or gradients}`. An object has only one mipmap
    level.
    """
    level = d.take(*filter(None, _LEVELS))
    geometry = d.require(*GEOMETRIES)
    d.require("v4")
    kinds = d.types("f32", "s32", "u32")
    if len(kinds) != 2:
        raise d.malformed(f"expected two types, got {len(kinds)}")
    d.done()
    if len(d.operands) != 2 + _LEVELS[level]:
        raise d.incomplete("no rule for offsets and comparisons of depth")
    results = FetchedRegisters.of(d, kinds[0].name)
    place = ObjectPlace.of(d, d.operands[1], geometry, kinds[1].name, surface=False)

    fetch = TextureFetch(place, results)

    def run(w: Warp, m: int) -> None:
        for texture, lanes in place.objects(w, m):
            results.check(w, texture, place.site)
            found = fetch.texels(texture, place.rows(w, lanes))
            wanted, data, lost = texels(w, texture, found, lanes, place.site)
            results.write(w, lanes, texture.combined(found, wanted, data), lost)
            results.leave(w, lane_mask(_among(lanes)), texture.channels, place.site)

    op = d.plain(run)
    op.form = fetch
    return op


@instruction("tld4")
def tld4(d: Decode) -> Op:
    """`d, [object, {x, y}]`: fetches one channel of four texels."""
    component = "rgba".index(d.require(*"rgba"))
    geometry = d.require("2d", "a2d")
    d.require("v4")
    kinds = d.types("f32", "s32", "u32")
    if [kind.name for kind in kinds[1:]] != ["f32"]:
        raise d.malformed("expected the types of the result and of the coordinates, .f32")
    d.done()
    if len(d.operands) != 2:
        raise d.incomplete("no rule for offsets and comparisons of depth")
    results = FetchedRegisters.of(d, kinds[0].name)
    place = ObjectPlace.of(d, d.operands[1], geometry, "f32", surface=False)

    def run(w: Warp, m: int) -> None:
        for texture, lanes in place.objects(w, m):
            results.check(w, texture, place.site)
            if component >= texture.channels:
                raise w.error(
                    "wrong-texture",
                    f"expected a texture with at least {component + 1} channels, got "
                    f"{texture.channels}",
                    place.site,
                )
            found = texture.gathered(*place.apart(place.rows(w, lanes)))
            wanted, data, lost = texels(w, texture, found, lanes, place.site)
            values = texture.each(wanted, data)[:, :, component]
            results.write(w, lanes, values.T, lost)

    return d.plain(run)


_MODELLED: dict[str, Callable[[Texture], int]] = {
    "width": lambda texture: texture.size[0],
    "height": lambda texture: texture.size[1],
    "depth": lambda texture: texture.size[2],
    "array_size": lambda texture: texture.layers,
    "normalized_coords": lambda texture: int(texture.normalized),
    "num_mipmap_levels": lambda texture: 1,
}
_CODES = ("channel_order", "channel_data_type", "num_samples")
"""Queries whose values are not documented."""


@instruction("txq", "suq")
def query(d: Decode) -> Op:
    """`d, [object]`: reads a property of a texture or surface."""
    which = d.require(*_MODELLED, *_CODES)
    d.type("b32")
    d.done(2)
    if which in _CODES:
        raise d.incomplete(f"no rule for .{which}: its values are not documented")
    if not isinstance(d.operands[1], Address):
        raise d.malformed("expected [object]")
    target, handle = d.dst(d.operands[0], TYPES["b32"]), handle_of(d, d.operands[1])
    site = d.site

    def run(w: Warp, m: int) -> None:
        if w.undef[handle] & m:
            w.read_undefined(site, (handle,), m)
        for found, lanes in objects(w, handle, m, site):
            w.v[U32][target][lanes] = _MODELLED[which](found)
        w.define(target, m, None)

    return d.plain(run)

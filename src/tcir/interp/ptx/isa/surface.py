"""suld and sust of surface objects, without a format (PTX ISA 9.7.11)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.memory import read, store, stored
from tcir.interp.ptx.isa.texture import GEOMETRIES, ObjectPlace
from tcir.interp.ptx.lanes import bits as lane_mask
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import VIEW_DTYPES, unsigned_view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import Operand, Type
from tcir.interp.ptx.warp import Warp
from tcir.machine.textures import Texture

_HINTS = ("ca", "cg", "cs", "cv", "wb", "wt")


@dataclass(frozen=True)
class SurfaceAccess:
    """An access to `count` elements of type `kind` of a surface. The first coordinate counts bytes.

    outside: what happens for coordinates outside the surface: "trap", "clamp" or "zero"
    """

    place: ObjectPlace
    kind: Type
    count: int
    outside: str

    @staticmethod
    def of(d: Decode, operand: Operand) -> SurfaceAccess:
        """Decodes all modifiers, and the operand with the surface."""
        d.require("b")
        geometry = d.require(*(each for each in GEOMETRIES if "cube" not in each))
        d.skip(*_HINTS)
        count = int((d.take("v2", "v4") or "v1")[1:])
        kind = d.type("b8", "b16", "b32", "b64")
        outside = d.require("trap", "clamp", "zero")
        d.done(2)
        place = ObjectPlace.of(d, operand, geometry, "s32", surface=True)
        return SurfaceAccess(place, kind, count, outside)

    @property
    def nbytes(self) -> int:
        """Bytes of an access."""
        return self.count * self.kind.size

    def addresses(
        self, w: Warp, surface: Texture, lanes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Addresses of the elements, and a mask of the addresses inside the surface.

        MachineError for coordinates outside the surface if the access traps, and for a first
        coordinate that is not aligned.
        """
        at, layer = self.place.apart(self.place.rows(w, lanes))
        if (at[0] % self.nbytes).any():
            raise w.error(
                "misaligned-address",
                f"expected a first coordinate that is a multiple of {self.nbytes} bytes, got "
                f"{int(at[0][at[0] % self.nbytes != 0][0])}: it is in bytes",
                self.place.site,
            )
        size = np.array([surface.size[0] * surface.texel, *surface.size[1 : len(at)]])[:, None]
        last = size - np.array([self.nbytes, 1, 1][: len(at)])[:, None]
        layers = surface.layers * max(surface.faces, 1) or max(surface.faces, 1)
        inside = ((at >= 0) & (at <= last)).all(axis=0) & (layer < layers)
        if self.outside == "trap" and not inside.all():
            first = int(np.argmin(inside))
            raise w.error(
                "surface-out-of-bounds",
                f"expected coordinates inside {tuple(size[:, 0].tolist())} (bytes, then rows and "
                f"slices), {layers} layers, got {tuple(at[:, first].tolist())}, layer "
                f"{int(layer[first])}, lane {int(lanes[first])}",
                self.place.site,
            )
        at = at.clip(0, last)
        steps = np.array([1, surface.pitch, surface.slice][: len(at)])[:, None]
        found = surface.base + (at * steps).sum(axis=0) + layer.clip(0, layers - 1) * surface.slice
        return found, inside | (self.outside == "clamp")


@instruction("suld")
def suld(d: Decode) -> Op:
    """`d, [surface, {coordinates}]`"""
    access = SurfaceAccess.of(d, d.operands[1])
    slots = [d.dst(o, access.kind, wider=True) for o in d.vector(d.operands[0], access.count)]
    dtype, site = VIEW_DTYPES[unsigned_view(access.kind.size)], d.site

    def run(w: Warp, m: int) -> None:
        for surface, lanes in access.place.objects(w, m):
            at, inside = access.addresses(w, surface, lanes)
            data = np.zeros((len(lanes), access.nbytes), np.uint8)
            if inside.any():
                data[inside], lost = read(
                    w, "global", at[inside], access.nbytes, lanes[inside], site
                )
                if lost is not None:
                    w.agent.cta.report_undefined(lost.origin, site)
            for n, slot in enumerate(slots):
                w.v[unsigned_view(w.sizes[slot])][slot][lanes] = data.view(dtype)[:, n]
        for slot in slots:
            w.define(slot, m, None)

    return d.plain(run)


@instruction("sust")
def sust(d: Decode) -> Op:
    """`[surface, {coordinates}], source`"""
    access = SurfaceAccess.of(d, d.operands[0])
    slots = [d.src(o, access.kind, wider=True) for o in d.vector(d.operands[1], access.count)]
    dtype, site = VIEW_DTYPES[unsigned_view(access.kind.size)], d.site

    def run(w: Warp, m: int) -> None:
        for surface, lanes in access.place.objects(w, m):
            at, inside = access.addresses(w, surface, lanes)
            if not inside.any():
                continue
            lanes = lanes[inside]
            values = [w.v[unsigned_view(w.sizes[slot])][slot][lanes] for slot in slots]
            data = np.stack([each.astype(dtype) for each in values], axis=1).view(np.uint8)
            active = np.isin(np.arange(32), lanes)
            undefined = stored(w, slots, access.kind.size, lane_mask(active), site)
            store(w, "global", at[inside], data, lanes, site, undefined=undefined)

    return d.plain(run)

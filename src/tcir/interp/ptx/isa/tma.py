"""Tensor copies between global and shared memory (PTX ISA 9.7.9.27, "cp.async.bulk.tensor")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.mbarrier import MULTICAST, shared_addresses
from tcir.interp.ptx.isa.memory import AccessTarget, load, split
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Blocking, Op, PendingGroups, no_effect
from tcir.interp.ptx.registers import S32, U64
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Address, Operand, Site, Vector
from tcir.interp.ptx.threads import alike, one_by_one
from tcir.interp.ptx.warp import Warp
from tcir.machine import DecodedMap, MachineError, TensorMap, TensorOperand
from tcir.machine.refusal import Refusal

_DIMS = ("1d", "2d", "3d", "4d", "5d")
_LOADS = ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128")
_STORES = ("tile", "tile::scatter4", "im2col_no_offs")
_ROWS = ("tile::gather4", "tile::scatter4")  # one column and four rows
_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


@dataclass(frozen=True)
class TensorCopy:
    """A tensor copy between global and shared memory. place: the shared address. tensor: the tensor
    map and the coordinates

    load: the copy is into shared memory. plain: the copy is neither a multicast, nor a reduction,
    nor one of a CTA pair.
    """

    place: AccessTarget
    tensor: TensorPlace
    mode: str
    im2col_offsets: tuple[int, ...]
    load: bool
    plain: bool


class TensorPlace:
    """The operand `[map, {coordinates}]`: the address of the map in each lane, and one slot per
    coordinate.
    """

    def __init__(self, d: Decode, operand: Operand, rank: int, mode: str = "tile") -> None:
        rank = 5 if mode in _ROWS else rank
        if not isinstance(operand, Address) or operand.coordinates is None:
            raise d.malformed("expected [map, {coordinates}]")
        if len(operand.coordinates) != rank:
            raise d.malformed(f"expected {rank} coordinates, got {len(operand.coordinates)}")
        self.slot, size, self.offset, self.space = d.base(operand)
        if size != 8:
            raise d.malformed("expected a 64-bit address of the tensor map")
        self.coordinates = [d.src(c, TYPES["s32"]) for c in operand.coordinates]
        self.site = d.site

    def arguments(self, w: Warp, lane: int) -> dict[str, Any]:
        """Returns the tensor map, its address if it is in global memory, and the coordinates, in
        the form that the simulated machine takes.
        """
        mask = 1 << lane
        for slot in (self.slot, *self.coordinates):
            if w.undef[slot] & mask:
                w.read_undefined(self.site, (slot,), mask)
        at = int(w.v[U64][self.slot][lane]) + self.offset
        if at % 64:
            raise w.error(
                "misaligned-address",
                f"expected a tensor map at a multiple of 64, got {at:#x}",
                self.site,
            )
        space = {"param": "param", "global": "global", "const": "global"}.get(
            self.space or "", "generic"
        )
        if space == "generic":
            space, _, inside = split(np.array([at]))[0]
            at = int(inside[0])
        if space == "global":
            raw = w.agent.tensormap.read(at, site=self.site)
        else:
            raw = load(w, space, np.array([at]), 128, LANE_INDICES[mask], self.site).tobytes()
        return {
            "tensor_map": decode_map(w, raw, self.site),
            "coords": tuple(int(w.v[S32][slot][lane]) for slot in self.coordinates),
            "map_at": at if space == "global" else None,
        }


def decode_map(w: Warp, raw: bytes, site: Site) -> DecodedMap:
    cache = w.launch.maps
    if raw not in cache:
        try:
            cache[raw] = TensorMap.decode(raw)
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None
    return cache[raw]


def _value(w: Warp, slot: int, lane: int, site: Site, n: int) -> int:
    if w.undef[slot] & 1 << lane:
        w.read_undefined(site, (slot,), 1 << lane)
    return int(w.v[n][slot][lane])


@instruction("cp.async.bulk.tensor")
def tensor_copy(d: Decode) -> Op:
    rank = int(d.require(*_DIMS)[0])
    d.skip("L2::cache_hint")
    if d.take("bulk_group"):
        return _tensor_store(d, rank)
    if d.take("mbarrier::complete_tx::bytes") is None:
        raise d.malformed("expected .mbarrier::complete_tx::bytes or .bulk_group")
    d.require("shared::cluster", "shared::cta")
    d.require("global")
    mode = d.take(*_LOADS) or "tile"
    group = d.take("cta_group::1", "cta_group::2")
    multicast = d.take(*MULTICAST) is not None
    d.done((3, 4, 5, 6))
    place = AccessTarget.of(d, d.operands[0], "shared")
    tensor = TensorPlace(d, d.operands[1], rank, mode)
    signal = AccessTarget.of(d, d.operands[2], "shared")
    rest = list(d.operands[3:])
    offsets: list[int] = []
    if mode.startswith("im2col"):
        if not rest or not isinstance(rest[0], Vector):
            raise d.malformed("expected the im2col offsets {…}")
        info = d.vector(rest.pop(0), rank - 2 if mode == "im2col" else 2)
        offsets = [d.src(o, TYPES["u16"]) for o in info]
    mask = d.src(rest.pop(0), TYPES["u16"]) if multicast and rest else None
    if multicast and mask is None:
        raise d.malformed("expected a CTA mask")
    site = d.site

    def run(w: Warp, m: int) -> None:
        targets = shared_addresses(w, place, m, site)
        barriers = shared_addresses(w, signal, m, site)
        rows = zip(LANE_INDICES[m].tolist(), targets, barriers, strict=True)
        for n, target, barrier in one_by_one(w, m, rows):
            w.agent.tma.load(
                target,
                TensorOperand(
                    **tensor.arguments(w, n),
                    mode=mode,
                    im2col_offsets=tuple(_value(w, s, n, site, 2) for s in offsets),
                ),
                barrier,
                cta_mask=None if mask is None else _value(w, mask, n, site, 2),
                cta_group=2 if group == "cta_group::2" else 1,
                site=site,
            )

    op = d.plain(run)
    plain = mask is None and group != "cta_group::2"
    op.form = TensorCopy(place, tensor, mode, tuple(offsets), True, plain)
    return op


def _tensor_store(d: Decode, rank: int, reduction: str | None = None) -> Op:
    d.require("global")
    d.require("shared::cta")
    mode = d.take(*_STORES) or "tile"
    d.done((2, 3))
    tensor = TensorPlace(d, d.operands[0], rank, mode)
    place = AccessTarget.of(d, d.operands[1], "shared")
    site = d.site

    def run(w: Warp, m: int) -> None:
        sources = shared_addresses(w, place, m, site)
        stores = [
            (source, TensorOperand(**tensor.arguments(w, int(lane)), mode=mode))
            for lane, source in zip(LANE_INDICES[m], sources, strict=True)
        ]
        take = alike if reduction is None else one_by_one  # stores of one content are one
        for source, operand in take(w, m, stores):
            w.agent.tma.store(source, operand, reduction, site=site)

    op = d.plain(run)
    op.form = TensorCopy(place, tensor, mode, (), False, reduction is None)
    return op


@instruction("cp.reduce.async.bulk.tensor")
def tensor_reduce(d: Decode) -> Op:
    """Like the tensor store, but each element is combined with the element in memory."""
    rank = int(d.require(*_DIMS)[0])
    d.skip("L2::cache_hint")
    d.require("bulk_group")
    return _tensor_store(d, rank, d.require(*_REDUCTIONS))


@instruction("cp.async.bulk.prefetch.tensor")
def tensor_prefetch(d: Decode) -> Op:
    """Checks the operands like those of a load and has no effect, because the L2 cache is not
    modelled.
    """
    rank = int(d.require(*_DIMS)[0])
    d.skip("L2::cache_hint")
    d.require("L2")
    d.require("global")
    mode = d.take(*_LOADS) or "tile"
    d.done((1, 2, 3))
    tensor = TensorPlace(d, d.operands[0], rank, mode)
    offsets: list[int] = []
    if mode.startswith("im2col"):
        if len(d.operands) < 2 or not isinstance(d.operands[1], Vector):
            raise d.malformed("expected the im2col offsets {…}")
        info = d.vector(d.operands[1], rank - 2 if mode == "im2col" else 2)
        offsets = [d.src(o, TYPES["u16"]) for o in info]
    site = d.site

    def run(w: Warp, m: int) -> None:
        for lane in LANE_INDICES[m]:
            n = int(lane)
            w.agent.tma.prefetch(
                TensorOperand(
                    **tensor.arguments(w, n),
                    mode=mode,
                    im2col_offsets=tuple(_value(w, s, n, site, 2) for s in offsets),
                ),
                site=site,
            )

    return d.plain(run)


@instruction("cp.async.bulk.commit_group")
def bulk_commit(d: Decode) -> Op:
    d.done(0)
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.bulk.commit(site=site)

    return d.plain(run)


@instruction("cp.async.bulk.wait_group")
def bulk_wait(d: Decode) -> Op:
    read = d.take("read") is not None
    d.done(1)
    pending = d.immediate(d.operands[0])
    site = d.site

    def run(w: Warp, m: int) -> Blocking:
        yield from w.agent.bulk.wait(pending, read=read, site=site)

    op = d.blocking(run)
    op.form = PendingGroups(pending)
    return op


@instruction("prefetch.tensormap", "prefetch.const.tensormap", "prefetch.param.tensormap")
def prefetch_tensormap(d: Decode) -> Op:
    """Has no effect: the cache of tensor maps is not modelled."""
    d.done(1)
    d.address(d.operands[0])
    return d.plain(no_effect)

"""ld, st, prefetch and related instructions (PTX ISA 9.7.9 "ld", "st", …).

Ordering qualifiers (.volatile, .relaxed, .acquire, .release and scopes) never change a value here,
because every access of a warp is performed when the instruction executes. They do determine
happens-before (`tcir.machine.order.strong`). Accesses with .volatile and .mmio count as relaxed
accesses of scope sys (PTX ISA 8.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Unknown
from tcir.interp.ptx.lanes import FULL, LANE_INDICES
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32, U64, VIEW_DTYPES, unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import Operand, Site, Type
from tcir.interp.ptx.warp import Warp
from tcir.interp.ptx.windows import SPACES
from tcir.machine import MachineError
from tcir.machine.memory.generic import extent, gathered
from tcir.machine.memory.memories import GUARD, address_words
from tcir.machine.memory.undefined import Origin, Undefined
from tcir.machine.order.distinct import distinct
from tcir.machine.order.strong import Place as StrongPlace
from tcir.machine.order.strong import Strong

SPACE_WORDS = {
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "cluster",
    "global": "global",
    "const": "global",
    "local": "local",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
}
_NARROW = ("shared", "cluster", "local")
"""State spaces whose addresses have 32 bits."""
_SCOPES = ("cta", "cluster", "gpu", "sys")
HINTS = (
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
    "L1::no_allocate", "L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::cache_hint",
    "L2::64B", "L2::128B", "L2::256B",
)  # fmt: skip


def take_space(d: Decode) -> str:
    word = d.take(*SPACE_WORDS)
    return SPACE_WORDS[word] if word else "generic"


@dataclass(frozen=True)
class AccessTarget:
    """Target of an access: slot of the address, size of the address in bytes, offset, and state
    space.
    """

    slot: int
    size: int
    offset: int
    space: str

    @staticmethod
    def of(d: Decode, operand: Operand, space: str) -> AccessTarget:
        """Decodes an address operand. A variable is in its declared state space; parameters of
        calls are in local memory here.
        """
        slot, size, offset, declared = d.address(operand)
        if declared is not None and (space == "generic" or declared == "local"):
            space = SPACE_WORDS[declared]
        return AccessTarget(slot, size, offset, space)

    def effective(self, value: np.ndarray) -> np.ndarray:
        """Adds the offset to the values of the address slot and returns int64 addresses.

        32-bit addresses wrap around (CuTe DSL relies on it), and wider addresses are truncated to
        the width of their state space (PTX ISA 6.4.1, "Addresses as Operands").
        """
        at = value.astype(np.int64) + self.offset
        return at & 0xFFFFFFFF if self.size == 4 or self.space in _NARROW else at


def addresses(w: Warp, place: AccessTarget, m: int, site: Site) -> np.ndarray:
    """int64 addresses of the active lanes."""
    if w.undef[place.slot] & m:
        w.read_undefined(site, (place.slot,), m)
    value = w.v[U64 if place.size == 8 else U32][place.slot]
    return place.effective(value if m == FULL else value[LANE_INDICES[m]])


def check_aligned(w: Warp, at: np.ndarray, nbytes: int, site: Site) -> None:
    if nbytes > 1 and (at & (nbytes - 1)).any():
        bad = int(at[(at & (nbytes - 1)) != 0][0])
        raise w.error(
            "misaligned-address",
            f"expected a multiple of {nbytes}, got {address_words(bad)}",
            site,
        )


@dataclass(frozen=True)
class Load:
    """An ld of `nbytes` bytes per lane, in elements of `dtype`. moves: the results, each as
    (element, slot, view)

    plain: the access is not strong. constant: the launch does not write the loaded bytes.
    """

    place: AccessTarget
    nbytes: int
    dtype: np.dtype
    moves: tuple[tuple[int, int, int], ...]
    plain: bool
    constant: bool


@dataclass(frozen=True)
class Store:
    """An st of `nbytes` bytes per lane, in elements of `dtype`. sources: the operands, each as
    (slot, view)
    """

    place: AccessTarget
    nbytes: int
    dtype: np.dtype
    sources: tuple[tuple[int, int], ...]
    plain: bool


Positions = slice | np.ndarray


def split(at: np.ndarray) -> list[tuple[str, Positions, np.ndarray]]:
    """Divides generic addresses by state space; yields (space, positions in `at`, addresses inside
    the space).
    """
    tags = at >> 32
    first = int(tags[0])
    if (tags == first).all():
        space = SPACES.get(first)
        whole = slice(None)
        return [("global", whole, at) if space is None else (space, whole, at & 0xFFFFFFFF)]
    out: list[tuple[str, Positions, np.ndarray]] = []
    for tag in distinct(tags):
        space = SPACES.get(int(tag))
        where = np.flatnonzero(tags == tag)
        out.append(
            ("global", where, at[where])
            if space is None
            else (space, where, at[where] & 0xFFFFFFFF)
        )
    return out


def _reach(space: str) -> str:
    """A generic address in shared memory may be in any CTA of the cluster."""
    return "cluster" if space == "shared" else space


def _places(w: Warp, space: str, at: np.ndarray, nbytes: int, strong: Strong) -> list[StrongPlace]:
    """The locations that a strong access names: a vector's elements are accesses of their own."""
    owner = None if space == "global" else w.agent.cta.cluster.ctas[0].index
    starts = range(0, nbytes, strong.size)
    return [(owner, a + n, strong.size) for a in sorted(set(at.tolist())) for n in starts]


def load(
    w: Warp,
    space: str,
    at: np.ndarray,
    nbytes: int,
    lanes: np.ndarray,
    site: Site,
    strong: Strong | None = None,
) -> np.ndarray:
    """Like `read`, but reports bytes that are undefined."""
    data, undefined = read(w, space, at, nbytes, lanes, site, strong)
    if undefined is not None:
        w.agent.cta.report_undefined(undefined.origin, site)
    return data


def read(
    w: Warp,
    space: str,
    at: np.ndarray,
    nbytes: int,
    lanes: np.ndarray,
    site: Site,
    strong: Strong | None = None,
    constant: bool = False,
) -> tuple[np.ndarray, Undefined | None]:
    """Reads `nbytes` bytes from each of n addresses, as uint8 [n, nbytes]. lanes: the number of the
    lane that reads each address

    strong: the qualifiers of a strong load. constant: the launch does not write the bytes.
    """
    if space == "generic":
        parts = split(at)
        if len(parts) == 1:
            return read(w, _reach(parts[0][0]), parts[0][2], nbytes, lanes, site, strong)
        found = [
            read(w, _reach(part), inside, nbytes, lanes[where], site, strong)
            for part, where, inside in parts
        ]
        return gathered(found, [where for _, where, _ in parts])
    if strong and space in ("shared", "cluster", "global"):
        if strong.observes and w.launch.machine.checking:
            w.agent.strong.read(_places(w, space, at, nbytes, strong), strong)
        return _load(w, space, at, nbytes, lanes, site, strong)
    if space in ("shared", "cluster", "global"):
        return _load(w, space, at, nbytes, lanes, site, None, constant)
    if space == "param":
        params = w.launch.params
        _bounds(w, space, at, nbytes, len(params), site)
        return params[at[:, None] + np.arange(nbytes)], None
    at = w.own_local(at, lanes, site)
    _bounds(w, space, at, nbytes, w.local.size, site)
    where = lanes[:, None], at[:, None] + np.arange(nbytes)
    unwritten = Origin("undefined-read", site, "local memory", cta=w.agent.cta.index)
    return w.local.data[where], w.local.missing(where, unwritten)


def _elements(
    w: Warp, space: str, at: np.ndarray, data: np.ndarray, strong: Strong
) -> list[tuple[StrongPlace, bytes]]:
    """The locations of a strong access, and the bytes that it reads or writes there."""
    if space == "generic":
        parts = split(at)
        return [
            each
            for part, where, inside in parts
            for each in _elements(w, _reach(part), inside, data[where], strong)
        ]
    if space not in ("shared", "cluster", "global"):
        return []
    owner = None if space == "global" else w.agent.cta.cluster.ctas[0].index
    return [
        ((owner, address + n, strong.size), row[n : n + strong.size].tobytes())
        for address, row in zip(at.tolist(), data, strict=True)
        for n in range(0, data.shape[1], strong.size)
    ]


def _read_for_update(
    w: Warp, op: Op, space: str, at: np.ndarray, nbytes: int, lanes: np.ndarray, strong: Strong
) -> tuple[np.ndarray, Undefined | None]:
    """`read`, of a word that the thread may store to next."""
    assert op.update is not None
    blank = np.zeros((len(at), nbytes), np.uint8)
    places = [place for place, _ in _elements(w, space, at, blank, strong)]
    w.agent.updates.load(places, op.update, op.site)
    if op.follows is not None and (space != "generic" or len(split(at)) == 1):
        for lane, address, place in zip(lanes.tolist(), at.tolist(), places, strict=False):
            w.agent.updates.load_earlier(place, address, partial(op.follows, w, lane))
    data, undefined = read(w, space, at, nbytes, lanes, op.site, strong)
    w.agent.updates.found(_elements(w, space, at, data, strong))
    return data, undefined


def _load(
    w: Warp,
    space: str,
    at: np.ndarray,
    nbytes: int,
    lanes: np.ndarray,
    site: Site,
    strong: Strong | None,
    constant: bool = False,
) -> tuple[np.ndarray, Undefined | None]:
    if space == "global" and not _together(w, at, nbytes):
        each = [slice(n, n + 1) for n in range(len(at))]
        found = [_load(w, space, at[o], nbytes, lanes[o], site, strong, constant) for o in each]
        return gathered(found, each)
    return w.agent.memory.read(
        space, at, nbytes, lanes=lanes, strong=strong, constant=constant, site=site
    )


def _together(w: Warp, at: np.ndarray, nbytes: int) -> bool:
    """Whether all lanes go to one buffer of global memory (or nowhere); buffers lie far apart."""
    low, high = extent(at)
    high += nbytes
    if high - low < GUARD:
        return True
    try:
        w.launch.machine.memory.find(low, high, None)
    except MachineError:
        return False
    return True


def _bounds(w: Warp, space: str, at: np.ndarray, nbytes: int, size: int, site: Site) -> None:
    if ((at < 0) | (at + nbytes > size)).any():
        bad = int(at[(at < 0) | (at + nbytes > size)][0])
        raise w.error(
            "out-of-bounds",
            f"expected .{space} bytes 0..{size - 1}, got {bad}..{bad + nbytes - 1}",
            site,
        )


def store(
    w: Warp,
    space: str,
    at: np.ndarray,
    data: np.ndarray,
    lanes: np.ndarray,
    site: Site,
    strong: Strong | None = None,
    undefined: Undefined | None = None,
) -> None:
    """Writes `data`, uint8 [n, nbytes], to n addresses; the parameters are those of `read`."""
    if space == "generic":
        parts = split(at)
        if len(parts) == 1:
            store(w, _reach(parts[0][0]), parts[0][2], data, lanes, site, strong, undefined)
            return
        for part, where, inside in parts:
            lost = undefined and undefined.of(where)
            store(w, _reach(part), inside, data[where], lanes[where], site, strong, lost)
        return
    if strong and space in ("shared", "cluster", "global"):
        w.agent.lanes.step()  # a number that it shares with no other access
        _store(w, space, at, data, lanes, site, strong, undefined)
        if w.launch.machine.checking:
            w.agent.strong.write(_places(w, space, at, data.shape[1], strong), strong)
        return
    if space in ("shared", "cluster", "global"):
        _store(w, space, at, data, lanes, site, None, undefined)
        return
    if space == "param":
        raise w.error("read-only", "expected a writable address, got kernel parameters", site)
    nbytes = data.shape[1]
    at = w.own_local(at, lanes, site)
    _bounds(w, space, at, nbytes, w.local.size, site)
    place = lanes[:, None], at[:, None] + np.arange(nbytes)
    w.local.data[place] = data
    w.local.written(place, undefined, site)


def _store(
    w: Warp,
    space: str,
    at: np.ndarray,
    data: np.ndarray,
    lanes: np.ndarray,
    site: Site,
    strong: Strong | None,
    undefined: Undefined | None,
) -> None:
    each = [slice(None)]
    if space == "global" and not _together(w, at, data.shape[1]):
        each = [slice(n, n + 1) for n in range(len(at))]
    for one in each:
        lost = undefined and undefined.of(one)
        w.agent.memory.store(
            space, at[one], data[one], lanes=lanes[one], undefined=lost, strong=strong, site=site
        )


def _vector_count(d: Decode) -> int:
    word = d.take("v2", "v4", "v8")
    return int(word[1:]) if word else 1


def _qualifiers(d: Decode) -> Callable[[int], Strong | None]:
    """Function of the size of an element: the qualifiers of a strong access, None of a weak one."""
    word = d.take("weak", "volatile", "relaxed", "acquire", "release", "mmio")
    order = d.take("relaxed", "acquire", "release") if word == "mmio" else word
    scope = d.take(*_SCOPES) or "sys"
    if word in (None, "weak"):
        return lambda size: None
    return lambda size: Strong(scope, size, acquire=order == "acquire", release=order == "release")


@instruction("ld", "ldu")
def ld(d: Decode) -> Op:
    space = take_space(d)
    qualified = _qualifiers(d)
    constant = d.take("nc") is not None or d.name.startswith("ldu")
    d.skip(*HINTS)
    count = _vector_count(d)
    kind = d.type()
    strong = qualified(kind.size)
    d.done((2, 3))  # the third is an L2 cache policy
    if kind.kind == "pred" or kind.size * count > 32:
        raise d.malformed(f"expected at most 32 bytes, got .v{count}.{kind.name}")
    place = AccessTarget.of(d, d.operands[1], space)
    space = place.space
    targets = d.vector(d.operands[0], count)
    moves = []
    for position, target in enumerate(targets):
        dst = d.dst(target, kind, wider=True)
        width = d.slots.sizes[dst]
        signed = kind.kind == "s" and width > kind.size
        moves.append((position, dst, view(f"{'s' if signed else 'u'}{8 * width}")))
    dtype = VIEW_DTYPES[view(f"{'s' if kind.kind == 's' else 'u'}{8 * kind.size}")]
    nbytes = kind.size * count
    site = d.site
    polled = strong and replace(strong, polled=True)

    def run(w: Warp, m: int) -> None:
        at = addresses(w, place, m, site)
        check_aligned(w, at, nbytes, site)
        lanes, how = LANE_INDICES[m], polled if op.idle else strong
        if op.awaited is not None and how is not None:
            how = replace(how, awaited=op.awaited(w))
        if op.update is not None and w.launch.machine.checking:
            assert how is not None
            data, undefined = _read_for_update(w, op, space, at, nbytes, lanes, how)
        else:
            data, undefined = read(w, space, at, nbytes, lanes, site, how, constant)
        values = data.view(dtype)
        v, undef = w.v, w.undef
        for position, dst, n in moves:
            if m == FULL:
                v[n][dst][:] = values[:, position]
            else:
                v[n][dst][lanes] = values[:, position]
            if undefined is None:
                undef[dst] &= ~m
            else:
                w.define(dst, m, _loaded(undefined, lanes, position, kind, w.sizes[dst]))

    op = d.plain(run)
    op.form = Load(place, nbytes, dtype, tuple(moves), strong is None, constant)
    return op


def _loaded(
    undefined: Undefined, lanes: np.ndarray, position: int, kind: Type, size: int
) -> Unknown:
    """Undefined bits of one loaded element in these lanes, extended to a register of `size`
    bytes."""
    element = undefined.where[:, position * kind.size : (position + 1) * kind.size]
    bits = np.zeros((32, size), np.uint8)
    bits[lanes, : kind.size] = element * np.uint8(0xFF)
    if kind.kind == "s":
        bits[lanes, kind.size :] = element[:, -1:] * np.uint8(0xFF)
    return Unknown(bits, undefined.origin)


def stored(w: Warp, sources: Sequence[int], size: int, m: int, site: Site) -> Undefined | None:
    """Mask of the undefined bytes among the low `size` bytes of each source, bool [lanes, bytes of
    all sources]; None if there are none.
    """
    found = [w.undefined(source, m, site) for source in sources]
    origins = [unknown.origin for unknown in found if unknown is not None]
    if not origins:
        return None
    nothing = np.zeros((32, size), np.uint8)
    parts = [nothing if unknown is None else unknown.bits[:, :size] for unknown in found]
    where = np.concatenate(parts, axis=1)[LANE_INDICES[m]] != 0
    return Undefined(where, origins[0]) if where.any() else None


@instruction("st")
def st(d: Decode) -> Op:
    space = take_space(d)
    qualified = _qualifiers(d)
    d.skip(*HINTS)
    count = _vector_count(d)
    kind = d.type()
    strong = qualified(kind.size)
    d.done((2, 3))
    if kind.kind == "pred" or kind.size * count > 32:
        raise d.malformed(f"expected at most 32 bytes, got .v{count}.{kind.name}")
    place = AccessTarget.of(d, d.operands[0], space)
    space = place.space
    sources = [d.src(o, kind, wider=True) for o in d.vector(d.operands[1], count)]
    views = [unsigned_view(d.slots.sizes[s]) for s in sources]
    dtype = VIEW_DTYPES[unsigned_view(kind.size)]
    nbytes = kind.size * count
    site = d.site

    def run(w: Warp, m: int) -> None:
        at = addresses(w, place, m, site)
        check_aligned(w, at, nbytes, site)
        lanes = LANE_INDICES[m]
        data = np.empty((len(at), count), dtype)
        v, undef, undefined = w.v, w.undef, None
        for position, source in enumerate(sources):
            if undef[source] & m and undefined is None:
                undefined = stored(w, sources, kind.size, m, site)
            value = v[views[position]][source]
            data[:, position] = value if m == FULL else value[lanes]
        if op.update is not None and w.launch.machine.checking:
            assert strong is not None
            values = _elements(w, space, at, data.view(np.uint8), strong)
            w.agent.updates.store(values, op.update, site)
        store(w, space, at, data.view(np.uint8), lanes, site, strong, undefined)

    values = tuple(zip(sources, views, strict=True))
    op = d.plain(run)
    op.form = Store(place, nbytes, dtype, values, strong is None)
    return op

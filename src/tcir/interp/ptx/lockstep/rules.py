"""Rules that add the instructions that move data to a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.isa.async_copy import AsyncCopy
from tcir.interp.ptx.isa.memory import AccessTarget, Load, Store, split
from tcir.interp.ptx.isa.mma.warp_matrix import MatrixLoad
from tcir.interp.ptx.isa.tcgen05.access import TmemAccess
from tcir.interp.ptx.isa.texture import TextureFetch, objects
from tcir.interp.ptx.isa.tma import TensorCopy, decode_map
from tcir.interp.ptx.lanes import FULL, LANE_INDICES, LANE_MASK
from tcir.interp.ptx.lockstep.lanes_of import Active
from tcir.interp.ptx.lockstep.memory_steps import (
    CopyToShared,
    GlobalLoad,
    GlobalStore,
    SharedFill,
    SharedLoad,
    SharedMatrices,
    SharedStore,
)
from tcir.interp.ptx.lockstep.recorder import NoReplay, Rule, TracedWarp, TraceRecorder
from tcir.interp.ptx.lockstep.steps import SameLanes
from tcir.interp.ptx.lockstep.tensor_steps import TensorMove, TmemLoad, TmemStore
from tcir.interp.ptx.lockstep.texture_steps import TextureLoad
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import PREDICATE, S32, U32, U64
from tcir.interp.ptx.warp import Warp
from tcir.machine import MachineError
from tcir.machine.order.clocks import Access
from tcir.machine.refusal import Refusal
from tcir.machine.tmem.places import access_base, access_map

Index = NDArray[np.int64]


def _where(warp: Warp, place: AccessTarget, lanes: int) -> tuple[str, Index]:
    """State space, and addresses inside it, of the lanes in the leader."""
    value = warp.v[U64 if place.size == 8 else U32][place.slot][LANE_INDICES[lanes]]
    at, space = place.effective(value), place.space
    if space == "generic":
        parts = split(at)
        if len(parts) > 1:
            raise NoReplay("addresses of several state spaces")
        space, at = parts[0][0], parts[0][2]
    return ("shared" if space == "cluster" else space), at


def _buffer(recorder: TraceRecorder, at: Index, nbytes: int, *, store: bool = False) -> int:
    """The position of the one buffer that the leader's addresses are in. store: whether the bytes
    are only stored to"""
    memory = recorder.cta.machine.memory
    try:
        found = memory.find(int(at.min()), int(at.max()) + nbytes, None, store=store)
    except MachineError:
        raise NoReplay("addresses in several buffers") from None
    return next(n for n, buffer in enumerate(memory.buffers) if buffer is found)


def _defined(warp: Warp, slots: tuple[int, ...], lanes: int) -> None:
    for slot in slots:
        if warp.undef[slot] & lanes:
            raise NoReplay("an undefined operand")


def _bytes_defined(warp: Warp, slots: tuple[int, ...], size: int, lanes: int) -> None:
    """Requires the lowest bytes of these registers to be defined."""
    for slot in slots:
        if warp.undef[slot] & lanes:
            known = None if slot in warp.pending else warp.unknown.get(slot)
            if known is None or known.bits[LANE_INDICES[lanes], :size].any():
                raise NoReplay("an undefined operand")


def load(recorder: TraceRecorder, traced: TracedWarp, op: Op, active: Active) -> None:
    """Records a load (``ld``)."""
    form, warp = op.form, traced.warp
    assert isinstance(form, Load)
    if not active.leader:
        recorder.steps.append(SameLanes(active))
        return
    if not form.plain:
        raise NoReplay("a strong access")
    _defined(warp, (form.place.slot,), active.leader)
    space, at = _where(warp, form.place, active.leader)
    last, traced.last_load = traced.last_load, (op.site, False)
    if space == "param":
        varying = form.place.slot in traced.varying
    elif space == "shared":
        if form.place.slot in traced.varying:
            recorder.same(traced, op, (form.place.slot,), active.leader)
        varying = _load_shared(recorder, traced, op, active, at, last)
    elif space == "global":
        varying = _load_global(recorder, traced, op, active, at, last)
    else:
        raise NoReplay(f"no rule for loads from {space} memory")
    results = tuple(slot for _, slot, _ in form.moves)
    if space == "param" and varying:
        raise NoReplay("a varying address of a parameter")
    if varying:
        traced.varying.update(results)
    elif active.guard >= 0:
        raise NoReplay("a uniform load under a varying guard")
    else:
        recorder.uniform(traced, results, active)


def _again(traced: TracedWarp, op: Op, last: tuple[object, bool], parted: bool = False) -> bool:
    """Whether the load may repeat the last one of the warp. parted: whether its lanes may know
    different things"""
    if not parted and len(traced.warp.agent.lanes.groups) > 1:
        raise NoReplay("a varying load by lanes that know different things")
    traced.last_load = op.site, True
    if last[0] == op.site and not last[1]:
        raise NoReplay("a varying load after a uniform one at its place")
    return last[0] == op.site


def _load_shared(
    recorder: TraceRecorder,
    traced: TracedWarp,
    op: Op,
    active: Active,
    at: Index,
    last: tuple[object, bool],
) -> bool:
    form = op.form
    assert isinstance(form, Load)
    if active.guard >= 0:
        recorder.steps.append(SameLanes(active))
        active = Active(active.warp, active.mask, active.leader, active.whole)
    if at.min() < recorder.cta.smem.start or at.max() + form.nbytes > recorder.cta.smem.size:
        raise NoReplay("an illegal access to shared memory")
    if not recorder.readable(at[:, None] + np.arange(form.nbytes)):
        return False
    again = _again(traced, op, last, parted=True)
    old = tuple(recorder.old(traced, slot, view, active) for _, slot, view in form.moves)
    parts = _parts(traced, active.leader)
    recorder.steps.append(SharedLoad(active, form, at, old, again, parts))
    return True


def _parts(traced: TracedWarp, lanes: int) -> tuple[Index, ...]:
    """Positions among these lanes of those that know the same, which the machine executes one part
    after the other (`Lanes.parts`)."""
    every = LANE_MASK[lanes].cumsum() - 1
    known = (lanes & each.lanes for each in traced.warp.agent.lanes.groups)
    return tuple(every[LANE_INDICES[part]] for part in known if part)


def _load_global(
    recorder: TraceRecorder,
    traced: TracedWarp,
    op: Op,
    active: Active,
    at: Index,
    last: tuple[object, bool],
) -> bool:
    form = op.form
    assert isinstance(form, Load)
    slot = form.place.slot
    number = _buffer(recorder, at, form.nbytes)
    if slot not in traced.varying:
        recorder.reads.add(number)
        return False
    results = [target for _, target, _ in form.moves]
    active = recorder.masked(traced, active, [slot], results)
    again = _again(traced, op, last)
    old = tuple(recorder.old(traced, target, view, active) for _, target, view in form.moves)
    buffer = recorder.cta.machine.memory.buffers[number]
    found = np.zeros((32, form.nbytes), np.uint8)
    lanes = LANE_INDICES[active.leader]
    found[lanes] = buffer.data[at[:, None] - buffer.base + np.arange(form.nbytes)]
    recorder.steps.append(GlobalLoad(active, form, slot, number, old, again, found))
    return True


def fetch(recorder: TraceRecorder, traced: TracedWarp, op: Op, active: Active) -> None:
    """Records ``tex``."""
    form, warp, lanes = op.form, traced.warp, active.leader
    assert isinstance(form, TextureFetch)
    if not lanes:
        recorder.steps.append(SameLanes(active))
        return
    place, results = form.place, form.results.slots
    _defined(warp, (place.handle, *place.slots), lanes)
    recorder.same(traced, op, (place.handle,), lanes)
    try:
        found = [texture for texture, _ in objects(warp, place.handle, lanes, op.site)]
    except MachineError:
        raise NoReplay("an illegal object") from None
    if len(found) > 1:
        raise NoReplay("several textures")
    (texture,) = found
    number = _buffer(recorder, np.array([texture.base]), texture.nbytes)
    last, traced.last_load = traced.last_load, (op.site, False)
    if traced.varying.isdisjoint(place.slots):
        if active.guard >= 0:
            raise NoReplay("a uniform fetch under a varying guard")
        recorder.reads.add(number)
        recorder.uniform(traced, results, active)
        return
    results = results[: texture.channels]
    active = recorder.masked(traced, active, [*place.slots], [*results])
    again = _again(traced, op, last)
    pairs = tuple(zip(place.slots, place.views, strict=True))
    operands = tuple(recorder.operand(traced, slot, n) for slot, n in pairs)
    old = tuple(recorder.old(traced, slot, form.results.view, active) for slot in results)
    recorder.steps.append(TextureLoad(active, form, texture, operands, number, old, again))
    traced.varying.update(results)


def store(recorder: TraceRecorder, traced: TracedWarp, op: Op, active: Active) -> None:
    """Records a store (``st``)."""
    form, warp = op.form, traced.warp
    assert isinstance(form, Store)
    if not active.leader:
        recorder.steps.append(SameLanes(active))
        return
    if warp.agent.polls or not form.plain:
        raise NoReplay("a strong access, or a store while polling")
    slots = tuple(slot for slot, _ in form.sources)
    _defined(warp, (form.place.slot,), active.leader)
    _bytes_defined(warp, slots, form.dtype.itemsize, active.leader)
    space, at = _where(warp, form.place, active.leader)
    sources = tuple(recorder.operand(traced, slot, view) for slot, view in form.sources)
    if space == "shared":
        varying = not traced.varying.isdisjoint(slots)
        if active.guard >= 0:
            recorder.steps.append(SameLanes(active))
            active = Active(active.warp, active.mask, active.leader, active.whole)
        recorder.same(traced, op, (form.place.slot,), active.leader)
        if varying and len(set(at.tolist())) < at.size:
            raise NoReplay("varying stores of several lanes to one place")
        recorder.steps.append(SharedStore(active, form, at, sources))
        if varying or form.nbytes % 4 == 0:
            recorder.written(at[:, None] + np.arange(form.nbytes), varying)
    elif space == "global":
        if form.place.slot not in traced.varying:
            raise NoReplay("a store of all CTAs to one place")
        number = _buffer(recorder, at, form.nbytes, store=True)
        active = recorder.masked(traced, active, [form.place.slot, *slots], [])
        access = warp.agent.own_access("generic", op.site)
        recorder.steps.append(GlobalStore(active, form, form.place.slot, number, sources, access))
    else:
        raise NoReplay(f"no rule for such stores to {space} memory")


def tensor_copy(recorder: TraceRecorder, traced: TracedWarp, op: Op, active: Active) -> None:
    """Records ``cp.async.bulk.tensor``."""
    form, warp = op.form, traced.warp
    assert isinstance(form, TensorCopy)
    lanes = active.leader
    if lanes & (lanes - 1) or not form.plain:
        raise NoReplay("a tensor copy by several lanes, to several CTAs, or a reduction")
    lane = lanes.bit_length() - 1
    tensor = form.tensor
    _defined(warp, op.reads, lanes)
    fixed = {*op.reads} - {*tensor.coordinates} | {form.place.slot, tensor.slot}
    recorder.same(traced, op, (*sorted(fixed), *form.im2col_offsets), lanes)
    at = np.array([int(warp.v[U64][tensor.slot][lane]) + tensor.offset])
    space, inside = tensor.space or "generic", at
    if space == "generic":
        space, _, inside = split(at)[0]
    if space != "param":
        raise NoReplay("a tensor map that is no parameter")
    start = int(inside[0])
    decoded = decode_map(warp, warp.launch.params[start : start + 128].tobytes(), op.site)
    _, shared = _where(warp, form.place, lanes)
    offsets = tuple(int(warp.v[2][slot][lane]) for slot in form.im2col_offsets)
    operands = tuple(recorder.operand(traced, slot, S32) for slot in tensor.coordinates)
    bulk = warp.agent.bulk
    step = TensorMove(
        warp.index, lane, form, decoded, operands, offsets, int(shared[0]), op.site,
        Access(bulk.writes, bulk.number, "TMA store", op.site, "async"),
    )  # fmt: skip
    coords = tuple(int(warp.v[S32][slot][lane]) for slot in tensor.coordinates)
    box = step.box(recorder.cta.machine.assumptions, coords)
    if box is None:
        raise NoReplay("an illegal tensor copy")
    where = box.shared[:, None] + np.arange(box.fields.piece_bytes)
    if not form.load:
        recorder.readable(where, always=True)
    recorder.steps.append(step)
    if form.load:
        recorder.written(where, not traced.varying.isdisjoint(tensor.coordinates))


def tmem_access(recorder: TraceRecorder, traced: TracedWarp, op: Op, active: Active) -> None:
    """Records ``tcgen05.ld`` and ``tcgen05.st``."""
    form, warp = op.form, traced.warp
    assert isinstance(form, TmemAccess)
    recorder.same(traced, op, (form.address.slot,), active.leader)
    lane = LANE_INDICES[active.leader][0]
    address = form.address(warp, int(lane))
    try:
        rule = recorder.cta.machine.assumptions.ld_st_lane
        first, column = access_base(address, form.shape, warp.agent.warp, rule)
        table = access_map(form.shape, form.count, form.packed, form.split)
    except Refusal:
        raise NoReplay("an illegal access to tensor memory") from None
    lanes, columns = first + table.lanes, column + table.columns
    if columns.max() + table.halves > recorder.cta.tmem.words.shape[1]:
        raise NoReplay("an illegal access to tensor memory")
    if form.load:
        defined = recorder.cta.tmem.defined
        if not all(defined[lanes, columns + n].all() for n in range(table.halves)):
            raise NoReplay("undefined words of tensor memory")
        old = tuple(recorder.old(traced, slot, U32, active) for slot in form.slots)
        recorder.steps.append(TmemLoad(active, lanes, columns, table.halves, form.slots, old))
        traced.varying.update(form.slots)
        return
    if table.halves == 2 or not active.whole:
        raise NoReplay("no rule for tcgen05.st of halves, or by some lanes")
    _defined(warp, form.slots, active.leader)
    sources = tuple(recorder.operand(traced, slot, U32) for slot in form.slots)
    recorder.steps.append(TmemStore(warp.index, lanes, columns, sources))


def load_matrices(recorder: TraceRecorder, traced: TracedWarp, op: Op, active: Active) -> None:
    """Records ``ldmatrix``."""
    form, smem = op.form, recorder.cta.smem
    assert isinstance(form, MatrixLoad)
    rows = (1 << 8 * form.count) - 1
    if active.leader != FULL:
        raise NoReplay("ldmatrix by some lanes")
    recorder.same(traced, op, (form.place.slot,), rows)
    space, at = _where(traced.warp, form.place, rows)
    where = at[:, None] + np.arange(16)
    if space != "shared" or at.min() < smem.start or where.max() >= smem.size:
        raise NoReplay("ldmatrix outside shared memory")
    last, traced.last_load = traced.last_load, (op.site, False)
    if not recorder.readable(where):
        recorder.uniform(traced, form.targets, active)
        return
    again = _again(traced, op, last)
    recorder.steps.append(SharedMatrices(active.warp, form, at, again))
    traced.varying.update(form.targets)


def async_copy(recorder: TraceRecorder, traced: TracedWarp, op: Op, active: Active) -> None:
    """Records ``cp.async``."""
    form, warp, lanes = op.form, traced.warp, active.leader
    assert isinstance(form, AsyncCopy)
    slots = [slot for slot in (form.count, form.ignore) if slot >= 0]
    _defined(warp, (form.shared.slot, form.source.slot, *slots), lanes)
    recorder.same(traced, op, (form.shared.slot,), lanes)
    _, at = _where(warp, form.shared, lanes)
    space, source = _where(warp, form.source, lanes)
    who = LANE_INDICES[lanes]
    read = np.full(len(who), form.nbytes, np.int64)
    if form.count >= 0:
        read = warp.v[U32][form.count][who].astype(np.int64)
    elif form.ignore >= 0:
        read[LANE_MASK[(warp.p[form.ignore] ^ form.flip) & FULL][who]] = 0
    if space != "global" or len(set(at.tolist())) < at.size:
        raise NoReplay("cp.async twice to one place")
    number, found = _copied(recorder, source, read, form.nbytes)
    shared = at[:, None] + np.arange(form.nbytes)
    varying = not traced.varying.isdisjoint([form.source.slot, *slots])
    recorder.written(shared, varying)
    if not varying:
        if number is not None:
            recorder.reads.add(number)
        recorder.steps.append(SharedFill(shared.reshape(-1), found.reshape(-1)))
        return
    count = None if form.count < 0 else recorder.operand(traced, form.count, U32)
    ignore = None if form.ignore < 0 else recorder.operand(traced, form.ignore, PREDICATE)
    origin = recorder.operand(traced, form.source.slot, U64 if form.source.size == 8 else U32)
    recorder.steps.append(CopyToShared(active, form, at, origin, count, ignore, number, found))


def _copied(
    recorder: TraceRecorder, source: Index, read: Index, nbytes: int
) -> tuple[int | None, NDArray[np.uint8]]:
    """The buffer that the leader's lanes read (None: nothing is read), and the bytes that arrive in
    shared memory, [lanes, nbytes]."""
    some = read > 0
    if not some.any():
        return None, np.zeros((len(read), nbytes), np.uint8)
    number = _buffer(recorder, source[some], int(read[some].max()))
    buffer = recorder.cta.machine.memory.buffers[number]
    inside = np.arange(nbytes) < read[:, None]
    where = np.where(inside, source[:, None] - buffer.base + np.arange(nbytes), 0)
    if where.min() < 0 or where.max() >= buffer.data.size:
        raise NoReplay("an illegal cp.async")
    if buffer.defined is not None and not buffer.defined[where].all():
        raise NoReplay("undefined bytes of global memory")
    return number, np.where(inside, buffer.data[where], np.uint8(0))


load.masked = store.masked = fetch.masked = True  # type: ignore[attr-defined]

RULES: dict[type, Rule] = {
    Load: load,
    Store: store,
    TextureFetch: fetch,
    TensorCopy: tensor_copy,
    TmemAccess: tmem_access,
    MatrixLoad: load_matrices,
    AsyncCopy: async_copy,
}
"""By the form of an instruction."""

"""Lowers a trace to native kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.kernels.derived import AND, COPY, NOT, SELECT, XOR, DerivedKernel, one_kernel
from tcir.interp.ptx.lanes import FULL, LANE_INDICES, LANE_MASK
from tcir.interp.ptx.lockstep import group as replayed
from tcir.interp.ptx.lockstep.lanes_of import Active
from tcir.interp.ptx.lockstep.memory_steps import (
    GlobalLoad,
    GlobalStore,
    SharedFill,
    SharedLoad,
    SharedStore,
)
from tcir.interp.ptx.lockstep.native.emitted import (
    COUNTED,
    DATA,
    GIVEN,
    LEFT,
    NOTHING,
    PLACES,
    SHARED,
    SPECIAL,
    Emitted,
    EmittedOperand,
)
from tcir.interp.ptx.lockstep.steps import Computing, SameLanes, SameValue, Step
from tcir.interp.ptx.registers import dtype_of
from tcir.machine.memory.memories import Buffer

_INTS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
LEFT_FLAG = EmittedOperand(LEFT, 0, 1)


class NotNative(Exception):
    """Raised for a step that has no kernel, so that numpy has to execute it."""


@dataclass(frozen=True)
class GlobalAccess:
    """An access to global memory. step: the step that contains it. whole: whether all 32 lanes of a
    warp execute it
    """

    step: GlobalLoad | GlobalStore
    whole: bool
    data: int
    """Offset of a store's data: bytes per CTA used by the stores before it."""


class NativeLowering:
    """Lowers the steps of a trace to native kernels. registers: for each warp and slot, the row
    that contains the register now
    """

    def __init__(self, specials: dict[int, int], shared: int, buffers: Sequence[Buffer]) -> None:
        """specials: the number of each special register that tells the CTAs apart, by slot.
        shared: bytes of shared memory of a CTA."""
        self.out = Emitted()
        self.registers: dict[tuple[int, int], EmittedOperand] = {}
        self.touches: list[GlobalAccess] = []
        self.counters: dict[str, int] = {}
        self.stored = 0
        """Bytes of all stores of a CTA."""
        self._specials, self._shared, self._buffers = specials, shared, buffers
        self._last: dict[int, tuple[EmittedOperand, np.ndarray | None]] = {}
        """Places of each warp's last load."""
        self._rules: dict[type, Callable[..., None]] = {
            Computing: self._computing, SameLanes: self._same_lanes, SameValue: self._same_value,
            SharedFill: self._shared_fill, SharedLoad: self._shared_load,
            SharedStore: self._shared_store, GlobalLoad: self._global_load,
            GlobalStore: self._global_store,
        }  # fmt: skip

    def lower(self, steps: Sequence[Step]) -> None:
        """Lowers all steps; raises `NotNative` if one has no kernel."""
        for step in steps:
            rule = self._rules.get(type(step))
            if rule is None:
                raise NotNative(type(step).__name__)
            rule(step)

    # --- operands --------------------------------------------------------------------------------

    def _value(self, warp: int, operand: replayed.Operand, size: int) -> EmittedOperand:
        """A register, or the 32 values of a uniform one, of lanes of `size` bytes."""
        if not isinstance(operand, int):
            if operand.dtype.itemsize != size:
                raise NotNative("a constant of another width")
            return self.out.constant(operand)
        found = self.registers.get((warp, operand))
        if found is None:
            number = self._specials.get(operand)
            if number is None or size != 4:
                raise NotNative("a register that no step has written")
            found = self.registers[warp, operand] = self.out.row(4)
            self.out.call("splat_i32", found, EmittedOperand(SPECIAL, number, 4))
        if found.stride != 32 * size:
            raise NotNative("a register of another width")
        return found

    def _mask(self, active: Active) -> EmittedOperand:
        """A byte for each lane: whether it executes the instruction."""
        if active.guard < 0:
            return self.out.constant(LANE_MASK[active.leader])
        out = self.out
        own = self._value(active.warp, active.guard, 1)
        if active.negate:
            own = self._new(1, NOT, own)
        if active.mask != FULL:
            own = self._new(1, AND, own, out.constant(LANE_MASK[active.mask]))
        leader = LANE_MASK[active.leader]
        if active.unread:
            lanes = out.constant(~leader & LANE_MASK[active.unread])
            out.call("leave_if", a=self._new(1, AND, own, lanes), c=LEFT_FLAG)
        if active.unwritten:
            lanes = out.constant(leader & LANE_MASK[active.unwritten])
            others = self._new(1, NOT, own)
            out.call("leave_if", a=self._new(1, AND, others, lanes), c=LEFT_FLAG)
        return own

    def _new(
        self, size: int, kernel: str | DerivedKernel, *sources: EmittedOperand
    ) -> EmittedOperand:
        row = self.out.row(size)
        a, b, c = (*sources, NOTHING, NOTHING)[:3]
        self.out.call(kernel, row, a, b, c)
        return row

    def _assign(
        self,
        active: Active,
        slot: int,
        row: EmittedOperand,
        mask: EmittedOperand | None,
        old: replayed.Operand | None,
    ) -> None:
        if mask is not None and old is not None:
            size = row.stride // 32
            if size not in SELECT:
                raise NotNative("a part of a register of another width")
            kept = self._value(active.warp, old, size)
            row = self._new(size, SELECT[size], row, kept, mask)
        self.registers[active.warp, slot] = row

    def _count(self, active: Active, mask: EmittedOperand, counter: str, each: int) -> None:
        """Counts the lanes of a varying guard; without one the count is the leader's."""
        if active.guard >= 0:
            number = self.counters.setdefault(counter, len(self.counters))
            self.out.call("count", EmittedOperand(COUNTED, number, 8), mask, imm=each)

    # --- steps -----------------------------------------------------------------------------------

    def _computing(self, step: Computing) -> None:
        active, compute, out = step.active, step.compute, self.out
        mask = None if active.everywhere else self._mask(active)
        kinds, targets = compute.dtypes
        sources = []
        for n, (operand, kind) in enumerate(zip(step.operands, kinds, strict=True)):
            value = self._value(active.warp, operand, kind.itemsize)
            sources.append(self._new(1, NOT, value) if n in compute.flips else value)
        if compute.divisor >= 0:
            lanes = self._mask(active) if mask is None else mask
            self._divisor(sources[compute.divisor], kinds[compute.divisor], lanes)
        if compute.kernels is not None:
            rows = [
                self._new(kind.itemsize, kernel, *sources)
                for kernel, kind in zip(compute.kernels, targets, strict=True)
            ]
        elif step.spelling.startswith("shfl.sync") and not any(
            isinstance(one, int) for one in step.operands[1:]
        ):
            rows = self._shuffled(step, sources[0])
        else:
            rows = [out.row(kind.itemsize) for kind in targets]
            out.aside(
                compute.fn,
                list(zip(sources, kinds, strict=True)),
                list(zip(rows, targets, strict=True)),
            )
        for (slot, _), row, old in zip(compute.results, rows, step.old, strict=True):
            self._assign(active, slot, row, mask, old)
        if compute.products and mask is not None:
            self._count(active, mask, "simt_products", compute.products)

    def _divisor(self, value: EmittedOperand, kind: np.dtype, mask: EmittedOperand) -> None:
        """Removes a CTA with a zero divisor in lanes where the leader, whose result would be
        undefined, has none."""
        zero = self._new(1, one_kernel(lambda values: values == 0, bool, kind), value)
        own, known = self._new(1, AND, zero, mask), self.out.kept(32)
        self.out.call("within", a=own, b=known, c=LEFT_FLAG, lead="keep_i8")

    def _shuffled(self, step: Computing, value: EmittedOperand) -> list[EmittedOperand]:
        """Gives every lane the value of another lane, the same one in all CTAs."""
        found = step.compute.fn(np.arange(32, dtype=np.uint32), *step.operands[1:])
        lanes, *inside = found if isinstance(found, tuple) else (found,)
        row = self.out.row(4)
        self.out.call("gather_i32", row, self.out.constant(4 * lanes.astype(np.int64)), value)
        return [row, *(self._new(1, COPY, self.out.constant(one)) for one in inside)]

    def _same_lanes(self, step: SameLanes) -> None:
        leader = self.out.constant(LANE_MASK[step.active.leader])
        other = self._new(1, XOR, self._mask(step.active), leader)
        self.out.call("leave_if", a=other, c=LEFT_FLAG)

    def _same_value(self, step: SameValue) -> None:
        row = self.registers.get((step.warp, step.slot))
        if row is None:
            row = self._value(step.warp, step.slot, 4)
        kind = _INTS[row.stride // 32]
        known = self.out.kept(row.stride)
        lanes = self.out.constant(LANE_MASK[step.lanes])
        self.out.call(f"same_{kind}", lanes, row, known, LEFT_FLAG, lead=f"keep_{kind}")

    def _shared_fill(self, step: SharedFill) -> None:
        at, data = self._shared_places(step.at, 1), self.out.constant(step.data)
        if step.at.size:
            self.out.call("fill", self._smem(), at, data, imm=step.at.size)

    def _smem(self) -> EmittedOperand:
        return EmittedOperand(SHARED, 0, self._shared)

    def _shared_places(self, at: np.ndarray, nbytes: int) -> EmittedOperand:
        """Places of `nbytes` in shared memory; below 0: none."""
        if at.size and int(at.max()) + nbytes > self._shared:
            raise NotNative("an illegal access to shared memory")
        return self.out.constant(at.astype(np.int64))

    def _by_lane(self, active: Active, at: np.ndarray) -> np.ndarray:
        """Places of all 32 lanes, given those of the active lanes; below 0 for the others."""
        if at.size and int(at.min()) < 0:
            raise NotNative("an illegal access to shared memory")
        found = np.full(32, -1)
        found[LANE_INDICES[active.leader]] = at
        return found

    def _shared_load(self, step: SharedLoad) -> None:
        active, load = step.active, step.load
        last = self._last.get(active.warp)
        first, final = step.at[step.parts[0]], step.at[step.parts[-1]]
        if step.again and (last is None or last[1] is None or np.array_equal(last[1], first)):
            raise NotNative("a load that polls")
        at = self._by_lane(active, step.at)
        places = self._shared_places(at, load.nbytes)
        self._last[active.warp] = places, final
        kernel = _pattern(at) if load.dtype.itemsize == 4 else f"gather_{_INTS[_width(load.dtype)]}"
        mask = None if active.everywhere else self._mask(active)

        def element(number: int, row: EmittedOperand) -> None:
            self.out.call(kernel, row, places, self._smem(), imm=number * load.dtype.itemsize)

        self._moves(step, element, mask)

    def _moves(
        self,
        step: SharedLoad | GlobalLoad,
        load: Callable[[int, EmittedOperand], None],
        mask: EmittedOperand | None,
    ) -> None:
        """Elements that were loaded, to registers."""
        kind = step.load.dtype
        for (element, slot, view), old in zip(step.load.moves, step.old, strict=True):
            row = self.out.row(_width(kind))
            load(element, row)
            target = dtype_of(view)
            if target.itemsize != kind.itemsize:
                row = self._as(row, kind, target)
            self._assign(step.active, slot, row, mask, old)

    def _as(self, row: EmittedOperand, kind: np.dtype, target: np.dtype) -> EmittedOperand:
        kernel = one_kernel(lambda values: values.astype(target), target, kind)
        return self._new(target.itemsize, kernel, row)

    def _stored(self, step: SharedStore | GlobalStore) -> list[EmittedOperand]:
        """The values that a store writes, one for each element."""
        kind, found = step.store.dtype, []
        for source, (_, view) in zip(step.sources, step.store.sources, strict=True):
            held = dtype_of(view)
            value = self._value(step.active.warp, source, held.itemsize)
            found.append(value if held.itemsize == _width(kind) else self._as(value, held, kind))
        return found

    def _shared_store(self, step: SharedStore) -> None:
        store = step.store
        places = self._shared_places(self._by_lane(step.active, step.at), store.nbytes)
        size = _width(store.dtype)
        for element, value in enumerate(self._stored(step)):
            self.out.call(f"scatter_{_INTS[size]}", self._smem(), places, value, imm=element * size)

    def _global_load(self, step: GlobalLoad) -> None:
        active, load, out = step.active, step.load, self.out
        buffer, size = self._buffers[step.buffer], _width(load.dtype)
        mask, places = self._place(step, load.place.size, load.place.offset, load.nbytes)
        last = self._last.get(active.warp)
        if step.again:
            if last is None or last[1] is not None:
                raise NotNative("a load that polls")
            out.call("polls", a=places, b=last[0], c=LEFT_FLAG, lead="leader_polls")
        self._last[active.warp] = places, None
        if buffer.defined is not None:
            defined = EmittedOperand(GIVEN, buffer.defined.ctypes.data, 0)
            for at in range(0, load.nbytes, size):
                out.call(f"defined_{_INTS[size]}", a=places, b=defined, c=LEFT_FLAG, imm=at)
        memory = EmittedOperand(GIVEN, buffer.data.ctypes.data, 0)
        self._count(active, mask, "global_load", load.nbytes)

        def element(number: int, row: EmittedOperand) -> None:
            at = number * size
            known = out.constant(step.found[:, at : at + size])
            kernel = f"_{_INTS[size]}"
            out.call(f"gather{kernel}", row, places, memory, known, at, lead=f"third{kernel}")

        self._moves(step, element, None if active.everywhere else mask)

    def _place(
        self, step: GlobalLoad | GlobalStore, size: int, offset: int, nbytes: int
    ) -> tuple[EmittedOperand, EmittedOperand]:
        """The mask of an access to global memory, and its places."""
        active, buffer = step.active, self._buffers[step.buffer]
        mask = self._mask(active)
        address = self._value(active.warp, step.address, size)
        if buffer.data.size < nbytes or size not in (4, 8):
            raise NotNative("a buffer smaller than the access, or an address of another width")
        numbers = [offset, buffer.base, buffer.data.size - nbytes, nbytes - 1]
        known = self.out.constant(np.array(numbers, np.int64))
        places = EmittedOperand(PLACES, len(self.touches), 256)
        whole = active.guard < 0 and active.leader == FULL
        self.touches.append(GlobalAccess(step, whole, self.stored))
        self.out.call(f"places_{_INTS[size]}", places, address, mask, LEFT_FLAG, known.at)
        return mask, places

    def _global_store(self, step: GlobalStore) -> None:
        store, size = step.store, _width(step.store.dtype)
        values = self._stored(step)
        mask, _ = self._place(step, store.place.size, store.place.offset, store.nbytes)
        self._count(step.active, mask, "global_store", store.nbytes)
        for element, value in enumerate(values):
            data, column = EmittedOperand(DATA, self.stored, 32 * store.nbytes), element * size
            self.out.call(f"spread_{_INTS[size]}", data, value, EmittedOperand(GIVEN, column, 0),
                          imm=store.nbytes)  # fmt: skip
        self.stored += 32 * store.nbytes


def _width(kind: np.dtype) -> int:
    if kind.itemsize not in _INTS:
        raise NotNative("an element of 16 bytes")
    return kind.itemsize


def _pattern(at: np.ndarray) -> str:
    """Name of the kernel that gathers words at these places."""
    steps = np.diff(at.reshape(2, 16), axis=1)
    if at.min() >= 0 and (steps == 4).all():
        return "halves_i32"
    return "splats_i32" if at.min() >= 0 and (steps == 0).all() else "gather_i32"

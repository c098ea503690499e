"""place-barriers: replaces program order by mbarriers, commits and fences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of, defining, integer
from tcir.dialect.cta_pair import PAIR, kernel_cta_group
from tcir.dialect.limits import QUARTERS
from tcir.dialect.loops import EXCHANGES
from tcir.dialect.multicast import CTA_MASK, cluster_ctas, has_multicast
from tcir.dialect.operation import traits_of
from tcir.dialect.ops.smem_part import whole_tile
from tcir.dialect.ops.tma import APART, halo_of
from tcir.dialect.ops.warpgroup import WGMMA_OPS
from tcir.dialect.walk import walk
from tcir.dialect.warp_map import (
    CONSUMER,
    EPILOGUE,
    EPILOGUE_LOAD,
    FOR_ROLE,
    MMA,
    PRODUCER,
    role_of,
    warp_map_of,
)
from tcir.passes.emit import index
from tcir.passes.emit.builders import fence, i64, of_pair, tma_load
from tcir.passes.emit.cluster import multicast
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.kernel_ops import (
    BY_WARP,
    accumulator_of,
    ancestor_in,
    body,
    find_kernels,
    is_quarter_loop,
    iteration,
    iterations,
    trip_count,
    walk_body,
)
from tcir.passes.pipelining.bulk_groups import guard_stores
from tcir.passes.pipelining.exchanges import (
    MULTIPLIES,
    Edge,
    Run,
    accesses,
    edges_of,
    handovers_of,
    reuses_of,
    runs_of,
    unordered_of,
)
from tcir.passes.pipelining.multicasts import bytes_of, freed_by
from tcir.passes.pipelining.pairs import lead, of_leader
from tcir.passmanager.pipeline import Pass, register_pass

COMMIT = tc.CommitOp.OPERATION_NAME
COMPLETIONS = (COMMIT, tc.WgmmaWaitOp.OPERATION_NAME)
"""Ops that signal that the readers of a ring's slot are done."""


@register_pass
@dataclass(frozen=True)
class PlaceBarriers(Pass):
    """Makes the kernel correct when loads, copies and mma are asynchronous (``tc.async``).

    The pass finds the dependences in the IR: the rings that TMA loads fill in a loop, the cp and
    mma ops that read their slots, and the accumulators that are read after the loop that computes
    them.

    Before::

        scf.for %i = … {
          "tc.tma_load"(%map, …, %a)
          "tc.cp"(%a, …); "tc.mma"(%d, …)
        }
        … "tc.tmem_ld"(%d, …)

    After::

        %full = "tc.mbarrier_init"() {arrivals = 1} : !tc.ring<4, !tc.mbarrier>; %empty; %done
        "tc.fence"() {kind = "mbarrier_init"}; "tc.cta_barrier"()
        scf.for %i = … {
          %phase = (%i / 4) mod 2
          "tc.mbarrier_wait"(%empty[%slot], 1 - %phase)
          "tc.mbarrier_expect_tx"(%full[%slot]) {nbytes}
          "tc.tma_load"(%map, …, %a, %full[%slot])
          "tc.mbarrier_wait"(%full[%slot], %phase); "tc.fence"() {kind = "tcgen05.after"}
          "tc.cp"(%a, …); "tc.mma"(%d, …)
          "tc.commit"(%empty[%slot])
        }
        "tc.commit"(%done); "tc.mbarrier_wait"(%done, 0); "tc.fence"() {kind = "tcgen05.after"}
        … "tc.tmem_ld"(%d, …); "tc.tmem_wait"() {kind = "ld"}
        "tc.fence"() {kind = "tcgen05.before"}; "tc.cta_barrier"()

    In a loop over output tiles an accumulator is also a slot of a ring. If its slots are reused,
    the result is::

        scf.for %t = … {
          "tc.mbarrier_wait"(%free[%slot], 1 - %phase); "tc.fence"() {kind = "tcgen05.after"}
          scf.for %i = … { … "tc.mma"(%d, …) … }
          "tc.commit"(%done[%slot])
          "tc.mbarrier_wait"(%done[%slot], %phase); "tc.fence"() {kind = "tcgen05.after"}
          scf.for %quarter = … { scf.for %column = … {
            "tc.tmem_ld"(%d, …); "tc.tmem_wait"() {kind = "ld"}
            scf.if %column is the last {
              "tc.fence"() {kind = "tcgen05.before"}; "tc.mbarrier_arrive"(%free[%slot])
            }
            …
          } }
        }

    In a loop where the mma and other warps access the same tensor memory in turn, each run of one
    role waits for the runs that it conflicts with (`tcir.passes.pipelining.exchanges`). In a loop
    over output tiles around that loop, the counter and the phases continue from tile to tile: the
    first iteration waits for the last one of the previous tile. Tiles that the kernel loads once,
    outside its loops, have only a "full" barrier. Loads with ``tc.apart`` have their own "full" and
    "empty" barriers, because their tiles are read later than those of the other loads. Rings in
    tensor memory that the loop's cp fills use the same slot numbers, and thus the same ``empty``
    barrier. The last mma that reads a slot and the next cp into it are separated by a commit, a
    wait, a load and another wait. A ring that the epilogue reads (``tc.load_shared``, in a loop
    over sub-partitions) is filled by a separate role, ``epilogue_load``. The epilogue waits for
    "full" before the loop over sub-partitions; in that loop, after its last read and ``tc.fence
    "proxy.async"``, each thread arrives on "empty". Warps that compute an operand's tile from a
    loaded tile (a loop with ``tc.by_warp``) wait for "full" and, after such a fence, arrive on a
    third barrier, for which the products also wait. The op that frees the slot that these warps
    read frees all slots of the step. For TMA stores see `tcir.passes.pipelining.bulk_groups`, for
    CTA pairs `tcir.passes.pipelining.pairs`. If loads are multicast (``cta_mask``), "full" counts
    the bytes that arrive from all CTAs. A commit arrives on the "empty" barrier of each CTA that
    writes the slot; that barrier expects an arrival from each CTA to which its CTA writes. (For
    ``tc.wgmma`` it expects an arrival from each warp, and the wait acquires with ``cluster``.)
    Barriers of the CTA become barriers of the cluster. Preserves program order, which one thread
    may still execute as a whole, and the values stored. Each synchronisation op carries
    ``tc.for_role``.
    """

    name: ClassVar[str] = "place-barriers"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "a tiling pass and multi-buffer"):
            if "tc.async" in kernel.attributes:
                raise match_failure(
                    kernel, "expected a kernel without barriers, got one with tc.async"
                )
            _Placer.of(kernel).run()
            guard_stores(kernel)
            kernel.attributes["tc.async"] = ir.UnitAttr.get()


@dataclass(frozen=True)
class _Placer:
    """Guards one kernel.

    loops: the loops of the kernel's body that hold TMA loads, and rings: for each, the loop that
    holds them directly; once: the loads of the body itself; clearing: the op that stores zeros to
    tensor memory before the loads; inits: the barriers made so far.
    """

    kernel: func.FuncOp
    loops: list[scf.ForOp]
    rings: list[scf.ForOp]
    once: list[tc.TmaLoadOp]
    clearing: ir.OpView | None
    cta_group: int = 1
    inits: list[tc.MbarrierInitOp] = field(default_factory=list)

    @classmethod
    def of(cls, kernel: func.FuncOp) -> _Placer:
        """Finds the loops of `kernel`; raises a match failure if they have another form than the
        pass expects."""
        loops = _load_loops(kernel)
        rings = [ring for loop in loops for ring in _ring_loops(loop)]
        cta_group = kernel_cta_group(kernel)
        once = [op for op in body(kernel) if _is_load(op)]
        return cls(kernel, loops, rings, once, _clearing_op(kernel, loops[0]), cta_group)

    @property
    def ctas(self) -> int:
        """Number of CTAs in a cluster."""
        return cluster_ctas(self.kernel)

    @property
    def setup(self) -> ir.OpView:
        """The op before which the pass creates tiles and barriers."""
        if self.clearing is not None:
            return self.clearing
        ops = body(self.kernel)
        before = ops[: ops.index(self.loops[0])]
        of_role = (op for op in before if role_of(op))
        return next(of_role, self.loops[0])

    def run(self) -> None:
        if self.once:
            self._guard_once()
        for ring in self.rings:
            self._guard_ring(ring)
        innermost = [r for r in self.rings if not any(r != o and o in walk(r) for o in self.rings)]
        exchanging = [
            loop for ring in innermost if self._guard_exchanges(ring) for loop in _nest(ring)
        ]
        for block in [self.kernel.regions[0].blocks[0], *_around(self.loops, self.rings)]:
            self._guard_accumulators(block, exchanging)
            self._guard_handovers(block)
        for ring in self.rings:
            self._guard_refreshes(ring)
        if self.clearing is not None:
            self._guard_zeros(self.clearing)
        self._publish_barriers()
        self._guard_reads()
        if self.cta_group == PAIR:
            lead(self.kernel)

    def _init(
        self, location: ir.Location, count: int | None, arrivals: int = 1
    ) -> tc.MbarrierInitOp:
        """A barrier, or a ring of `count`, made at the setup."""
        kind = tc.MbarrierType.get()
        with ir.InsertionPoint(self.setup), location:
            init = tc.MbarrierInitOp(
                i64(arrivals), tc.RingType.build(count, kind) if count else kind
            )
        self.inits.append(init)
        return init

    def _publish_barriers(self) -> None:
        """Tiles first, then the barriers; a fence and a CTA barrier make them visible to all."""
        ops = body(self.kernel)
        for op in ops[ops.index(self.setup) :]:
            if isinstance(op, tc.SmemTileOp | tc.TmemTileOp):
                op.operation.move_before(self.setup.operation)
        with ir.InsertionPoint(self.setup), self.inits[-1].location:
            fence("mbarrier_init")
            self._barrier()

    def _barrier(self) -> None:
        """Emits a barrier of all threads that use each other's memory: of the CTA, or of the
        cluster."""
        if self.cta_group == PAIR or has_multicast(self.kernel):
            tc.ClusterBarrierOp()
        else:
            tc.CtaBarrierOp()

    def _guard_once(self) -> None:
        """A full barrier for tiles that are loaded once: nothing frees them."""
        users = {user for load in self.once for user in _users(load.tile) if not _is_load(user)}
        first = next(op for op in body(self.kernel) if users.intersection(walk(op)))
        by_warpgroups = any(isinstance(op, WGMMA_OPS) for op in walk(first))
        full = self._init(self.once[0].location, None)
        with ir.InsertionPoint(self.once[0]), self.once[0].location:
            _tag(tc.MbarrierExpectTxOp(full.bar, i64(bytes_of(self.once, self.ctas))), PRODUCER)
        for load in self.once:
            _signalling(load, full.bar)
        with ir.InsertionPoint(first), first.location:
            role = CONSUMER if by_warpgroups else MMA
            _tag(tc.MbarrierWaitOp(full.bar, index.value(0)), role)
            if not by_warpgroups:
                _tag(fence("tcgen05.after"), MMA)

    def _guard_ring(self, loop: scf.ForOp) -> None:
        """Barriers around the loads and the consumers of one loop's ring; `APART` loads have some
        of their own."""
        loads = [op for op in loop.body if _is_load(op)]
        trip_count(loop)
        groups = [
            [load for load in loads if (APART in load.attributes) == apart]
            for apart in (False, True)
        ]
        for group in filter(None, groups):
            self._guard_loads(loop, group)

    def _guard_loads(self, loop: scf.ForOp, loads: list[tc.TmaLoadOp]) -> None:
        """Adds full and empty barriers around these loads of a loop and their consumers."""
        slots = [_slot_of(load) for load in loads]
        rings = {slot.ring.type.count for slot in slots}
        if len(rings) != 1 or any(slot.index != slots[0].index for slot in slots):
            raise match_failure(
                loads[0], f"expected rings of one size, used in step, got {sorted(rings)}"
            )
        (count,) = rings
        tiles = [slot.slot for slot in slots]
        computing = _computing(loop, tiles)
        if computing is not None:
            tiles = [tile for tile in tiles if not _is_staged(tile)]
        by_epilogue = all(map(_is_staged, tiles))
        loader = EPILOGUE_LOAD if by_epilogue else PRODUCER
        ctas = 1 if by_epilogue else self.cta_group
        consumers = _consumers(loop, tiles, loads, by_epilogue)
        location = loads[0].location
        full = self._init(location, count)
        frees = freed_by(loads, self.ctas)
        readers = frees[0].bit_count() if frees else 1
        if by_epilogue:
            readers = warp_map_of(self.kernel).threads(EPILOGUE)
        by_warpgroups = any(isinstance(op, WGMMA_OPS) for op in walk(consumers[0]))
        multiplying = CONSUMER if by_warpgroups else MMA
        if by_warpgroups:
            readers *= len(warp_map_of(self.kernel)[CONSUMER].warps)
        empty = self._init(location, count, readers)
        with ir.InsertionPoint(loads[0]), location:
            phase = _phase(loop, count)
            full_slot = _bar(full, slots[0].index)
            empty_slot = _bar(empty, slots[0].index)
            flipped = index.value(index.sub(1, phase))
            wait = tc.MbarrierWaitOp(empty_slot, flipped)
            _tag(wait, loader)
            expect = tc.MbarrierExpectTxOp(full_slot, i64(bytes_of(loads, self.ctas) * ctas))
            _tag(expect, loader)
        if ctas == PAIR:
            of_leader(expect)
        for load in loads:
            signalled = _signalling(load, full_slot)
            if by_epilogue:
                _tag(signalled, loader)
            if ctas == PAIR:
                of_pair(signalled)
        if by_epilogue:
            self._guard_staged(consumers, tiles, full_slot, empty_slot, phase)
            return
        if computing is not None:
            bar = self._guard_computing(computing, full_slot, slots[0], phase)
            with ir.InsertionPoint(consumers[0]), consumers[0].location:
                _tag(tc.MbarrierWaitOp(bar, phase), multiplying)
        if by_warpgroups:
            arrive = self._guard_warpgroups(consumers, full_slot, empty_slot, phase)
            if frees:
                multicast(arrive, frees)
                wait.attributes["cluster"] = ir.UnitAttr.get()
            return
        with ir.InsertionPoint(consumers[0]), consumers[0].location:
            _tag(tc.MbarrierWaitOp(full_slot, phase), MMA)
            _tag(fence("tcgen05.after"), MMA)
        apart = any(APART in op.attributes for op in loop.body if _is_load(op))
        with ir.InsertionPoint.after(consumers[-1]) if apart else _at_end(loop):
            commit = tc.CommitOp(empty_slot, loc=consumers[-1].location)
        _tag(commit, MMA)
        if frees:
            multicast(commit, frees)

    def _guard_computing(
        self, computing: scf.ForOp, full: ir.Value, slot: tc.SlotOp, phase: ir.Value
    ) -> ir.Value:
        """A wait before warps compute a tile of a loaded one; when they have, a fence, as they
        read and write through the generic proxy what TMA writes and the tensor core reads, and an
        arrival of every thread. The barrier; what frees the tile that is read then frees both."""
        threads = warp_map_of(self.kernel).threads(EPILOGUE)
        ready = self._init(computing.location, slot.ring.type.count, threads)
        with ir.InsertionPoint(computing), computing.location:
            _tag(tc.MbarrierWaitOp(full, phase), EPILOGUE)
            bar = _bar(ready, slot.index)
        with _at_end(computing), computing.location:
            _tag(fence("proxy.async"), EPILOGUE)
            _tag(tc.MbarrierArriveOp(bar), EPILOGUE)
        return bar

    def _guard_warpgroups(
        self, consumers: list[ir.OpView], full: ir.Value, empty: ir.Value, phase: ir.Value
    ) -> tc.MbarrierArriveOp:
        """A wait before the first product; behind each one for its group, and behind the last an
        arrival of each warp. The products of a loop wait in it, for the tiles that it loads."""
        with ir.InsertionPoint(consumers[0]), consumers[0].location:
            _tag(tc.MbarrierWaitOp(full, phase), CONSUMER)
        for product in consumers:
            last = product
            if isinstance(product, WGMMA_OPS):
                with ir.InsertionPoint.after(product), product.location:
                    last = tc.WgmmaWaitOp(product.d, i64(0), product.d.type)
                product.d.replace_all_uses_except(last.e, last.operation)
        with ir.InsertionPoint.after(last), last.location:
            arrive = tc.MbarrierArriveOp(empty)
        arrive.attributes["once"] = ir.UnitAttr.get()
        _tag(arrive, CONSUMER)
        return arrive

    def _guard_staged(
        self,
        consumers: list[ir.OpView],
        tiles: list[ir.Value],
        full: ir.Value,
        empty: ir.Value,
        phase: ir.Value,
    ) -> None:
        """A wait before the loop over sub-partitions that reads a slot; in it, behind the last
        ``tc.load_shared``, an arrival of every thread: TMA, through another proxy, may write."""
        if len(consumers) != 1:
            raise match_failure(
                consumers[1],
                "expected one loop over the four sub-partitions to read a staged "
                f"tile, got {len(consumers)}",
            )
        with ir.InsertionPoint(consumers[0]), consumers[0].location:
            _tag(tc.MbarrierWaitOp(full, phase), EPILOGUE)
        quarters = _quarter_loop(consumers[0])
        reads = [op for op in walk(quarters) if isinstance(op, tc.LoadSharedOp)]
        last = [op for op in reads if op.tile in tiles][-1]
        behind = ancestor_in(last, quarters.body)
        with ir.InsertionPoint.after(behind), last.location:
            _tag(fence("proxy.async"), EPILOGUE)
            tc.MbarrierArriveOp(empty)

    def _guard_exchanges(self, loop: scf.ForOp) -> bool:
        """A barrier for each edge between the mma and the warps that access the same tensor memory
        in the loop; whether there are any.

        A commit tells that the mma before are complete. After their last access warps wait for
        their stores, fence them and their loads, which they have waited for, and arrive. The runs
        take turns, so that phases are the iterations'; an edge to the next one is open in the
        first. Products that write columns of an A in tensor memory wait for the commit of the
        products that read it.
        """
        runs = runs_of(loop)
        edges = [*edges_of(runs), *reuses_of(runs)]
        for around in _nest(loop)[1:]:
            if edges and (unordered := unordered_of(around, loop, runs, edges)):
                raise match_failure(
                    unordered,
                    "expected waits that order this access to tensor memory before another role's "
                    "access to the same tile in the next execution of an inner loop, got none; "
                    "make the tile inside the outer loop",
                )
        for edge in edges:
            self._guard_edge(loop, edge)
        if edges:
            loop.attributes[EXCHANGES] = ir.UnitAttr.get()
        return bool(edges)

    def _guard_edge(self, loop: scf.ForOp, edge: Edge) -> None:
        before, after = edge.before, edge.after
        last, by_mma = before.ops[-1], before.role == MMA
        arrivals = 1 if by_mma else warp_map_of(self.kernel).threads(before.role)
        bar = self._init(last.location, None, arrivals).bar
        with ir.InsertionPoint(after.ops[0]), after.ops[0].location:
            phase: Index = _phase(loop, 1)
            parity = index.value(index.sub(1, phase) if edge.carried else phase)
            _tag(tc.MbarrierWaitOp(bar, parity), after.role)
            _tag(fence("tcgen05.after"), after.role)
        if by_mma:
            with ir.InsertionPoint.after(last), last.location:
                _tag(tc.CommitOp(bar), MMA)
            return
        _hand_over(before, before.conflicts(after), bar)

    def _guard_handovers(self, block: ir.Block) -> None:
        """Adds a barrier between the warps of one role that store to tensor memory and those of
        another role that read it, after the loops with products."""
        for before, after in handovers_of(block):
            (last,), (first,) = before.ops, after.ops
            bar = self._init(last.location, None, warp_map_of(self.kernel).threads(before.role)).bar
            around = block.owner.opview
            phase = _phase(around, 1) if isinstance(around, scf.ForOp) else 0
            _hand_over(before, before.conflicts(after), bar)
            with ir.InsertionPoint(first), first.location:
                _tag(tc.MbarrierWaitOp(bar, index.value(phase)), after.role)
                _tag(fence("tcgen05.after"), after.role)

    def _guard_accumulators(self, block: ir.Block, exchanging: list[scf.ForOp]) -> None:
        """A barrier after every loop of `block` whose accumulators are read later in the block.

        Accumulators that are a ring, in a loop around that one, get a ring of barriers. They get a
        second one if that loop has more iterations than the ring has slots: the mma of a tile wait
        until the epilogue has read what was in its slot.
        """
        for op in list(block):
            written = dict.fromkeys(
                accumulator_of(o.d) for o in walk(op) if isinstance(o, MULTIPLIES)
            )
            uses = [(d, use.owner.opview) for d in written for use in d.uses]
            loads = [(d, user) for d, user in uses if isinstance(user, tc.TmemLdOp)]
            if op in exchanging:
                loads = [(d, each) for d, each in loads if ancestor_in(each, block) != op]
            if not loads or any(d.owner.operation.block != block for d in written if _is_slot(d)):
                continue
            (first, *_), readers = loads[0], [each for _, each in loads]
            if any(ancestor_in(r, op.operation.block) == op for r in readers):
                raise match_failure(
                    op, "expected accumulators read after the loop, got reads inside it"
                )
            slot = first.owner.operation.opview if _is_slot(first) else None
            done = self._init(readers[0].location, slot and slot.ring.type.count)
            waiting = dict.fromkeys(map(role_of, readers))
            around = block.owner.opview
            phase: Index = 0
            if slot is None and isinstance(around, scf.ForOp):  # freed by an exchange's edges
                with ir.InsertionPoint(op), readers[0].location:
                    phase = _phase(around, 1)
            if slot is not None and iterations(block.owner.opview) > slot.ring.type.count:
                last = max((ancestor_in(r, block) for r in readers), key=list(block).index)
                phase = self._guard_reuse(op, slot, last)
            after = list(block)[list(block).index(op) + 1]
            with ir.InsertionPoint(after), readers[0].location:
                bar = done.bar if slot is None else _bar(done, slot.index)
                _tag(tc.CommitOp(bar), MMA)
                for role in waiting:
                    _tag(tc.MbarrierWaitOp(bar, index.value(phase)), role)
                    _tag(fence("tcgen05.after"), role)

    def _guard_reuse(self, computing: ir.OpView, slot: tc.SlotOp, reading: ir.OpView) -> ir.Value:
        """A wait before the loop `computing` an accumulator, for the loop `reading` the last one.

        Every thread of the epilogue fences its loads, which it has waited for, and arrives: as soon
        as the last has come, so that the mma go on while it converts and stores. Of a pair, whose
        mma write both accumulators, both epilogues arrive on the leader's barrier. Returns the
        phase of the slot.
        """
        quarters = _quarter_loop(reading)
        arrivals = warp_map_of(self.kernel).threads(EPILOGUE) * self.cta_group
        free = self._init(reading.location, slot.ring.type.count, arrivals)
        with ir.InsertionPoint(computing), reading.location:
            phase = _phase(computing.operation.parent.opview, slot.ring.type.count)
            bar = _bar(free, slot.index)
            wait = tc.MbarrierWaitOp(bar, index.value(index.sub(1, phase)))
            _tag(wait, MMA)
            _tag(fence("tcgen05.after"), MMA)
        with self._after_last_load(reading, quarters), reading.location:
            _tag(fence("tcgen05.before"), EPILOGUE)
            arrive = tc.MbarrierArriveOp(bar)
        if self.cta_group == PAIR:
            of_pair(wait)
            of_pair(arrive)
        return phase

    def _after_last_load(self, reading: ir.OpView, quarters: scf.ForOp) -> ir.InsertionPoint:
        """Where a warp has issued its last load in `reading`, which is or holds the loop `quarters`
        over sub-partitions.

        Of several warpgroups, which share the columns, each ends with others: at the loop's end.
        """
        last = [op for op in walk(quarters) if isinstance(op, tc.TmemLdOp)][-1]
        ends = _last_iterations(last, reading, quarters)
        if ends is None or len(warp_map_of(self.kernel)[EPILOGUE].warps) > QUARTERS:
            return _at_end(quarters)
        ops = list(last.operation.block)
        place = ir.InsertionPoint(ops[ops.index(last) + 1])
        for variable, end in ends:
            with place, last.location:
                equal = arith.cmpi(arith.CmpIPredicate.eq, variable, index.value(end))
                block = scf.IfOp(equal).then_block
            with ir.InsertionPoint(block), last.location:
                place = ir.InsertionPoint(scf.YieldOp([]))
        return place

    def _guard_refreshes(self, loop: scf.ForOp) -> None:
        """A barrier between mma that shift an A tile and the copies that refresh it.

        The ISA orders mma before mma and tc.shift before tc.refresh, but not .ashift before
        tc.refresh: hence a commit and a wait, once for the refreshes after one tap.
        """
        waits, shifted = [], set()
        for op in loop.body:
            if isinstance(op, tc.MmaOp) and integer(op, "ashift"):
                shifted.add(op.a)
            elif isinstance(op, tc.RefreshOp) and op.target in shifted:
                waits.append(op)
                shifted.discard(op.target)
        if not waits:
            return
        bar = self._init(waits[0].location, None)
        for number, op in enumerate(waits):
            with ir.InsertionPoint(op), op.location:
                done = index.add(index.mul(iteration(loop), len(waits) % 2), number)
                _tag(tc.CommitOp(bar.bar), MMA)
                _tag(tc.MbarrierWaitOp(bar.bar, index.value(index.rem(done, 2))), MMA)
                _tag(fence("tcgen05.after"), MMA)

    def _guard_zeros(self, loop: ir.OpView) -> None:
        """A barrier between the loop that stores to tensor memory and the first loop of mma.

        Every thread waits for its own stores, fences and arrives. This also covers the lane masks
        those threads wrote, which the thread that issues the mma reads.
        """
        if not isinstance(loop, scf.ForOp) or trip_count(loop) != QUARTERS:
            raise match_failure(loop, "expected tc.tmem_st in a loop over the four sub-partitions")
        ready = self._init(loop.location, None, warp_map_of(self.kernel).threads(EPILOGUE))
        with _at_end(loop), loop.location:
            tc.TmemWaitOp(ir.StringAttr.get("st"))
            _tag(fence("tcgen05.before"), EPILOGUE)
            tc.MbarrierArriveOp(ready.bar)
        with ir.InsertionPoint(self.loops[0]), loop.location:
            _tag(tc.MbarrierWaitOp(ready.bar, index.value(0)), MMA)
            _tag(fence("tcgen05.after"), MMA)

    def _guard_reads(self) -> None:
        """wait::ld before the registers are read; fence and CTA barrier before memory is freed."""
        reads = [op for op in walk_body(self.kernel) if isinstance(op, tc.TmemLdOp)]
        for read in reads:
            following = list(read.operation.block)
            with ir.InsertionPoint(following[following.index(read) + 1]), read.location:
                wait = tc.TmemWaitOp(ir.StringAttr.get("ld"))
            if role_of(read) != role_of(wait):
                _tag(wait, role_of(read))
        last = reads[-1].location if reads else self.loops[-1].location
        with ir.InsertionPoint(body(self.kernel)[-1]), last:
            for role in dict.fromkeys(map(role_of, reads)):
                _tag(fence("tcgen05.before"), role)
            self._barrier()


def _is_load(op: ir.OpView) -> bool:
    return isinstance(op, tc.TmaLoadOp)


def _is_store(op: ir.OpView) -> bool:
    return isinstance(op, tc.TmemStOp | tc.WriteLaneMaskOp)


def _is_slot(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and isinstance(
        value.owner.operation.opview, tc.SlotOp
    )


def _load_loops(kernel: func.FuncOp) -> list[scf.ForOp]:
    """The loops of the kernel's body that hold TMA loads: one at least."""
    loops = [op for op in body(kernel) if any(_is_load(o) for o in walk(op)) and not _is_load(op)]
    for op in loops:
        if not isinstance(op, scf.ForOp):
            raise match_failure(
                op,
                "expected TMA loads in loops over rings or in the kernel itself, got one in "
                f"{op.operation.name}",
            )
    if not loops:
        raise match_failure(kernel, "expected a kernel with TMA loads in a loop, got none")
    return loops


def _clearing_op(kernel: func.FuncOp, first_load: ir.OpView) -> ir.OpView | None:
    """The op of the kernel's body by which the epilogue stores to tensor memory, if any."""
    ops = body(kernel)
    storing = [op for op in ops if any(_is_store(o) and role_of(o) == EPILOGUE for o in walk(op))]
    clearing = [op for op in storing if not any(_is_load(o) for o in walk(op))]
    if not clearing:
        return None
    if len(clearing) > 1 or ops.index(clearing[0]) > ops.index(first_load):
        raise match_failure(
            clearing[0], "expected one loop that stores to tensor memory, before the loads"
        )
    return clearing[0]


def _ring_loops(loop: scf.ForOp) -> list[scf.ForOp]:
    """The loops that hold loads directly: `loop`, and some inside it."""
    own = [loop] if any(_is_load(op) for op in loop.body) else []
    inside = [op for op in loop.body if any(_is_load(o) for o in walk(op)) and not _is_load(op)]
    for op in inside:
        if not isinstance(op, scf.ForOp):
            raise match_failure(op, "expected TMA loads in loops only, got one in another op")
    return own + [ring for op in inside for ring in _ring_loops(op)]


def _nest(loop: scf.ForOp) -> list[scf.ForOp]:
    """The loop, and the loops around it, inner first."""
    around = loop.operation.parent.opview
    return [loop, *(_nest(around) if isinstance(around, scf.ForOp) else [])]


def _around(loops: list[scf.ForOp], rings: list[scf.ForOp]) -> list[ir.Block]:
    """The blocks of the loops between the kernel and its rings."""
    blocks: dict[ir.Block, None] = {}
    for ring in rings:
        loop = next(op for op in loops if any(each == ring for each in walk(op)))
        while loop != ring:
            blocks[loop.body] = None
            loop = ancestor_in(ring, loop.body)
    return list(blocks)


def _slot_of(load: tc.TmaLoadOp) -> tc.SlotOp:
    owner: tc.SlotOp | None = defining(whole_tile(load.tile), tc.SlotOp)
    if owner is None:
        raise match_failure(
            load,
            "expected TMA loads into a slot of a ring, got a tile without one; run "
            "multi-buffer first",
        )
    return owner


def _signalling(load: tc.TmaLoadOp, full: ir.Value) -> tc.TmaLoadOp:
    """Replaces a load by one that signals `full`."""
    with ir.InsertionPoint(load), load.location:
        signalled = tma_load(
            load.map, list(load.coords), load.tile, integer(load, "row"),
            integer(load, "nbytes"), list(load.offsets), full, halo_of(load),
        )  # fmt: skip
    if CTA_MASK in load.attributes:
        signalled.attributes[CTA_MASK] = load.attributes[CTA_MASK]
    load.operation.erase()
    return signalled


def _is_staged(tile: ir.Value) -> bool:
    """Whether the epilogue reads a loaded tile."""
    users = [use.owner.opview for use in tile.uses]
    return any(isinstance(user, tc.LoadSharedOp) for user in users)


def _computing(loop: scf.ForOp, tiles: list[ir.Value]) -> scf.ForOp | None:
    """The loop over warps, in the body of `loop`, that computes a tile of one of the loaded
    `tiles`."""
    found = [op for op in loop.body if isinstance(op, scf.ForOp) and BY_WARP in op.attributes]
    return found[0] if found and any(map(_is_staged, tiles)) else None


def _consumers(
    loop: scf.ForOp, tiles: list[ir.Value], loads: list[tc.TmaLoadOp], by_epilogue: bool
) -> list[ir.OpView]:
    """The ops of the loop's body that read `tiles`, in order, all after the loads."""
    ops = list(loop.body)
    positions = set()
    for tile in tiles:
        for user in _users(tile):
            if user in loads:
                continue
            traits = traits_of(user)
            known = traits.completed_by == "" if by_epilogue else traits.completed_by in COMPLETIONS
            if not (traits.reads_shared and known):
                raise match_failure(
                    user,
                    f"expected cp and mma as readers of a ring, got {user.operation.name} "
                    "(a commit reports only when those are done)",
                )
            positions.add(ops.index(ancestor_in(user, loop.body)))
    if not positions:
        raise match_failure(
            loads[0], "expected every loaded ring to be read in its loop, got no reader"
        )
    last_load = max(ops.index(load) for load in loads)
    if min(positions) < last_load:
        raise match_failure(
            ops[min(positions)], "expected all loads of an iteration before their readers"
        )
    return [ops[position] for position in sorted(positions)]


def _users(tile: ir.Value) -> Iterator[ir.OpView]:
    """Ops that use a tile, parts of it or its transpose."""
    for use in tile.uses:
        user = use.owner.opview
        if isinstance(user, tc.SmemPartOp | tc.SmemTransposedOp):
            yield from _users(user.operation.results[0])
        else:
            yield user


def _quarter_loop(reading: ir.OpView) -> scf.ForOp:
    """The loop over the four sub-partitions that `reading` is or holds."""
    for op in walk(reading):
        if isinstance(op, scf.ForOp) and is_quarter_loop(op) and trip_count(op) == QUARTERS:
            return op
    raise match_failure(reading, "expected tc.tmem_ld in a loop over the four sub-partitions")


def _last_iterations(
    op: ir.OpView, outermost: ir.OpView, left_out: scf.ForOp
) -> list[tuple[ir.Value, int]] | None:
    """The variable of each loop from `op` out to `outermost`, and what it is in the last iteration;
    loops of one, and `left_out`, are left out. None where something else is between them, or
    another bound."""
    found = []
    while op != outermost:
        loop = op.operation.parent.opview
        if not isinstance(loop, scf.ForOp):
            return None
        if loop == left_out:
            op = loop
            continue
        first, end, step = (constant_of(v) for v in (loop.lowerBound, loop.upperBound, loop.step))
        if first is None or end is None or step is None or first >= end:
            return None
        if (last := range(first, end, step)[-1]) != first:
            found.append((loop.induction_variable, last))
        op = loop
    return found


def _hand_over(before: Run, tiles: frozenset[ir.Value], bar: ir.Value) -> None:
    """An arrival of the warps of a run after their last access to one of `tiles`, stores complete
    and fenced."""
    quarters = _quarter_loop(before.ops[-1])
    last = [op for op in quarters.body if any(tile in tiles for _, tile, _ in accesses(op))][-1]
    with ir.InsertionPoint.after(last), last.location:
        if before.stores:
            _tag(tc.TmemWaitOp(ir.StringAttr.get("st")), before.role)
        _tag(fence("tcgen05.before"), before.role)
        _tag(tc.MbarrierArriveOp(bar), before.role)


def _at_end(loop: scf.ForOp) -> ir.InsertionPoint:
    """Insertion point before the terminator of the loop's body."""
    return ir.InsertionPoint.at_block_terminator(loop.body)


def _phase(loop: scf.ForOp, count: int) -> ir.Value:
    """Parity of how often a ring of `count` slots that `loop` steps through has been gone round."""
    return index.value(index.rem(index.div(iteration(loop), count), 2))


def _bar(ring: tc.MbarrierInitOp, index: ir.Value) -> ir.Value:
    return tc.SlotOp(ring.bar, index, tc.MbarrierType.get()).slot


def _tag(op: ir.OpView, role: str) -> None:
    op.operation.attributes[FOR_ROLE] = ir.StringAttr.get(role)

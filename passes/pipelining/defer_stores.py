"""defer-stores: stores a tile's results while the next tile is multiplied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import ClassVar

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of, optional_integer, string
from tcir.dialect.limits import WARP
from tcir.dialect.warp_map import (
    CONSUMER,
    WARP_MAP,
    WARP_MAPS,
    WGMMA,
    WGMMA_PROMOTED,
    WGMMA_THREE,
)
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.clone import Mapping, clone
from tcir.passes.emit.kernel_ops import CTAS_PER_SM, body, find_kernels
from tcir.passes.pipelining.deferred import (
    ColumnRange,
    DeferredResult,
    FragmentStored,
    fetched_registers,
    is_by_element,
    registers,
)
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.threads import cached_property

ROOM = {WGMMA: 208, WGMMA_PROMOTED: 208, WGMMA_THREE: 120}
"""Registers per thread for sums and waiting results, by warp map: 240, or 152 with three
warpgroups, less those for addresses and for a few elements of an epilogue."""


@register_pass
@dataclass(frozen=True)
class DeferStores(Pass):
    """Stores results of 16 and 8 bits in the first steps of the next tile, while the tensor core
    computes the next tile's products.

    Before, in the role of the consumers::

        scf.for %t = … {
          %d = scf.for %k = 0 to 64 { … "tc.wgmma"; "tc.wgmma_wait"; … }
          %e = "tc.fragment_epilogue"(%d, …) ({ … "tc.element"(%residual) … })
          "tc.store_fragment"(%e, %out, %m, %n)
        }

    After. The attributes `tc.block` and `tc.warp_map` and the op ``tc.warpgroup_registers`` also
    change, so that the two warpgroups get most of the registers::

        %last:8, … = scf.for %t = … iter_args(%held:8 = zeros, …) {
          // for each of the first steps, here the first of eight:
          … "tc.wgmma"
          scf.if %t != 0 { "tc.store_fragment"(%held#0, %out, …) }
          "tc.wgmma_wait"; …
          // for as many steps after these, if an epilogue reads a tensor, here one by element:
          … "tc.wgmma"
          %r0 = "tc.fetch_fragment"(%residual, …)
          "tc.wgmma_wait"; …
          %d = scf.for %k = 16 to 64 { … }
          %d0 = "tc.fragment_part"(%d) {first = 0}
          %e0 = "tc.fragment_epilogue"(%d0, …) ({ … "tc.element"(%r0) … })
          …
          scf.yield %e0, …, %m, %n
        }
        "tc.store_fragment"(%last#0, %out, …); …

    Sums are rounded, so that the results wait in a half or a quarter of the registers that the sums
    take. (Codes of MXFP8 wait with their scales, which take one register for 64 columns.) The
    exchange among threads and the stores are executed while the tensor core executes the next
    tile's wgmma groups. Other operands of the epilogue are loaded into the registers that the
    stores free: a residual right after the stores, because it is as large as the results, and
    values that differ only by row or by column, which are in L2, in the last steps. With partial
    sums (``tc.wgmma_product``), registers are scarce in all steps except the first, which adds to
    zeros. So the first step issues both products and stores everything.

    A kernel stays as it is if a CTA has one tile, if results have other types or rows that are not
    whole units, or if K has too few steps. Preserves every value.
    """

    name: ClassVar[str] = "defer-stores"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            found = _Tiles.of(kernel)
            if found is not None:
                count, steps = len(found.parts), len(found.groups)
                remark(
                    found.parts[0].result.store,
                    f"a tile is stored in {count} parts in {steps} steps of the next one",
                )
                found.defer()
                if string(kernel, WARP_MAP) == WGMMA:
                    _share_registers(kernel)


@dataclass(frozen=True)
class _Tiles:
    """The loop over a CTA's tiles, the loop over K inside it, the results of a tile, and the
    registers for fetched operands and sums."""

    loop: scf.ForOp
    steps: scf.ForOp
    results: list[DeferredResult]
    room: int

    @classmethod
    def of(cls, kernel: func.FuncOp) -> _Tiles | None:
        """Matches the loops of a kernel; None if its stores are not deferred."""
        roles = [op for op in body(kernel) if isinstance(op, tc.RoleOp)]
        consumers = [role for role in roles if string(role, "kind") == CONSUMER]
        if WARP_MAP not in kernel.attributes or string(kernel, WARP_MAP) not in ROOM:
            return None
        if (optional_integer(kernel, CTAS_PER_SM) or 1) > 1:
            return None  # the other CTA multiplies meanwhile, and has half of the registers
        loops = [op for role in consumers for op in role.body.blocks[0] if _is_loop(op)]
        if len(loops) != 1 or len(loops[0].results):
            return None
        (loop,) = loops
        steps = [op for op in loop.body if _is_loop(op)]
        stores = [op for op in loop.body if isinstance(op, FragmentStored)]
        results = [each for each in map(DeferredResult.of, stores) if each is not None]
        if len(steps) != 1 or len(results) < max(len(stores), 1):
            return None
        if any(isinstance(op, tc.StoreFragmentGroupOp) for op in loop.body):
            return None  # rows of a group's last tile are stored at once
        made = cls(loop, steps[0], results, ROOM[string(kernel, WARP_MAP)])
        if string(kernel, WARP_MAP) == WGMMA_THREE and made.sums * 3 // 2 > made.room:
            return None
        first = constant_of(made.steps.lowerBound)
        return made if first == 0 and made.end > len(made.groups) else None

    @property
    def products(self) -> list[tc.WgmmaOp | tc.WgmmaProductOp]:
        """Number of products in one step."""
        return [op for op in self.steps.body if isinstance(op, tc.WgmmaOp | tc.WgmmaProductOp)]

    @property
    def end(self) -> int:
        """Number of steps of the loop over K."""
        return constant_of(self.steps.upperBound) or 0

    @property
    def partial_sum(self) -> int:
        """Registers per thread for a partial sum."""
        products = [op for op in self.products if isinstance(op, tc.WgmmaProductOp)]
        return max((registers(op.d.type) for op in products), default=0)

    @property
    def sums(self) -> int:
        """Registers per thread for the sums."""
        return sum(registers(result.sums.type) for result in self.results)

    @cached_property
    def parts(self) -> list[ColumnRange]:
        """The column ranges of a tile's results, one for each part."""
        return [ColumnRange(each, number) for each in self.results for number in range(each.parts)]

    @cached_property
    def groups(self) -> list[list[ColumnRange]]:
        """The column ranges that each of the first steps stores."""
        return [self.parts] if self.partial_sum else [[part] for part in self.parts]

    @cached_property
    def fetched(self) -> list[tc.ElementOp]:
        """Operands of the epilogue that are fetched early. They are fetched only if there are
        registers for them, and enough steps after the steps that store."""
        found: list[tc.ElementOp] = []
        if self.partial_sum:
            return found
        room, steps = self.room - self.sums, self.end - len(self.groups)
        for result in self.results:
            for read in result.reads:
                count = fetched_registers(result, read)
                rounds = len({is_by_element(each) for each in [*found, read]})
                if count <= room and rounds * len(self.parts) < steps:
                    room -= count
                    found.append(read)
        return found

    def defer(self) -> None:
        """Rewrites the loop so that each tile is stored during the next tile's steps."""
        loop = self.loop
        with ir.InsertionPoint(loop), loop.location:
            start = [tc.ZeroFragmentOp(kind).fragment for part in self.parts for kind in part.held]
            for result in self.results:
                start += [index.value(0) for _ in result.store.indices]
            new = scf.ForOp(loop.lowerBound, loop.upperBound, loop.step, start)
        for name in loop.attributes:
            new.attributes[name] = loop.attributes[name]
        mapping: Mapping = {loop.induction_variable: new.induction_variable}
        before = self._waiting(list(new.inner_iter_args))
        ends = [op for each in self.results for op in each.ends]
        with ir.InsertionPoint(new.body):
            for op in list(loop.body)[:-1]:
                if op != self.steps and op not in ends:
                    clone(op, mapping)
            fetched = self._multiply(mapping, before, new)
            held = []
            for part in self.parts:
                with part.result.store.location:
                    held += part.rounded(mapping, fetched[part])
            for result in self.results:
                held += [mapping.get(value, value) for value in result.store.indices]
            with loop.location:
                scf.YieldOp(held)
        with ir.InsertionPoint.after(new):
            for each in self._waiting(list(new.results)):
                each.store()
        loop.operation.erase()

    def _waiting(self, values: list[ir.Value]) -> list[_Waiting]:
        """Splits the values carried by the loop over tiles into columns and the indices of each
        result."""
        rest = iter(values)
        columns = {part: list(islice(rest, len(part.held))) for part in self.parts}
        found: list[_Waiting] = []
        for result in self.results:
            mapping = dict(zip(result.store.indices, rest))
            found += [
                _Waiting(part, columns[part], mapping)
                for part in self.parts
                if part.result is result
            ]
        return found

    def _multiply(
        self, mapping: Mapping, before: list[_Waiting], tiles: scf.ForOp
    ) -> dict[ColumnRange, Mapping]:
        """Emits the first steps, which also store and fetch, then a loop over the remaining steps,
        whose results are mapped. Returns the operands fetched for each part of this tile."""
        steps = self.steps
        carried = [mapping.get(value, value) for value in steps.initArgs]
        *ops, last = steps.body.operations
        fetched: dict[ColumnRange, Mapping] = {part: {} for part in self.parts}
        with steps.location:
            later = arith.cmpi(arith.CmpIPredicate.ne, tiles.induction_variable, tiles.lowerBound)

        def step(number: int, beside: Callable[[], None]) -> None:
            inner = self._at(mapping, index.value(number), carried)
            first, others = self._in_order(ops)
            for op in first:
                clone(op, inner)
            with steps.location:
                beside()
            for op in others:
                clone(op, inner)
            carried[:] = [inner.get(value, value) for value in last.operands]

        def store(group: list[ColumnRange]) -> None:
            branch = scf.IfOp(later)
            with ir.InsertionPoint(branch.then_block):
                for each in before:
                    if each.part in group:
                        each.store()
                scf.YieldOp([])

        def fetch(part: ColumnRange, reads: list[tc.ElementOp]) -> None:
            for read in reads:
                if read in part.result.reads:
                    fetched[part][read.value] = part.fetch(read, mapping)

        def fetch_all(reads: list[tc.ElementOp], first: int) -> int:
            """Fetches the operands `reads`, one part per step; returns the number of the step that
            follows."""
            parts = self.parts if reads else []
            for number, part in enumerate(parts, first):
                step(number, partial(fetch, part, reads))
            return first + len(parts)

        for number, group in enumerate(self.groups):
            step(number, partial(store, group))
        many = [read for read in self.fetched if is_by_element(read)]
        few = [read for read in self.fetched if not is_by_element(read)]
        done = fetch_all(many, len(self.groups))
        end = self.end - (len(self.parts) if few else 0)
        with steps.location:
            rest = scf.ForOp(index.value(done), index.value(end), index.value(1), carried)
        inner = self._at(mapping, rest.induction_variable, list(rest.inner_iter_args))
        with ir.InsertionPoint(rest.body):
            for op in ops:
                clone(op, inner)
            with steps.location:
                scf.YieldOp([inner.get(value, value) for value in last.operands])
        carried[:] = list(rest.results)
        fetch_all(few, end)
        mapping.update(zip(steps.results, carried, strict=True))
        return fetched

    def _at(self, mapping: Mapping, step: ir.Value, carried: list[ir.Value]) -> Mapping:
        """Mapping of the loop's values for one step."""
        arguments = zip(self.steps.inner_iter_args, carried, strict=True)
        return {**mapping, self.steps.induction_variable: step, **dict(arguments)}

    def _in_order(self, ops: list[ir.OpView]) -> tuple[list[ir.OpView], list[ir.OpView]]:
        """A step's ops up to the last product, without waits for products, and all others."""
        end = ops.index(self.products[-1]) + 1
        waits = (tc.WgmmaWaitOp, tc.AddFragmentOp)
        first = [op for op in ops[:end] if not isinstance(op, waits)]
        return first, [op for op in ops if op not in first]


@dataclass(frozen=True)
class _Waiting:
    """Columns of a tile that are not stored yet, and the values of the tile's indices at
    that time."""

    part: ColumnRange
    columns: list[ir.Value]
    indices: Mapping

    def store(self) -> None:
        """Emits the stores of the columns that wait."""
        with self.part.result.store.location:
            self.part.store(self.columns, self.part.at(self.indices))


def _is_loop(op: ir.OpView) -> bool:
    return isinstance(op, scf.ForOp)


def _share_registers(kernel: func.FuncOp) -> None:
    """Makes the producer a whole warpgroup, which gives registers to the others."""
    shares = WARP_MAPS[WGMMA_PROMOTED]
    kernel.attributes[WARP_MAP] = ir.StringAttr.get(WGMMA_PROMOTED)
    kernel.attributes["tc.block"] = i64s([WARP * shares.warps, 1, 1])
    role = next(op for op in body(kernel) if isinstance(op, tc.RoleOp))
    with ir.InsertionPoint(role), role.location:
        tc.WarpgroupRegistersOp(i64s(shares.register_shares))

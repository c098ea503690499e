"""defer-stores: a tile is stored while the next one is multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of, string
from tcir.dialect.limits import WARP
from tcir.dialect.warp_map import CONSUMER, WARP_MAP, WARP_MAPS, WGMMA, WGMMA_PROMOTED
from tcir.dialect.warp_types import PART, WALK
from tcir.passes.build import index
from tcir.passes.build.clone import Mapping, clone
from tcir.passes.build.emit import i64s
from tcir.passes.build.kernel_ops import body, find_kernels
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark

COLUMNS = 32
"""Columns that are stored in a step: units of 16 bytes from four threads (see warp_store)."""
HALF = ("f16", "bf16")
"""Elements of results that half of the registers hold until the next tile."""


@register_pass
@dataclass(frozen=True)
class DeferStores(Pass):
    """Stores results of 16 bits in the first steps of the next tile, under its products.

    Before, in the role of the consumers::

        scf.for %t = … {
          %d = scf.for %k = 0 to 64 { … "tc.wgmma"; "tc.wgmma_wait"; … }
          "tc.store_fragment"(%d, %out, %m, %n)
        }

    After (`tc.block`, `tc.warp_map`, ``tc.warpgroup_registers``: the two warpgroups take most of
    the registers)::

        %last, … = scf.for %t = … iter_args(%held = zeros, …) {
          // for each of the first steps, here the first of eight:
          … "tc.wgmma"
          scf.if %t != 0 { "tc.store_fragment"(%held, %out, …) {part = array<i64: 0, 8>} }
          "tc.wgmma_wait"; …
          %d = scf.for %k = 8 to 64 { … }
          %next = "tc.fragment_epilogue"(%d) ({ round })
          scf.yield %next, %m, %n
        }
        "tc.store_fragment"(%last, %out, …)

    What the accumulators held is rounded and waits in half as many registers; the exchange among
    threads and the stores run while the tensor core has the next tile's groups. A kernel is left
    as it is if a CTA has one tile, if results have other types or rows of no whole units, or if K
    has too few steps. Preserves every value, and the order of stores.
    """

    name: ClassVar[str] = "defer-stores"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            found = _Tiles.of(kernel)
            if found is not None:
                remark(found.store, f"a tile is stored in {found.parts} steps of the next one")
                found.defer()
                _share_registers(kernel)


@dataclass(frozen=True)
class _Tiles:
    """The loop over a CTA's tiles, that over K in it, and what it ends in."""

    loop: scf.ForOp
    steps: scf.ForOp
    store: tc.StoreFragmentOp

    @classmethod
    def of(cls, kernel: func.FuncOp) -> _Tiles | None:
        """None where stores are not deferred."""
        roles = [op for op in body(kernel) if isinstance(op, tc.RoleOp)]
        consumers = [role for role in roles if string(role, "kind") == CONSUMER]
        if WARP_MAP not in kernel.attributes or string(kernel, WARP_MAP) != WGMMA:
            return None
        loops = [op for role in consumers for op in role.body.blocks[0] if _is_loop(op)]
        if len(loops) != 1 or len(loops[0].results):
            return None
        (loop,) = loops
        *ops, _ = loop.body.operations
        steps = [op for op in ops if _is_loop(op)]
        if len(steps) != 1 or not isinstance(ops[-1], tc.StoreFragmentOp):
            return None
        made = cls(loop, steps[0], ops[-1])
        return made if made._fits() else None

    @property
    def parts(self) -> int:
        """Steps in which a tile is stored."""
        return int(self.store.fragment.type.shape[1]) // COLUMNS

    def _fits(self) -> bool:
        kind, tensor = self.store.fragment.type, self.store.tensor.type
        ends = [constant_of(v) for v in (self.steps.lowerBound, self.steps.upperBound)]
        products = [op for op in self.steps.body if isinstance(op, tc.WgmmaOp)]
        return (
            WALK not in self.store.attributes
            and str(tensor.element_type) in HALF
            and str(kind.element) in ("f32", *HALF)
            and kind.shape[1] % COLUMNS == 0
            and tensor.shape[-1] % 8 == 0
            and len(products) == 1
            and ends[0] == 0
            and ends[1] is not None
            and ends[1] > self.parts
        )

    def defer(self) -> None:
        """Rewrites the loop."""
        loop, store = self.loop, self.store
        kind = store.fragment.type
        element = store.tensor.type.element_type
        held = tc.FragmentType.build(kind.shape, element, "C", kind.atom)
        at = list(store.indices)
        with ir.InsertionPoint(loop), store.location:
            start = [tc.ZeroFragmentOp(held).fragment, *(index.value(0) for _ in at)]
            new = scf.ForOp(loop.lowerBound, loop.upperBound, loop.step, start)
        for name in loop.attributes:
            new.attributes[name] = loop.attributes[name]
        mapping: Mapping = {loop.induction_variable: new.induction_variable}
        before = _Held(store, list(new.inner_iter_args))
        with ir.InsertionPoint(new.body):
            for op in list(loop.body)[:-2]:
                if op == self.steps:
                    self._first_steps(mapping, before, new)
                else:
                    clone(op, mapping)
            indices = [mapping.get(value, value) for value in at]
            total = mapping.get(store.fragment, store.fragment)
            with store.location:
                rounded = total if total.type == held else _round(store, total, held, indices)
                scf.YieldOp([rounded, *indices])
        with ir.InsertionPoint.after(new):
            _Held(store, list(new.results)).emit(None)
        loop.operation.erase()

    def _first_steps(self, mapping: Mapping, before: _Held, tiles: scf.ForOp) -> None:
        """The steps that store, then the loop of the others; its results are mapped."""
        steps = self.steps
        carried = [mapping.get(value, value) for value in steps.initArgs]
        *ops, last = steps.body.operations
        with steps.location:
            first = arith.cmpi(
                arith.CmpIPredicate.ne, tiles.induction_variable, tiles.lowerBound
            )  # fmt: skip
        for number in range(self.parts):
            inner = dict(mapping)
            inner[steps.induction_variable] = index.value(number)
            inner.update(zip(steps.inner_iter_args, carried, strict=True))
            for op in ops:
                clone(op, inner)
                if isinstance(op, tc.WgmmaOp):
                    with op.location:
                        branch = scf.IfOp(first)
                        with ir.InsertionPoint(branch.then_block):
                            before.emit((number, self.parts))
                            scf.YieldOp([])
            carried = [inner.get(value, value) for value in last.operands]
        with steps.location:
            rest = scf.ForOp(
                index.value(self.parts), steps.upperBound, index.value(1), carried
            )  # fmt: skip
        inner = dict(mapping)
        inner[steps.induction_variable] = rest.induction_variable
        inner.update(zip(steps.inner_iter_args, rest.inner_iter_args, strict=True))
        with ir.InsertionPoint(rest.body):
            for op in ops:
                clone(op, inner)
            with steps.location:
                scf.YieldOp([inner.get(value, value) for value in last.operands])
        mapping.update(zip(steps.results, rest.results, strict=True))


@dataclass(frozen=True)
class _Held:
    """A tile that is rounded and not stored yet: the fragment and its indices."""

    store: tc.StoreFragmentOp
    values: list[ir.Value]

    def emit(self, part: tuple[int, int] | None) -> None:
        """Its store, or that of a part of its columns."""
        fragment, *indices = self.values
        with self.store.location:
            made = tc.StoreFragmentOp(fragment, self.store.tensor, indices, self.store.tails)
        if part is not None:
            made.attributes[PART] = i64s(part)


def _round(
    store: tc.StoreFragmentOp, total: ir.Value, held: ir.Type, indices: list[ir.Value]
) -> ir.Value:
    """The sums rounded to the result's type."""
    made = tc.FragmentEpilogueOp(total, indices, store.tails, held)
    block = made.body.blocks.append(total.type.element, arg_locs=[store.location])
    with ir.InsertionPoint(block):
        tc.YieldOp(arith.truncf(held.element, block.arguments[0]))
    return made.out


def _is_loop(op: ir.OpView) -> bool:
    return isinstance(op, scf.ForOp)


def _share_registers(kernel: func.FuncOp) -> None:
    """A producer of a whole warpgroup, whose registers the others take."""
    shares = WARP_MAPS[WGMMA_PROMOTED]
    kernel.attributes[WARP_MAP] = ir.StringAttr.get(WGMMA_PROMOTED)
    kernel.attributes["tc.block"] = i64s([WARP * shares.warps, 1, 1])
    role = next(op for op in body(kernel) if isinstance(op, tc.RoleOp))
    with ir.InsertionPoint(role), role.location:
        tc.WarpgroupRegistersOp(i64s(shares.register_shares))

"""assign-roles: divides the sequential program of a CTA among its warps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, memref, scf, vector
from tcir.dialect import tc
from tcir.dialect.limits import QUARTERS
from tcir.dialect.operation import Op, traits_of
from tcir.dialect.upstream import names
from tcir.dialect.walk import nested, walk
from tcir.dialect.warp_map import FOR_ROLE, Role, WarpMap, role_of, warp_map_of
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import (
    ACCESSES,
    body,
    find_kernels,
    is_quarter_loop,
    trip_count,
)
from tcir.passes.pipelining.pairs import share_leader
from tcir.passmanager.pipeline import Pass, register_pass

PURE = names(
    scf.ForOp, scf.IfOp, scf.YieldOp, "gpu.block_id", memref.CollapseShapeOp, memref.ExpandShapeOp,
    memref.LoadOp, vector.BitCastOp, vector.BroadcastOp, vector.DeinterleaveOp, vector.InterleaveOp,
)  # fmt: skip
"""Upstream ops outside arith that any role may duplicate. The bindings report whether an op has
memory effects, but not which, so this cannot be derived."""


@register_pass
@dataclass(frozen=True)
class AssignRoles(Pass):
    """Assigns every op between the set-up and the end of the kernel to one of the concurrent roles
    of the warp map.

    Before::

        "tc.cta_barrier"()
        scf.for %i { wait empty; expect_tx; tma_load …; wait full; cp …; mma …; commit empty }
        commit done; wait done
        scf.for %quarter = 0 to 4 { … tmem_ld[%quarter] … store_rows }
        "tc.cta_barrier"()

    After::

        "tc.cta_barrier"()
        "tc.role"() ({ ^bb0(%w: index): scf.for %i { wait empty; expect_tx; tma_load … } })
            {kind = "producer", warps = [4], threads = "one"}
        "tc.role"() ({ ^bb0(%w: index): scf.for %i { wait full; cp; mma …; commit } commit done })
            {kind = "mma", warps = [5], threads = "one"}
        "tc.role"() ({ ^bb0(%w: index): wait done; … tmem_ld[%w] … store_rows })
            {kind = "epilogue", warps = [0, 1, 2, 3], threads = "warp"}
        "tc.cta_barrier"()

    An op's role follows from its kind; the role of a wait or fence follows from the attribute
    ``tc.for_role``, which place-barriers has set and this pass removes. Each role gets a copy of
    every loop that holds its ops, and of the index arithmetic it needs; a loop over the four
    sub-partitions of tensor memory becomes one sub-partition per epilogue warp. With n epilogue
    warpgroups each takes every n-th iteration of the loops over columns. ``tc.warpgroup_registers``
    precedes the roles of a map with register shares. If all ops of a role belong to the ``leader``
    of a CTA pair, the role belongs to the leader. A loop-carried value belongs to the role that
    makes its first value; if index arithmetic makes that value, each role has its own copy.
    Preserves the order of ops within a role, and between roles only the order that the barriers
    enforce.
    """

    name: ClassVar[str] = "assign-roles"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "place-barriers and plan-memory"):
            if "tc.async" not in kernel.attributes:
                raise match_failure(
                    kernel, "expected a kernel with barriers; run place-barriers first"
                )
            _split(kernel, warp_map_of(kernel))


def _split(kernel: func.FuncOp, warp_map: WarpMap) -> None:
    ops = body(kernel)
    owned = [i for i, op in enumerate(ops) if _roles_in(op)]
    if not owned:
        raise match_failure(kernel, "expected ops that belong to a role, got none")
    span = ops[owned[0] : owned[-1] + 1]
    for op in span:
        for inner in walk(op):
            if not isinstance(inner.operation.parent.opview, tc.FragmentEpilogueOp):
                _check_op(inner, warp_map.kinds)
    behind = ops[owned[-1] + 1]
    if warp_map.register_shares:
        with ir.InsertionPoint(behind), span[0].location:
            tc.WarpgroupRegistersOp(i64s(warp_map.register_shares))
    for role in warp_map.roles:
        mine = [op for op in span if role.kind in _roles_in(op)]
        if not mine:
            continue
        with ir.InsertionPoint(behind), mine[0].location:
            region = tc.RoleOp(
                ir.StringAttr.get(role.kind), i64s(role.warps), ir.StringAttr.get(role.threads)
            )
        block = region.body.blocks.append(ir.IndexType.get(), arg_locs=[mine[0].location])
        copier = _Copier(role, block.arguments[0])
        with ir.InsertionPoint(block):
            for op in mine:
                copier.copy(op)
        _drop_dead(block)
        share_leader(region, [op for op in nested(region) if not _is_pure(op)])
    for op in reversed([ops[i] for i in owned]):
        op.operation.erase()


def _check_op(op: ir.OpView, known: tuple[str, ...]) -> None:
    """Rejects an op with effects but without a role between the ops of the roles."""
    if traits_of(op).issued_by == "cta":
        raise match_failure(
            op,
            f"expected {op.operation.name} before or after the ops of the roles, got it "
            "between them",
        )
    role = _own_role(op)
    if role is None and not _is_pure(op):
        raise match_failure(
            op,
            f"expected an op that belongs to one of the roles {', '.join(known)}, got "
            f"{op.operation.name} without the attribute {FOR_ROLE}{_way_to_a_role(op, known)}",
        )
    if role is not None and role not in known:
        where = FOR_ROLE if FOR_ROLE in op.operation.attributes else f"role= of {_class_of(op)}"
        raise match_failure(op, f"expected {where} to be one of {', '.join(known)}, got {role}")
    if isinstance(op, scf.IfOp) and (len(op.results) or len(op.regions[1].blocks)):
        raise match_failure(op, "expected branches without results and without else, got one with")


def _way_to_a_role(op: ir.OpView, known: tuple[str, ...]) -> str:
    """Advice for an op without a role: in the package, place-barriers; for a plugin, its class."""
    if not isinstance(op, Op) or type(op).__module__.startswith("tcir."):
        return "; set it where the op is made, or make the op after assign-roles"
    choices = " or ".join(f'role="{kind}"' for kind in known)
    return (
        f"; among the keywords of {_class_of(op)} write {choices}, whose warps then execute it, or "
        "pure=True if every role may have a copy; or insert it after assign-roles"
    )


def _class_of(op: ir.OpView) -> str:
    return f"class {type(op).__module__}.{type(op).__qualname__}"


def _is_pure(op: ir.OpView) -> bool:
    name = op.operation.name
    return name.startswith(("arith.", "math.")) or name in PURE or traits_of(op).pure


def _own_role(op: ir.OpView) -> str | None:
    """The role of `op` itself."""
    return role_of(op) or None


def _role_of(value: ir.Value) -> str | None:
    """Role of the op that makes a value; for one carried through a loop, that of its initial
    value."""
    if isinstance(value, ir.BlockArgument):
        around = value.owner.owner.opview
        carried = isinstance(around, scf.ForOp) and value.arg_number > 0
        return _role_of(around.initArgs[value.arg_number - 1]) if carried else None
    op = value.owner.opview
    if isinstance(op, scf.ForOp):
        return _role_of(op.initArgs[ir.OpResult(value).result_number])
    return _own_role(op)


def _roles_in(op: ir.OpView) -> set[str]:
    return {role for inner in walk(op) if (role := _own_role(inner))}


@dataclass
class _Copier:
    """Copies the ops that one role executes to the current insertion point."""

    role: Role
    position: ir.Value

    def __post_init__(self) -> None:
        self.new: dict[ir.Value, ir.Value] = {}
        self.warpgroup: ir.Value | None = (
            None  # in a loop over sub-partitions: which one of several
        )

    def copy(self, op: ir.OpView) -> None:
        """Copies `op`. Of a loop it copies only the ops of the role and the ops that they may
        need."""
        if isinstance(op, scf.ForOp):
            self._copy_loop(op)
            return
        if isinstance(op, scf.IfOp):
            self._copy_branch(op)
            return
        clone = op.operation.clone()
        for inner in walk(clone.opview):
            for i, operand in enumerate(inner.operation.operands):
                inner.operation.operands[i] = self._mapped(op, operand)
        if FOR_ROLE in clone.attributes:
            del clone.attributes[FOR_ROLE]
        self.new.update(zip(op.operation.results, clone.results))

    def _mapped(self, op: ir.OpView, operand: ir.Value) -> ir.Value:
        """The copy of `operand`; the value itself if it is defined outside the roles."""
        if operand in self.new:
            return self.new[operand]
        if not isinstance(operand, ir.BlockArgument):
            role = _own_role(operand.owner.opview)
            if role is not None:
                raise match_failure(
                    op,
                    f"expected values to stay within a role, got one from {role} in "
                    f"{self.role.kind}; pass it through shared or tensor memory",
                )
        return operand

    def _copy_loop(self, op: scf.ForOp) -> None:
        if self.role.kind not in _roles_in(op):
            return
        if is_quarter_loop(op) and len(self.role.warps) > 1:
            self._share_quarters(op)
            return
        carried = self._carried(op)
        lower, upper, step = (self._mapped(op, v) for v in (op.lowerBound, op.upperBound, op.step))
        with op.location:
            if self.warpgroup is not None and _is_column_loop(op):
                lower = index.value(index.add(lower, index.mul(step, self.warpgroup)))
                step = index.value(index.mul(step, self._warpgroups))
            loop = scf.ForOp(
                lower, upper, step, [self._mapped(op, op.initArgs[i]) for i in carried]
            )
        for name in op.attributes:
            loop.attributes[name] = op.attributes[name]
        self.new[op.induction_variable] = loop.induction_variable
        self.new.update(zip([op.inner_iter_args[i] for i in carried], loop.inner_iter_args))
        with ir.InsertionPoint(loop.body):
            self._copy_body(op.body)
            last = op.body.operations[len(op.body.operations) - 1]
            handed = [self._mapped(last, last.operands[i]) for i in carried]
            scf.YieldOp(handed, loc=op.location)
        self.new.update(zip([op.results[i] for i in carried], loop.results))

    def _carried(self, op: scf.ForOp) -> list[int]:
        """Numbers of the carried values that the role has: its own, and those of every role."""
        owners = list(map(_role_of, op.initArgs))
        return [i for i, role in enumerate(owners) if role in (None, self.role.kind)]

    def _copy_branch(self, op: scf.IfOp) -> None:
        if self.role.kind not in _roles_in(op):
            return
        with op.location:
            branch = scf.IfOp(self._mapped(op, op.condition))
        with ir.InsertionPoint(branch.then_block):
            self._copy_body(op.then_block)
            scf.YieldOp([], loc=op.location)

    @property
    def _warpgroups(self) -> int:
        return len(self.role.warps) // QUARTERS

    def _share_quarters(self, op: scf.ForOp) -> None:
        """Copies the body once: each warp executes it for its sub-partition, w mod 4."""
        if trip_count(op) != QUARTERS or len(self.role.warps) % QUARTERS:
            raise match_failure(
                op,
                f"expected one sub-partition per warp of {self.role.kind}, got "
                f"{trip_count(op)} sub-partitions for {len(self.role.warps)} warps",
            )
        self.new[op.induction_variable] = self.position
        carried = self._carried(op)
        starts = [self._mapped(op, op.initArgs[i]) for i in carried]
        self.new.update(zip([op.inner_iter_args[i] for i in carried], starts))
        if self._warpgroups > 1:
            _check_columns(op, self.role)
            with op.location:
                quarter = index.value(index.rem(self.position, QUARTERS))
                self.warpgroup = index.value(index.div(self.position, QUARTERS))
            self.new[op.induction_variable] = quarter
        self._copy_body(op.body)
        last = op.body.operations[len(op.body.operations) - 1]
        handed = [self._mapped(last, last.operands[i]) for i in carried]
        self.new.update(zip([op.results[i] for i in carried], handed))
        self.warpgroup = None

    def _copy_body(self, block: ir.Block) -> None:
        for inner in list(block)[:-1]:
            if _own_role(inner) in (None, self.role.kind):
                self.copy(inner)


def _is_column_loop(op: ir.OpView) -> bool:
    """Whether the induction variable is the `column` of its ``tc.tmem_ld`` and ``tc.tmem_st``."""
    if not isinstance(op, scf.ForOp):
        return False
    reads = [inner for inner in walk(op) if isinstance(inner, ACCESSES)]
    return bool(reads) and all(read.column == op.induction_variable for read in reads)


_EACH_WARP = (tc.FenceOp, tc.MbarrierArriveOp, tc.MbarrierWaitOp, tc.TmemWaitOp)
"""Synchronisation that every warp of a role executes, whatever its columns."""


def _check_columns(loop: scf.ForOp, role: Role) -> None:
    """Rejects effects outside the loops over columns: every warpgroup would have them."""
    for op in loop.body:
        if _is_column_loop(op):
            continue
        for inner in walk(op):
            if _own_role(inner) is not None and not isinstance(inner, _EACH_WARP):
                raise match_failure(
                    inner,
                    f"expected {inner.operation.name} in a loop over columns, which the "
                    f"{len(role.warps)} warps of {role.kind} split, got it outside: each of their "
                    f"{len(role.warps) // QUARTERS} warpgroups would execute it; take a warp map "
                    f"with {QUARTERS} warps of {role.kind}",
                )


def _drop_dead(block: ir.Block) -> None:
    """Erases copied index arithmetic that the role does not use."""
    for op in reversed(list(block)):
        for region in op.operation.regions:
            for inner in region:
                _drop_dead(inner)
        results = list(op.operation.results)
        carries = isinstance(op, scf.ForOp)
        if (
            _is_pure(op)
            and not carries
            and results
            and not any(list(result.uses) for result in results)
        ):
            op.operation.erase()

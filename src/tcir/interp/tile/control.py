"""Rules of structured control flow and of the position in the grid."""

from __future__ import annotations

from typing import Any

from tcir._mlir import ir
from tcir.dialect.attributes import optional_integer
from tcir.dialect.loops import MOST_TRIPS
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, execute, may_block


@execute("func.return")
def func_return(_: Compiler, __: ir.OpView) -> Step:
    def nothing(_: Frame) -> None:
        pass

    return nothing


@execute("scf.yield")
def scf_yield(compiler: Compiler, op: ir.OpView) -> Step:
    """Copies the yielded values to the slots where the enclosing op expects them."""
    sources = compiler.operands(op)
    targets = [compiler.slot(v) for v in _receivers(op.operation.parent)]

    def hand_over(frame: Frame) -> None:
        values = [frame.values[s] for s in sources]
        for target, value in zip(targets, values):
            frame.values[target] = value

    return hand_over


def _receivers(parent: Any) -> list[Any]:
    operation = parent.operation
    if operation.name == "scf.for":
        return list(operation.regions[0].blocks[0].arguments)[1:]
    if operation.name == "scf.while":
        return list(operation.regions[0].blocks[0].arguments)
    return list(operation.results)


@execute("scf.for")
def scf_for(compiler: Compiler, op: ir.OpView) -> Step:
    low, high, step, *initial = compiler.operands(op)
    block = op.operation.regions[0].blocks[0]
    index, *carried = [compiler.slot(a) for a in block.arguments]
    results = [compiler.slot(r) for r in op.operation.results]
    body = compiler.block(block)
    site, most = compiler.site(op), optional_integer(op, MOST_TRIPS)

    def trips(frame: Frame) -> range:
        v = frame.values
        if v[step] <= 0:
            raise frame.cta_run.error("bad-step", f"expected a positive step, got {v[step]}", site)
        for target, source in zip(carried, [v[s] for s in initial]):
            v[target] = source
        frame.cta_run.turns.spend(max(0, -((v[low] - v[high]) // v[step])), site)
        turns = range(v[low], v[high], v[step])
        if most is not None and turns and turns[-1] >= most:
            raise frame.cta_run.error(
                "most-trips",
                f"expected an upper bound of at most {most} ({MOST_TRIPS}), got {turns[-1] + 1}",
                site,
            )
        return turns

    def finish(frame: Frame) -> None:
        for target, source in zip(results, carried):
            frame.values[target] = frame.values[source]

    if may_block(body):

        def blocking(frame: Frame) -> Blocking:
            for i in trips(frame):
                frame.values[index] = i
                yield from body(frame)
            finish(frame)

        return blocking

    def straight(frame: Frame) -> None:
        for i in trips(frame):
            frame.values[index] = i
            body(frame)
        finish(frame)

    return straight


@execute("scf.while")
def scf_while(compiler: Compiler, op: ir.OpView) -> Step:
    """Executes `scf.while`: `before` ends in `scf.condition`, which passes its values to `after` or
    to the results."""
    before, after = (region.blocks[0] for region in op.operation.regions)
    initial = compiler.operands(op)
    carried = [compiler.slot(a) for a in before.arguments]
    *_, condition = before.operations
    test, *passed = [compiler.slot(v) for v in condition.operation.operands]
    into = [compiler.slot(a) for a in after.arguments]
    results = [compiler.slot(r) for r in op.operation.results]
    head, body = compiler.block(before), compiler.block(after)
    site = compiler.site(op)

    def turns(frame: Frame) -> Blocking:
        v = frame.values
        _move(v, initial, carried)
        while True:
            if may_block(head):
                yield from head(frame)
            else:
                head(frame)
            if not v[test]:
                break
            frame.cta_run.turns.spend(1, site)
            _move(v, passed, into)
            if may_block(body):
                yield from body(frame)
            else:
                body(frame)
        _move(v, passed, results)

    return turns


@execute("scf.condition")
def scf_condition(_: Compiler, __: ir.OpView) -> Step:
    """Does nothing: the rule of scf.while reads the op."""

    def nothing(_: Frame) -> None:
        pass

    return nothing


def _move(values: list[Any], sources: list[int], targets: list[int]) -> None:
    """Copies values between slots, all at once."""
    for target, value in zip(targets, [values[s] for s in sources]):
        values[target] = value


@execute("scf.if")
def scf_if(compiler: Compiler, op: ir.OpView) -> Step:
    (condition,) = compiler.operands(op)
    branches = [
        compiler.block(r.blocks[0]) if len(r.blocks) else None for r in op.operation.regions
    ]
    then, otherwise = branches[0], branches[1] if len(branches) > 1 else None

    def chosen(frame: Frame) -> Step | None:
        return then if frame.values[condition] else otherwise

    if any(b is not None and may_block(b) for b in branches):

        def blocking(frame: Frame) -> Blocking:
            branch = chosen(frame)
            if branch is not None and may_block(branch):
                yield from branch(frame)
            elif branch is not None:
                branch(frame)

        return blocking

    def straight(frame: Frame) -> None:
        branch = chosen(frame)
        if branch is not None:
            branch(frame)

    return straight


@execute("gpu.block_id")
def gpu_block_id(compiler: Compiler, op: ir.OpView) -> Step:
    axis = _axis(op)
    result = compiler.result(op)

    def block_id(frame: Frame) -> None:
        frame.values[result] = frame.cta.index[axis]

    return block_id


@execute("gpu.grid_dim")
def gpu_grid_dim(compiler: Compiler, op: ir.OpView) -> Step:
    axis = _axis(op)
    result = compiler.result(op)
    grid = [*ir.DenseI64ArrayAttr(compiler.attributes["tc.grid"]), 1, 1]

    def grid_dim(frame: Frame) -> None:
        frame.values[result] = grid[axis]

    return grid_dim


def _axis(op: ir.OpView) -> int:
    """Axis 0..2 of a ``#gpu<dim x>`` attribute."""
    return "xyz".index(str(op.operation.attributes["dimension"]).rstrip(">")[-1])

"""Rules of structured control flow, and of the ops that return the CTA's position in the grid."""

from __future__ import annotations

from typing import Any

from tcir._mlir import ir
from tcir.dialect.attributes import optional_integer
from tcir.dialect.loops import MOST_TRIPS
from tcir.interp.tile.compiler import (
    Blocking,
    Compiler,
    Frame,
    Step,
    blocking,
    execute,
    may_block,
    nothing,
)


@execute("func.return", "scf.condition")
def terminator(_: Compiler, __: ir.OpView) -> Step:
    """Does nothing: the rule of scf.while reads the condition of this terminator."""
    return nothing


@execute("scf.yield")
def scf_yield(compiler: Compiler, op: ir.OpView) -> Step:
    """Copies the yielded values to the slots where the enclosing op expects them."""
    sources = compiler.operands(op)
    targets = compiler.slots_of(_receivers(op.operation.parent))
    return (lambda frame: _move(frame.values, sources, targets)) if sources else nothing


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
    index, *carried = compiler.slots_of(block.arguments)
    results = compiler.slots_of(op.operation.results)
    body = compiler.block(block)
    site, most = compiler.site(op), optional_integer(op, MOST_TRIPS)

    def trips(frame: Frame) -> range:
        v = frame.values
        if v[step] <= 0:
            raise frame.cta_run.error("bad-step", f"expected a positive step, got {v[step]}", site)
        _move(v, initial, carried)
        frame.cta_run.turns.spend(max(0, -((v[low] - v[high]) // v[step])), site)
        turns = range(v[low], v[high], v[step])
        if most is not None and turns and turns[-1] >= most:
            raise frame.cta_run.error(
                "most-trips",
                f"expected an upper bound of at most {most} ({MOST_TRIPS}), got {turns[-1] + 1}",
                site,
            )
        return turns

    if may_block(body):

        def waiting(frame: Frame) -> Blocking:
            for i in trips(frame):
                frame.values[index] = i
                yield from body(frame)
            _move(frame.values, carried, results)

        return waiting

    def straight(frame: Frame) -> None:
        for i in trips(frame):
            frame.values[index] = i
            body(frame)
        _move(frame.values, carried, results)

    return straight


@execute("scf.while")
def scf_while(compiler: Compiler, op: ir.OpView) -> Step:
    """Executes `scf.while`: `before` ends in `scf.condition`, which passes its values to `after` or
    to the results."""
    before, after = (region.blocks[0] for region in op.operation.regions)
    initial = compiler.operands(op)
    carried = compiler.slots_of(before.arguments)
    *_, condition = before.operations
    test, *passed = compiler.operands(condition)
    into = compiler.slots_of(after.arguments)
    results = compiler.slots_of(op.operation.results)
    head, body = (blocking(compiler.block(each)) for each in (before, after))
    site = compiler.site(op)

    def turns(frame: Frame) -> Blocking:
        v = frame.values
        _move(v, initial, carried)
        while True:
            yield from head(frame)
            if not v[test]:
                break
            frame.cta_run.turns.spend(1, site)
            _move(v, passed, into)
            yield from body(frame)
        _move(v, passed, results)

    return turns


def _move(values: list[Any], sources: list[int], targets: list[int]) -> None:
    """Copies values between slots, all at once."""
    for target, value in zip(targets, [values[s] for s in sources]):
        values[target] = value


@execute("scf.if")
def scf_if(compiler: Compiler, op: ir.OpView) -> Step:
    (condition,) = compiler.operands(op)
    branches = [compiler.block(r.blocks[0]) for r in op.operation.regions if len(r.blocks)]
    then, otherwise = (*branches, nothing)[:2]
    if may_block(then) or may_block(otherwise):
        yes, no = blocking(then), blocking(otherwise)

        def waiting(frame: Frame) -> Blocking:
            yield from (yes if frame.values[condition] else no)(frame)

        return waiting

    def straight(frame: Frame) -> None:
        (then if frame.values[condition] else otherwise)(frame)

    return straight


@execute("gpu.block_id")
def gpu_block_id(compiler: Compiler, op: ir.OpView) -> Step:
    axis = _axis(op)
    return compiler.assigns(op, lambda frame: frame.cta.index[axis])


@execute("gpu.grid_dim")
def gpu_grid_dim(compiler: Compiler, op: ir.OpView) -> Step:
    extent = [*ir.DenseI64ArrayAttr(compiler.attributes["tc.grid"]), 1, 1][_axis(op)]
    return compiler.assigns(op, lambda frame: extent)


def _axis(op: ir.OpView) -> int:
    """Axis 0..2 of a ``#gpu<dim x>`` attribute."""
    return "xyz".index(str(op.operation.attributes["dimension"]).rstrip(">")[-1])

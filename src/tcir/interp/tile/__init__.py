"""Executes kernels of tile programs (`func.func` with ``tc.kernel``) on the simulated machine.

The same ops have three semantics, depending on the kernel's attributes and ops:

- Without ``tc.async`` the body is a sequential program: every op takes effect before the next op.
- With ``tc.async``, copies, multiplications and commits complete later, in an order that the
  machine chooses. One agent (an independently scheduled thread of execution) runs the CTA's
  program.
- With `tc.role` regions every warp is an agent. It runs the whole kernel, but skips the roles that
  do not list it. An op outside roles that belongs to one thread or warp is executed only by that
  thread or warp.

Objects are at the addresses that memory planning gave them; before memory is planned, each object
gets separate memory. `execute` is the table of rules and takes rules from user code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integers
from tcir.dialect.limits import WARP
from tcir.dialect.walk import nested
from tcir.errors import IncompleteError, InputError
from tcir.interp import Outcome, OutputSpec
from tcir.interp.ptx.jobs.part import GridPart, clusters
from tcir.interp.ptx.lockstep.abandoned import Abandoned
from tcir.interp.ptx.lockstep.leaders import eligible
from tcir.interp.rules import site_of
from tcir.interp.tensor.func import function_named
from tcir.interp.tile.compiler import Compiler, execute
from tcir.interp.tile.kernel import LoopTurns, TileProgram, start_cta
from tcir.interp.tile.lockstep.launch import Lockstep
from tcir.interp.tile.lockstep.repeat import Repetition, launch_key
from tcir.interp.tile.places import Places
from tcir.interp.tile.values import MemRef, Writers
from tcir.interp.types import Array, dtype_of, shape_of
from tcir.machine import Finding, Machine, MachineError, NotModelled
from tcir.machine.memory.memories import ArrayPlace
from tcir.program.execution import overwritten
from tcir.program.launch import UNWRITTEN
from tcir.rule_files import load_folder
from tcir.run_options import DEFAULT_OPTIONS, RunOptions

__all__ = ["execute", "run"]

LEAST = 32
"""Alignment of every buffer at this level, which has no vector accesses: enough for a tensor map of
any type (CUDA driver API)."""


def run(
    module: ir.Module,
    name: str,
    inputs: Sequence[Array],
    outputs: Sequence[OutputSpec],
    options: RunOptions = DEFAULT_OPTIONS,
) -> Outcome:
    """Runs the kernel `func.func @name`; see `tcir.interp.Executor`.

    An element of a result that no CTA stores is an error finding, ``output-never-written``, except
    in a kernel with the attribute ``tc.unwritten`` (groups with fewer rows than they have room
    for). A changed input is an error finding, ``input-overwritten``.
    """
    way = options
    while True:
        try:
            return _run(module, name, inputs, outputs, way)
        except Abandoned as reason:
            way = replace(way, lockstep=not reason.alone, repeats=None)


def _run(
    module: ir.Module,
    name: str,
    inputs: Sequence[Array],
    outputs: Sequence[OutputSpec],
    options: RunOptions,
) -> Outcome:
    """Does `run`; raises Abandoned if the kernel must run without lockstep."""
    function = function_named(module.operation, name)
    missing = execute.missing(function)
    if missing:
        return Outcome([], "tile", incomplete=missing)
    writers = Writers()
    try:
        with module.context:
            places = Places.of(function)
            compiler = Compiler(function, places, writers)
            block = function.regions[0].blocks[0]
            for argument in block.arguments:
                compiler.slot(argument)  # the arguments take the first slots
            step = compiler.block(block)
            grid, cluster, threads = _launch_sizes(function)
            shapes = [(shape_of(a.type), dtype_of(a.type)) for a in block.arguments]
    except IncompleteError as error:
        return Outcome([], "tile", incomplete=[str(error)])
    arrays = _buffers(name, shapes, inputs, outputs)
    machine = Machine(
        grid=grid,
        block=(threads, 1, 1),
        cluster=cluster,
        dynamic_smem=places.dynamic_smem,
        options=options,
    )
    machine.shared_start = machine.placement.shared_start(places.dynamic_smem)
    machine.programmatic = "tc.programmatic" in function.attributes
    meets = any(isinstance(op, tc.LaunchRequestOp) for op in nested(function))
    machine.interleave(meets)
    arguments, adverse = [], options.placement == "adverse"
    for number, array in enumerate(arrays):
        address = machine.memory.bind(
            array,
            initialized=number < len(inputs),
            place=ArrayPlace(alignment=LEAST if adverse else 256),
        )
        arguments.append(MemRef(address, array.shape, array.dtype, number))
        writers.watch(number, array.size)
    roles = any(isinstance(op, tc.RoleOp) for op in nested(function))
    warps = -(-threads // WARP)
    turns = LoopTurns(options.max_instructions)
    program = TileProgram(compiler, step, arguments, warps, roles, turns)
    part, why = _part(machine, function)
    try:
        followers = _execute(machine, program, function, part)
    except NotModelled as error:
        return Outcome([], "tile", incomplete=[f"{error.site}: {error.what}"])
    results = arrays[len(inputs) :]
    whole = results if UNWRITTEN not in function.attributes and part is None else []
    findings = [
        *machine.findings,
        *_never_written(writers, whole, len(inputs), site_of(function)),
        *overwritten(
            name,
            inputs,
            arrays[: len(inputs)],
            lambda n: partial(_site, writers, n, inputs[n].shape),
        ),
    ]
    sizes = {"loop_turns": turns.count, "ctas": int(np.prod(grid))}
    return Outcome(
        results,
        "tile",
        findings=findings,
        counters=machine.counters.as_dict() | sizes,
        sites={
            i: partial(_site, writers, len(inputs) + i, result.shape)
            for i, result in enumerate(results)
        },
        followers=followers,
        executed=0 if part is None else len(part.mine) * int(np.prod(cluster)),
        stored={}
        if part is None
        else {i: writers.owner[len(inputs) + i] >= 0 for i in range(len(results))},
        whole=f"@{name}: {why}" if why else "",
        meets=meets,
    )


def _part(machine: Machine, function: ir.Operation) -> tuple[GridPart | None, str]:
    """Returns the CTAs to execute (None: all), and why all run although a sample was requested."""
    sample = machine.options.sample
    if sample is None:
        return None, ""
    mine = sample.of(machine.grid, machine.cluster)
    if len(mine) == clusters(machine):
        return None, ""
    for op in nested(function):
        if isinstance(op, tc.LaunchRequestOp) or (
            isinstance(op, tc.TmaStoreOp) and "reduction" in op.operation.attributes
        ):
            return None, f"CTAs may communicate: {op.operation.name}"
    return GridPart(machine, mine), ""


def _execute(
    machine: Machine, program: TileProgram, function: ir.Operation, part: GridPart | None
) -> int:
    """Runs all CTAs, or those of a part, in lockstep where they do the same; returns how many
    followed another one."""
    options = machine.options
    repeats = options.repeats if part is None else None
    if not eligible(machine):
        machine.run(lambda cta: start_cta(cta, program), part)
        return 0
    key = b"" if repeats is None else launch_key(machine, str(function))
    classes, writers = (), program.compiler.writers
    if repeats is not None and options.order_seed is not None:
        classes, known = repeats.get(key, ((), writers))
    lockstep = Repetition(machine, program, classes) if classes else Lockstep(machine, program)
    if part is not None and isinstance(lockstep, Lockstep):
        part.join(lockstep)
    try:
        start = lambda cta: start_cta(cta, program, lockstep.begin(cta))  # noqa: E731
        machine.run(start, part or lockstep)
        lockstep.finish()
    except (MachineError, NotModelled) as error:
        if lockstep.committed:
            raise Abandoned(str(error), alone=True) from None
        raise
    if isinstance(lockstep, Repetition):
        writers.adopt(known)
    elif repeats is not None:
        repeats[key] = lockstep.classes(), writers
    return lockstep.followers


def _site(writers: Writers, buffer: int, shape: tuple[int, ...], index: tuple[int, ...]) -> str:
    return writers.describe(buffer, tuple(index), shape)


def _launch_sizes(
    function: ir.Operation,
) -> tuple[tuple[int, int, int], tuple[int, int, int], int]:
    """Returns the CTAs of the grid, the CTAs of a cluster, and the threads of a CTA."""
    attributes = function.attributes
    for needed in ("tc.kernel", "tc.grid", "tc.block"):
        if needed not in attributes:
            raise IncompleteError(f"{site_of(function)}: expected the attribute {needed}, got none")
    block = integers(function, "tc.block")
    cluster = integers(function, "tc.cluster") if "tc.cluster" in attributes else []
    return _triple(integers(function, "tc.grid")), _triple(cluster), int(np.prod(block))


def _triple(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1, 1)[:3]
    return x, y, z


def _buffers(
    name: str,
    shapes: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
    inputs: Sequence[Array],
    outputs: Sequence[OutputSpec],
) -> list[Array]:
    """Copies of the inputs, then undefined results; InputError if they do not fit the kernel."""
    given = [(tuple(a.shape), a.dtype) for a in inputs]
    given += [(tuple(o.shape), np.dtype(o.dtype)) for o in outputs]
    if given != list(shapes):
        raise InputError(
            f"@{name}: expected buffers {_spell(shapes)}, got inputs and outputs {_spell(given)}"
        )
    arrays = [np.array(a, order="C") for a in inputs]
    return arrays + [each.unwritten() for each in outputs]


def _spell(buffers: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in buffers)


def _never_written(
    writers: Writers, results: Sequence[Array], first: int, site: str
) -> list[Finding]:
    findings = []
    for i, result in enumerate(results):
        holes = np.flatnonzero(writers.owner[first + i] < 0)
        if holes.size:
            where = tuple(int(n) for n in np.unravel_index(holes[0], result.shape))
            findings.append(
                Finding(
                    "error",
                    "output-never-written",
                    site,
                    f"result {i}, element {where}",
                    f"a store to {holes.size} of {result.size} elements",
                )
            )
    return findings


load_folder(__name__)

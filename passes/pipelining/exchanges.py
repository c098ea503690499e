"""Order of accesses to tiles in tensor memory that the mma and other warps access in turn, inside a
loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import defining, optional_integer
from tcir.dialect.ops.memory import SHARES
from tcir.dialect.types import TmemType
from tcir.dialect.walk import walk
from tcir.dialect.warp_map import MMA, role_of
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import ACCESSES, accumulator_of, ancestor_in

MULTIPLIES = tc.MmaOp | tc.MmaBlockScaleOp


@dataclass(frozen=True)
class Run:
    """Consecutive ops of one role in a loop's body that access the same tiles of tensor memory,
    with no other access to tensor memory between them.

    reads, writes: the tensor-memory tiles that the ops access, or the rings of these tiles
    """

    role: str
    ops: tuple[ir.OpView, ...]
    reads: frozenset[ir.Value]
    writes: frozenset[ir.Value]

    @property
    def tiles(self) -> frozenset[ir.Value]:
        """All tiles in tensor memory that the ops access."""
        return self.reads | self.writes

    def conflicts(self, other: Run) -> frozenset[ir.Value]:
        """Tiles that one of two runs writes and the other run accesses, so that the order of the
        runs matters."""
        return self.writes & other.tiles | other.writes & self.tiles

    def ends(self, tiles: frozenset[ir.Value]) -> int:
        """Number of accesses of the run up to and including the last access to any of `tiles`."""
        every = [tile for op in self.ops for _, tile, _ in accesses(op)]
        return max((n + 1 for n, tile in enumerate(every) if tile in tiles), default=0)

    @property
    def stores(self) -> bool:
        """Whether the run stores registers to tensor memory."""
        every = (inner for op in self.ops for inner in walk(op))
        return any(isinstance(op, tc.TmemStOp | tc.TmemStWordsOp) for op in every)


@dataclass(frozen=True)
class Edge:
    """An ordering: run `after` of a loop waits for run `before` of the same iteration or, with
    `carried`, of the previous iteration. The warps of `before` arrive after their last access to a
    tile for which the order matters, even if other accesses of the run follow; a commit follows all
    products."""

    before: Run
    after: Run
    carried: bool


def runs_of(loop: scf.ForOp) -> list[Run]:
    """The runs of a loop's body, in program order."""
    found: list[Run] = []
    for op in loop.body:
        if (run := _run_of(op)) is None:
            continue
        if found and found[-1].role == run.role and found[-1].tiles & run.tiles:
            last = found.pop()
            run = Run(run.role, (*last.ops, op), last.reads | run.reads, last.writes | run.writes)
        found.append(run)
    return found


def _run_of(op: ir.OpView) -> Run | None:
    """An op as a run; None if it accesses no tensor memory."""
    found = list(accesses(op))
    roles = {role for role, _, _ in found}
    if not roles:
        return None
    if len(roles) > 1:
        raise match_failure(
            op,
            f"expected an op whose accesses to tensor memory are of one role, got those of "
            f"{' and '.join(sorted(roles))}",
        )
    reads = frozenset(tile for _, tile, writes in found if not writes)
    writes = frozenset(tile for _, tile, writes in found if writes)
    return Run(roles.pop(), (op,), reads, writes)


def handovers_of(block: ir.Block) -> list[tuple[Run, Run]]:
    """Pairs of loops over sub-partitions that belong to different roles, in a block after its loops
    with products. The second loop of a pair reads tiles that the first has written."""
    found: list[tuple[Run, Run]] = []
    written: list[Run] = []
    for op in block:
        roles = {role for role, _, _ in accesses(op)}
        if MMA in roles:
            written = []
        elif roles and (run := _run_of(op)):
            found += [
                (before, run)
                for before in written
                if before.role != run.role and before.writes & run.reads
            ]
            written.append(run)
    return found


def edges_of(runs: list[Run]) -> list[Edge]:
    """The fewest edges that order every two conflicting runs of different roles, in the same
    iteration and in the next one.

    A run is ordered after another if a path leads to it: along the program order of a role, and
    along edges. Pairs of near runs are treated first, so an edge is added only if no path of
    shorter edges already orders the two runs.
    """
    edges: list[Edge] = []
    count = len(runs)
    for distance in range(1, count):
        for first in range(count):
            after = first + distance
            a, b = runs[first], runs[after % count]
            if a.role != b.role and a.conflicts(b) and not _leads(runs, edges, first, after):
                edges.append(Edge(a, b, after >= count))
    return edges


def reuses_of(runs: list[Run]) -> list[Edge]:
    """Edges from products that read A in columns of tensor memory to products that write the same
    columns, because two tiles share them. They are needed because the ISA does not guarantee that
    such products are executed in order."""
    return [
        Edge(a, b, second <= first)
        for first, a in enumerate(runs)
        for second, b in enumerate(runs)
        if a.role == b.role == MMA and any(map(_share, product(a.reads, b.writes)))
    ]


def unordered_of(
    around: scf.ForOp, loop: scf.ForOp, runs: list[Run], edges: list[Edge]
) -> ir.OpView | None:
    """An access to tensor memory in the body of `around`, outside `loop`, that conflicts with a run
    of `loop` and that no path of waits orders before the next execution of `loop`; None if there is
    none.

    After the access, its role continues with the role's first run in `loop`, and from there the
    path follows the `edges` of the `runs` of `loop`. The opposite order, after the last iteration
    of `loop`, is established by the commits and handovers after the loop.
    """
    for op in around.body:
        if ancestor_in(loop, around.body) == op or (last := _run_of(op)) is None:
            continue
        first = next((n for n, run in enumerate(runs) if run.role == last.role), None)
        for number, run in enumerate(runs):
            if run.role == last.role or not last.conflicts(run):
                continue
            if first is None or first > number or not _leads(runs, edges, first, number):
                return op
    return None


def _share(tiles: tuple[ir.Value, ir.Value]) -> bool:
    """Whether two tiles have columns in common."""
    numbers = [optional_integer(tile.owner.opview, SHARES) for tile in tiles]
    return tiles[0] != tiles[1] and numbers[0] is not None and numbers[0] == numbers[1]


def _leads(runs: list[Run], edges: list[Edge], first: int, last: int) -> bool:
    """Whether a path leads from run `first` to run `last`, counted over two iterations: from its
    last access to a tile of both on."""
    count = len(runs)
    start = runs[first % count]
    end = start.ends(start.conflicts(runs[last % count]))
    reached = {first}
    for number in range(first + 1, last + 1):
        run = runs[number % count]
        for earlier in reached:
            before = runs[earlier % count]
            edge = Edge(before, run, earlier // count != number // count)
            late = (
                earlier != first or before.role == MMA or before.ends(before.conflicts(run)) >= end
            )
            if before.role == run.role or (edge in edges and late):
                reached.add(number)
                break
    return last in reached


def tile_of(value: ir.Value) -> ir.Value:
    """The tile that is accessed, or its ring."""
    tile = accumulator_of(value)
    slot = defining(tile, tc.SlotOp)
    return tile if slot is None else slot.ring


def accesses(op: ir.OpView) -> Iterator[tuple[str, ir.Value, bool]]:
    """Yields each access to tensor memory in an op: the role, the tile, and whether the access
    writes."""
    for inner in walk(op):
        role = role_of(inner)
        if isinstance(inner, MULTIPLIES):
            yield role, tile_of(inner.d), True
            if isinstance(inner.a.type, TmemType):
                yield role, tile_of(inner.a), False
        elif isinstance(inner, ACCESSES):
            loads = isinstance(inner, tc.TmemLdOp | tc.TmemLdWordsOp)
            yield role, tile_of(inner.source if loads else inner.target), not loads

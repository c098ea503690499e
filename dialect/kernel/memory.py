"""Rules about a kernel's tensor and shared memory: budgets, plan, lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, pairwise

from tcir._mlir import ir
from tcir.dialect.attributes import integer, optional_integer
from tcir.dialect.kernel.view import (
    LAUNCH,
    Found,
    KernelView,
    attribute_of,
    verify_in_kernel,
)
from tcir.dialect.limits import SMEM_BYTES, TMEM_COLUMNS
from tcir.dialect.ops.memory import (
    SHARES,
    TmemAllocOp,
    TmemDeallocOp,
    TmemRelinquishOp,
    TmemTileOp,
    first_columns,
)
from tcir.dialect.types import tensor_columns

# --- tensor memory ---------------------------------------------------------------------------


@verify_in_kernel(
    "tmem-budget",
    "PTX ISA 9.7.16.1",
    "the kernel needs {got} columns of tensor memory at once ({parts}), at most {most}: use a "
    "smaller N tile or fewer stages",
)
def _(kernel: KernelView) -> Found:
    allocations = kernel.of(TmemAllocOp, TmemDeallocOp)
    live: dict[ir.Value, int] = {}
    for op in allocations:
        if isinstance(op, TmemAllocOp):
            live[op.base] = integer(op, "columns")
            if sum(live.values()) > TMEM_COLUMNS:
                yield op, _budget(list(live.values()))
        else:
            live.pop(op.base, None)
    tiles = kernel.of(TmemTileOp)
    if not allocations and tiles:
        places, got = first_columns(tiles)
        if got > TMEM_COLUMNS:
            ends = [*places[1:], got]
            yield tiles[-1], _budget([b - a for a, b in zip(places, ends, strict=True) if b > a])


def _budget(parts: list[int]) -> Mapping[str, object]:
    return {"got": sum(parts), "parts": " + ".join(map(str, parts)), "most": TMEM_COLUMNS}


@verify_in_kernel(
    "tmem-growth",
    "PTX ISA 9.7.16.7",
    "an allocation must not be larger than an earlier one of the CTA ({earlier} columns), got "
    "{got}; allocate the largest first",
)
def _(kernel: KernelView) -> Found:
    allocations = kernel.of(TmemAllocOp)
    for earlier, later in pairwise(allocations):
        if integer(later, "columns") > integer(earlier, "columns"):
            yield later, {"earlier": integer(earlier, "columns"), "got": integer(later, "columns")}


@verify_in_kernel(
    "tmem-relinquished",
    "PTX ISA 9.7.16.7",
    "no allocation may follow tc.tmem_relinquish, got one of {got} columns: the CTA gave the "
    "right up",
)
def _(kernel: KernelView) -> Found:
    relinquished = False
    for op in kernel.of(TmemAllocOp, TmemRelinquishOp):
        if relinquished and isinstance(op, TmemAllocOp):
            yield op, {"got": integer(op, "columns")}
        relinquished = relinquished or isinstance(op, TmemRelinquishOp)


@verify_in_kernel(
    "tmem-leak",
    "PTX ISA 9.7.16.7",
    "the allocation of {got} columns has no tc.tmem_dealloc: the next CTA on the SM would wait "
    "for ever",
)
def _(kernel: KernelView) -> Found:
    freed = [d.base for d in kernel.of(TmemDeallocOp)]
    for allocation in kernel.of(TmemAllocOp):
        if allocation.base not in freed:
            yield allocation, {"got": integer(allocation, "columns")}


@verify_in_kernel(
    "tmem-double-free",
    "PTX ISA 9.7.16.7",
    "the allocation of {got} columns is freed more than once",
)
def _(kernel: KernelView) -> Found:
    freed: list[ir.Value] = []
    for op in kernel.of(TmemDeallocOp):
        if op.base in freed:
            yield op, {"got": integer(op, "columns")}
        freed.append(op.base)


@verify_in_kernel(
    "tmem-warp",
    "CUTLASS, cute/arch/tmem_allocator_sm100.hpp",
    "tensor memory must be allocated, freed and relinquished by one warp ({want}), got {got}: two "
    "warps that allocate at once can block each other",
)
def _(kernel: KernelView) -> Found:
    want: ir.Attribute | None = None
    for op in kernel.of(TmemAllocOp, TmemDeallocOp, TmemRelinquishOp):
        got = op.attributes.get("warp", None)
        if isinstance(op, TmemAllocOp) and want is None:
            want = got
        if want is not None and got != want:
            yield op, {"want": want, "got": got or "no warp"}


@verify_in_kernel(
    "tmem-overlap",
    "tc",
    "columns [{begin}, {end}) overlap another tile's [{other_begin}, {other_end}) of the same "
    "allocation",
)
def _(kernel: KernelView) -> Found:
    planned = [t for t in kernel.of(TmemTileOp) if t.base is not None]
    for one, two in combinations(planned, 2):
        a, b = _columns(one), _columns(two)
        number = optional_integer(one, SHARES)
        apart = number is None or number != optional_integer(two, SHARES)
        if apart and one.base == two.base and a.start < b.stop and b.start < a.stop:
            yield two, _overlap(a, b)


@verify_in_kernel(
    "tmem-shares",
    "tc",
    "a tile has at most the columns of the first with its number, {most}, got {got}: it has the "
    "last of these; swap the two",
)
def _(kernel: KernelView) -> Found:
    first: dict[int, int] = {}
    for tile in kernel.of(TmemTileOp):
        number, got = optional_integer(tile, SHARES), tensor_columns(tile.tile.type)
        if number is not None and got > (most := first.setdefault(number, got)):
            yield tile, {"most": most, "got": got}


def _columns(tile: TmemTileOp) -> range:
    begin = integer(tile, "column")
    return range(begin, begin + tensor_columns(tile.tile.type))


def _overlap(a: range, b: range) -> Mapping[str, object]:
    return {"begin": b.start, "end": b.stop, "other_begin": a.start, "other_end": a.stop}


# --- shared memory ---------------------------------------------------------------------------


def _objects(kernel: KernelView) -> list[ir.OpView]:
    """The ops whose results are in shared memory."""
    return [site.op for site in kernel.sites if site.traits.in_shared]


def _placed(kernel: KernelView) -> list[tuple[ir.OpView, range]]:
    """Planned shared objects with their bytes."""
    places = []
    for op in _objects(kernel):
        if "offset" in op.attributes:
            begin = integer(op, "offset")
            places.append((op, range(begin, begin + op.nbytes)))
    for op in kernel.of(TmemAllocOp):
        if "address_slot" in op.attributes:
            begin = integer(op, "address_slot")
            places.append((op, range(begin, begin + 4)))
    return places


@verify_in_kernel(
    "smem-budget",
    LAUNCH,
    "the kernel needs {got} bytes of shared memory, a CTA has at most {most} (227 KB): use fewer "
    "stages or smaller tiles",
)
def _(kernel: KernelView) -> Found:
    got = sum(op.nbytes for op in _objects(kernel))
    if got > SMEM_BYTES:
        yield kernel.func, {"got": got, "most": SMEM_BYTES}


@verify_in_kernel(
    "smem-bytes",
    "tc",
    "tc.smem_bytes must be an integer that covers every planned object, in [{least}, {most}], got "
    "{got}",
)
def _(kernel: KernelView) -> Found:
    least = max((place.stop for _, place in _placed(kernel)), default=0)
    got = attribute_of(kernel, "tc.smem_bytes")
    if not least and got == "none":
        return
    if not isinstance(got, ir.IntegerAttr) or not least <= got.value <= SMEM_BYTES:
        yield kernel.func, {"least": least, "most": SMEM_BYTES, "got": got}


@verify_in_kernel(
    "smem-overlap",
    "tc",
    "bytes [{begin}, {end}) of shared memory overlap another object's [{other_begin}, {other_end})",
)
def _(kernel: KernelView) -> Found:
    for (_one, a), (two, b) in combinations(_placed(kernel), 2):
        if a.start < b.stop and b.start < a.stop:
            yield two, _overlap(a, b)


@verify_in_kernel(
    "planned",
    "tc",
    "memory is planned for all of a kernel or for nothing: this op has no {want}, others have a "
    "place",
)
def _(kernel: KernelView) -> Found:
    shared = _objects(kernel)
    tiles = kernel.of(TmemTileOp)
    without = [(op, "offset") for op in shared if optional_integer(op, "offset") is None]
    without += [(op, "base and column") for op in tiles if op.base is None]
    if without and len(without) < len(shared) + len(tiles):
        yield from ((op, {"want": want}) for op, want in without)

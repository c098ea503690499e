"""Rules of kernels for warps: cp.async, fragments as whole matrices, mma.sync, stores.

At this level a fragment is a matrix; its distribution over threads matters only at lower levels.
Without roles one agent executes all threads of the CTA and has the whole fragment. Its copies then
form groups like those of one thread. With roles, each warp is an agent and has its part of the
fragment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers, string, unsigned_operands
from tcir.dialect.fragments import share, warp_origin
from tcir.dialect.warp_types import WALK
from tcir.errors import IncompleteError
from tcir.interp.tensor.arith import convert
from tcir.interp.tile.addresses import TileLayout
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, execute
from tcir.interp.tile.loads import store_elements
from tcir.interp.tile.movement import segments
from tcir.interp.tile.values import MemRef, Site, SmemTile, StagedTile, Stored
from tcir.interp.tile.wgmma import settled
from tcir.interp.types import Array, dtype_of
from tcir.machine.memory.cp_async import ALL_LANES
from tcir.machine.numerics.warp_mma import generation, warp_mma

_PTX = {"f16": "f16", "bf16": "bf16", "f32": "tf32", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2",
        "i8": "s8"}  # fmt: skip


def _box(
    frame: Frame, tensor: MemRef, first: list[int], extent: tuple[int, int], tails: str, site: Site
) -> tuple[Array, Array]:
    """Address of every element of a box over the last two dimensions, and which are inside.

    MachineError if the box leaves the tensor in a dimension that `tails` does not name.
    """
    *batch, row, column = first
    rows = row + np.arange(extent[0], dtype=np.int64)[:, None]
    columns = column + np.arange(extent[1], dtype=np.int64)[None, :]
    height, width = tensor.shape[-2:]
    inside_rows, inside_columns = (rows >= 0) & (rows < height), (columns >= 0) & (columns < width)
    for name, inside in (("outer", inside_rows), ("inner", inside_columns)):
        if name not in tails.split() and not inside.all():
            raise frame.cta_run.error(
                "tile-outside-tensor",
                f"expected a tile inside {list(tensor.shape)}, since tails does not name {name!r}, "
                f"got {list(extent)} from {first}",
                site,
            )
    plane = batch[0] * height * width if batch else 0
    if batch and not 0 <= batch[0] < tensor.shape[0]:
        raise frame.cta_run.error("bad-batch", f"expected a batch below {tensor.shape[0]}", site)
    addresses = tensor.address + (plane + rows * width + columns) * tensor.dtype.itemsize
    return addresses, inside_rows & inside_columns


@execute(tc.CpAsyncOp)
def cp_async(compiler: Compiler, op: tc.CpAsyncOp) -> Step:
    (tensor_,), indices_, (tile_,) = segments(compiler, op)
    width, tails = integer(op, "width"), string(op, "tails")
    site, sequential = compiler.site(op), compiler.sequential

    def copy(frame: Frame) -> Blocking:
        v = frame.values
        tile: StagedTile = v[tile_]
        layout = tile.layout
        extent = (layout.mn, layout.k) if layout.k_major else (layout.k, layout.mn)
        sources, inside = _box(frame, v[tensor_], [v[i] for i in indices_], extent, tails, site)
        targets = layout.offsets() if layout.k_major else layout.offsets().T
        per = width // layout.element_bytes
        first = np.s_[:, ::per]
        read = np.add.reduceat(inside, np.arange(0, extent[1], per), axis=1) * layout.element_bytes
        queue = frame.agent.cp_async
        queue.copy(
            ALL_LANES,
            tile.base + targets[first].ravel(),
            sources[first].ravel(),
            width,
            read.ravel().astype(np.int64),
            site=site,
        )
        if sequential:
            yield from queue.wait(ALL_LANES, None, site=site)

    return copy


@execute(tc.CpAsyncCommitOp)
def cp_async_commit(compiler: Compiler, op: tc.CpAsyncCommitOp) -> Step:
    return lambda frame: frame.agent.cp_async.commit(ALL_LANES)


@execute(tc.CpAsyncWaitOp)
def cp_async_wait(compiler: Compiler, op: tc.CpAsyncWaitOp) -> Step:
    pending, site = integer(op, "pending"), compiler.site(op)

    def wait(frame: Frame) -> Blocking:
        yield from frame.agent.cp_async.wait(ALL_LANES, pending, site=site)

    return wait


@dataclass(frozen=True)
class AccumulatorPart:
    """The part of an accumulator that an agent has: its shape, and its first row and column."""

    shape: tuple[int, int]
    origin: tuple[int, int] = (0, 0)

    def moved(self, first: list[int]) -> list[int]:
        """Returns the indices of the part's first element, given those of the accumulator's first
        element.
        """
        *batch, row, column = first
        return [*batch, row + self.origin[0], column + self.origin[1]]


def held_by(compiler: Compiler, kind: tc.FragmentType) -> Callable[[Frame], AccumulatorPart]:
    """Returns the part of a fragment of C, or of its rows, that an agent has: all of it, or the
    part of a warp if the kernel has roles.
    """
    rows, columns = kind.shape
    everything = AccumulatorPart((rows, columns))
    if "tc.warps" not in compiler.attributes:
        return lambda frame: everything
    warps_m, warps_n = ir.DenseI64ArrayAttr(compiler.attributes["tc.warps"])
    warps = (warps_m, warps_n)
    mine = share(kind.atom, kind.operand, kind.shape, warps)
    parts = [
        AccumulatorPart((mine.rows, mine.columns), warp_origin(kind.operand, mine, warps, warp))
        for warp in range(warps_m * warps_n)
    ]
    return lambda frame: parts[frame.warp] if frame.in_role else everything


@execute(tc.ZeroFragmentOp)
def zero_fragment(compiler: Compiler, op: tc.ZeroFragmentOp) -> Step:
    part = held_by(compiler, op.fragment.type)
    return compiler.assigns(op, lambda frame: np.zeros(part(frame).shape, np.uint32))


@execute(tc.AddFragmentOp)
def add_fragment(compiler: Compiler, op: tc.AddFragmentOp) -> Step:
    a_, b_ = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)

    def add(frame: Frame) -> None:
        a, b = (settled(frame, each, site).view(np.float32) for each in (a_, b_))
        with np.errstate(all="ignore"):
            frame.values[result] = (a + b).view(np.uint32)

    return add


@execute(tc.LoadFragmentOp)
def load_fragment(compiler: Compiler, op: tc.LoadFragmentOp) -> Step:
    (tile_,), result = compiler.operands(op), compiler.result(op)
    first, columns = integer(op, "k"), op.operation.results[0].type.shape[1]
    site = compiler.site(op)

    def load(frame: Frame) -> None:
        tile: StagedTile | SmemTile = frame.values[tile_]
        layout = tile.layout
        if isinstance(layout, TileLayout):
            offsets = layout.elements(tile.base, first, columns)
        else:
            offsets = tile.base + layout.offsets()[:, first : first + columns]
        raw = frame.agent.memory.load("shared", offsets.ravel(), layout.element_bytes, site=site)
        codes = np.ascontiguousarray(raw).view(f"u{layout.element_bytes}")
        frame.values[result] = codes.reshape(offsets.shape)

    return load


@execute(tc.MmaSyncOp)
def mma_sync(compiler: Compiler, op: tc.MmaSyncOp) -> Step:
    a_, b_, c_ = compiler.operands(op)
    result = compiler.result(op)
    a_type, b_type, c_type = (str(v.type.element) for v in op.operation.operands)
    a_name, b_name = (
        "u8" if plain else _PTX[kind]
        for kind, plain in zip((a_type, b_type), unsigned_operands(op), strict=True)
    )
    d_type = "s32" if c_type == "i32" else "f32"
    if "tc.target" not in compiler.attributes:
        raise IncompleteError(f"{compiler.site(op)}: expected a kernel with tc.target, got none")
    part = generation(ir.StringAttr(compiler.attributes["tc.target"]).value)

    def multiply(frame: Frame) -> None:
        v = frame.values
        frame.agent.machine.counters.products += v[a_].size * v[b_].shape[0]
        v[result] = warp_mma(
            v[a_], v[b_], v[c_],
            a_type=a_name, b_type=b_name, d_type=d_type, part=part,
        )  # fmt: skip

    return multiply


def walk_of(
    op: tc.StoreFragmentOp | tc.StoreFragmentStagedOp | tc.FragmentEpilogueOp,
) -> tuple[int, int] | None:
    """Numbers of rows and columns of the images, if the fragment's rows are pixels; None if they
    are rows of a matrix.
    """
    if WALK not in op.attributes:
        return None
    y, x = integers(op, WALK)
    return y, x


def pixels(positions: Array | int, walk: tuple[int, int]) -> list[Array]:
    """Image n, row p and column q of pixels, given by their positions in the order of the
    fragment's rows.
    """
    rows, q = np.divmod(positions, walk[1])
    n, p = np.divmod(rows, walk[0])
    return [n, p, q]


def _walked(tensor: MemRef, first: int, count: int, walk: tuple[int, int]) -> tuple[Array, Array]:
    """For `count` positions on a walk, the rows of the matrix of pixels, and a mask of the
    positions inside the images."""
    at = pixels(first + np.arange(count, dtype=np.int64)[:, None], walk)
    images, height, width = tensor.shape[-4:-1]
    n, p, q = at
    return (n * height + p) * width + q, (n < images) & (p < height) & (q < width)


@execute(tc.StoreFragmentOp)
def store_fragment(compiler: Compiler, op: tc.StoreFragmentOp) -> Step:
    (fragment_,), (tensor_,), indices_ = segments(compiler, op)
    tails, site, written = string(op, "tails"), compiler.site(op), _writer(compiler, op)
    dtype = dtype_of(op.fragment.type.element)
    part, walk = held_by(compiler, op.fragment.type), walk_of(op)

    def store(frame: Frame) -> None:
        v = frame.values
        target: MemRef = v[tensor_]
        total = settled(frame, fragment_, site).view(dtype)
        at = part(frame).moved([v[i] for i in indices_])
        if walk is None:
            addresses, inside = _box(frame, target, at, total.shape, tails, site)
        else:
            matrix = replace(target, shape=(prod(target.shape[:-1]), target.shape[-1]))
            *part_, first, column = at
            rows, kept = _walked(target, first, total.shape[0], walk)
            rows = rows + sum(part_) * prod(target.shape[-4:-1])
            addresses, inside = _box(frame, matrix, [0, column], (1, total.shape[1]), tails, site)
            pitch = target.shape[-1] * target.dtype.itemsize
            addresses, inside = addresses + rows * pitch, inside & kept
        written(target, total, addresses, inside, at[-1], frame)

    return store


@execute(tc.StoreFragmentGroupOp)
def store_fragment_group(compiler: Compiler, op: tc.StoreFragmentGroupOp) -> Step:
    (fragment_,), (tensor_,), (end_,), indices_ = segments(compiler, op)
    tails, site, written = f"outer {string(op, 'tails')}", compiler.site(op), _writer(compiler, op)
    dtype, part = dtype_of(op.fragment.type.element), held_by(compiler, op.fragment.type)

    def store(frame: Frame) -> None:
        v = frame.values
        total = settled(frame, fragment_, site).view(dtype)
        at = part(frame).moved([v[i] for i in indices_])
        addresses, inside = _box(frame, v[tensor_], at, total.shape, tails, site)
        rows = at[-2] + np.arange(len(total), dtype=np.int64)[:, None]
        written(v[tensor_], total, addresses, inside & (rows < v[end_]), at[-1], frame)

    return store


def _writer(compiler: Compiler, op: ir.OpView) -> Callable[..., None]:
    """A function that stores the numbers of a fragment that are inside a tensor."""
    site, writers = compiler.site(op), compiler.writers

    def write(
        target: MemRef, total: Array, addresses: Array, inside: Array, column: int, frame: Frame
    ) -> None:
        elements = (addresses[inside] - target.address) // target.dtype.itemsize
        if not elements.size:  # all of a warp's part may be outside
            return
        data = convert(total, target.dtype)[inside]
        stored = Stored(frame.cta.index, 0, column, site)
        store_elements(frame, writers, target, elements[:, None], data, stored)

    return write

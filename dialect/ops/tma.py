"""TMA tensor maps and loads."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import (
    constant_of,
    defining,
    integer,
    integers,
    not_arrays,
    optional_integer,
    string,
)
from tcir.dialect.cta_pair import PAIR, cta_group_of, wrong_group
from tcir.dialect.limits import (
    QUARTER_LANES,
    SWIZZLE_ATOM_ROWS,
    SWIZZLE_SPANS,
    TMA_BOX,
    TMA_CHANNELS,
    TMA_CORNER,
    TMA_DIM,
    TMA_ELEMENT_STRIDE,
    TMA_HALO,
    TMA_INNER_BOX_MULTIPLE,
    TMA_OFFSET,
    TMA_PIXELS,
    TMA_RANK,
    TMA_STRIDE,
    TMA_W_OFFSET,
    TMA_WIDE_CORNER,
    TMA_WIDE_PIXELS,
    TMA_WIDE_SWIZZLES,
    Legal,
)
from tcir.dialect.multicast import wrong_mask
from tcir.dialect.operation import Names, Op
from tcir.dialect.rules import Broken, one_of, verify
from tcir.dialect.types import MbarrierType, SmemType, TensorMapType, element_bytes

MAP_ELEMENTS = ("f16", "bf16", "f32", "i32")
"""Element types with a tensor-map type of their own."""
BYTE_ELEMENTS = ("i8", "f8E4M3FN", "f8E5M2", "f8E8M0FNU")
"""Element types that a tensor map holds as units of ``dtype``."""
UNITS = {"u8": (8, 8), "u4_align16b": (4, 8), "u6_align16b": (6, 8)}
"""``dtype``: bits of a unit in global and in shared memory (CUDA driver API, CUtensorMapDataType).
The padded types turn 16 packed elements into 16 bytes; the remaining bytes are undefined."""
PADDED = ("u4_align16b", "u6_align16b")
PADDED_UNITS = 128
"""Units of the inner box, and divisor of the inner extent, of a padded type (driver API)."""
PADDED_STRIDE = 32
"""Divisor of a padded type's strides, bytes (driver API)."""


EVICT, EVICTIONS = "evict", ("first", "last")
"""Attribute of a map, and its values."""
APART = "tc.apart"
"""Unit attribute of the loads of a tile whose readers come later in an iteration than those of the
other tiles: it gets barriers of its own (place-barriers)."""


class MakeTensorMapOp(Op, name="make_tensor_map"):
    """Makes the TMA descriptor of a kernel argument; the innermost dimension is first, as in the
    driver's call.

    ``mode`` is ``"tiled"``, ``"im2col"``, ``"im2col_w"`` or ``"im2col_w128"``. ``dims`` are in
    elements, ``strides`` in bytes and without the innermost dimension; ``element_strides`` and
    ``box`` (for mode tiled) are in elements. For im2col, ``box`` is ``[channels_per_pixel,
    pixels_per_column]`` and ``corners`` is ``[lower w, lower h, upper w, upper h]``. For tensors of
    another rank ``corners`` is the lower corner, then the upper corner, each of ``rank - 2``
    numbers; for tiled it is empty. For im2col_w (PTX ISA 5.5.5) the box traverses W, then N, at the
    row of the coordinates, and ``corners`` is ``[lower w, upper w]``; for im2col_w128 it has 128
    pixels, and ``box`` is ``[channels_per_pixel, 128]``. ``swizzle`` has the values of
    ``!tc.smem``. Out-of-bounds elements read as zero (PTX ISA 5.5).

    A tensor of bytes has the attribute ``dtype``. It is ``"u8"``, or ``"u4_align16b"`` or
    ``"u6_align16b"`` for packed elements of 4 or 6 bits; ``dims`` and ``box`` then count elements,
    16 of which take 16 bytes in shared memory.

    ``evict``, if present, is the L2 eviction priority of the loaded data (``.L2::cache_hint``):
    ``"last"`` evicts it after other data, ``"first"`` before.
    """

    example = """
    func.func @example(%x: memref<1x56x56x64xf16>) {
      %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
          strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
          element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
          : (memref<1x56x56x64xf16>) -> !tc.tensor_map
      return
    }
    """
    form = "{tensor} {mode}"

    tensor: ext.Operand[ir.MemRefType]
    mode: ir.StringAttr
    dims: Any
    strides: Any
    box: Any
    element_strides: Any
    corners: Any
    swizzle: ir.StringAttr
    map: ext.Result[TensorMapType] = ext.result(default_factory=TensorMapType.get)


class TmaLoadOp(
    Op, name="tma_load", issued_by="thread", role="producer", completed_by="tc.mbarrier_wait"
):
    """``cp.async.bulk.tensor`` from global to shared memory: loads one box at ``coords`` (innermost
    coordinate first, signed).

    The box fills consecutive rows of ``tile`` from row ``row`` (see ``!tc.smem``). ``offsets`` are
    the im2col tap offsets ``[w, h]`` (dynamic values, empty for tiled). With ``signal`` the load is
    asynchronous and counts its bytes on that mbarrier (PTX ISA 9.7.9.27).

    For an im2col_w128 map ``offsets`` is ``[w]``, which moves the bounding box and the first pixel,
    and ``halo`` is the number of additional pixels after each 32 of the traversal: they fill rows
    after the box's 128, pixel k of the four groups in rows ``128 + 4 k`` to ``128 + 4 k + 3``.
    Details that PTX shows only in figures are the assumptions ``im2col_w…``. For an im2col_w map
    ``halo`` is the number of additional pixels after the last one of the box, in the rows that
    follow.

    If the map has two dimensions, the box has one row, and there are five coordinates (a column and
    four rows), the load gathers these four rows (``tile::gather4``).

    With ``cta_group = 2`` the bytes count on the mbarrier at the place of ``signal`` in the shared
    memory of the pair's leader.

    With ``cta_mask`` each CTA of the mask gets the box at the place of ``tile`` in its own shared
    memory, and counts the bytes on its own mbarrier at the place of ``signal``
    (``.multicast::cluster``), or, in a CTA pair, on the mbarrier of the pair's leader. A mask has a
    bit for each rank of the cluster; the attribute may also be an array with a mask for each CTA.
    Without ``tc.async`` all CTAs of the cluster execute the op together.
    """

    example = """
    !tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
    func.func @example(%x: memref<1x56x56x64xf16>, %tile: !tile, %full: !tc.mbarrier, %i: index) {
      %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
          strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
          element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
          : (memref<1x56x56x64xf16>) -> !tc.tensor_map
      "tc.tma_load"(%map, %i, %i, %i, %i, %tile, %full) {row = 96 : i64, nbytes = 4096 : i64,
          operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>}
          : (!tc.tensor_map, index, index, index, index, !tile, !tc.mbarrier) -> ()
      return
    }
    """

    map: ext.Operand[TensorMapType]
    coords: Sequence[ext.Operand[ir.IndexType]]
    offsets: Sequence[ext.Operand[ir.IndexType]]
    tile: ext.Operand[SmemType]
    row: ir.IntegerAttr
    nbytes: ir.IntegerAttr
    signal: ext.Operand[MbarrierType] | None = None

    @staticmethod
    def form(n: Names) -> str:
        """The short printed form of the op, without absent operands and attributes."""
        offsets = f" offsets=[{n['offsets']}]" if n["offsets"] else ""
        signal = f" signal {n['signal']}" if n["signal"] else ""
        target = f"{n['tile']}[row={n['row']}]"
        return f"{n['map']}[{n['coords']}]{offsets} -> {target}{signal} nbytes={n['nbytes']}"


def box_rows(op: MakeTensorMapOp) -> int:
    """Number of rows that one load of this map writes, each of ``box[0]`` elements."""
    box, steps = integers(op, "box"), integers(op, "element_strides")
    if string(op, "mode") != "tiled":
        return box[1]
    return prod(-(-extent // step) for extent, step in zip(box[1:], steps[1:], strict=True))


def halo_of(op: TmaLoadOp) -> int:
    """``halo``: number of additional pixels after each group of pixels. The attribute is optional,
    so the class does not declare it."""
    return optional_integer(op, "halo") or 0


def halos(mode: str) -> int:
    """Number of groups of pixels in a load of this mode, each followed by a halo."""
    return TMA_WIDE_PIXELS // QUARTER_LANES if mode == "im2col_w128" else 1


GATHERED_ROWS = 4
"""Rows of a load of mode ``tile::gather4``, each at a coordinate of its own."""


def gathers(op: TmaLoadOp) -> bool:
    """Whether the load gathers four rows, each at its own coordinate (``tile::gather4``)."""
    return _rank(op) == 2 and len(op.coords) == 1 + GATHERED_ROWS


def _load_rows(op: TmaLoadOp) -> int:
    if gathers(op):
        return GATHERED_ROWS
    return box_rows(_map(op)) + halos(string(_map(op), "mode")) * halo_of(op)


def _load_bytes(op: TmaLoadOp) -> int:
    """Bytes that a load writes, out-of-bounds part included."""
    return _load_rows(op) * inner_bytes(_map(op))


def _counted_bytes(op: TmaLoadOp) -> int:
    """Bytes that complete_tx counts: those of the load, without the gaps of a padded type."""
    read, written = unit_bits(_map(op))
    return _load_bytes(op) * read // written


def unit_bits(op: MakeTensorMapOp) -> tuple[int, int]:
    """Bits of an element as ``dims`` and ``box`` count elements: first in global memory, then in
    shared memory."""
    if "dtype" in op.attributes:
        return UNITS[string(op, "dtype")]
    width = 8 * element_bytes(op.tensor.type.element_type)
    return width, width


def map_dtype(op: MakeTensorMapOp) -> str:
    """The map's element type by its tensor-map name: the attribute ``dtype`` or, without it, the
    tensor's element type."""
    if "dtype" in op.attributes:
        return string(op, "dtype")
    element = str(op.tensor.type.element_type)
    return "s32" if element == "i32" else element


def inner_bytes(op: MakeTensorMapOp) -> int:
    """Bytes of a row of the box in shared memory."""
    return integers(op, "box")[0] * unit_bits(op)[1] // 8


def _outside(legal: Legal, values: list[int]) -> Broken:
    """The first value that is not legal, for a message."""
    bad = next((v for v in values if v not in legal), None)
    if bad is None:
        return None
    return {"legal": legal, "got": bad, "nearest": legal.nearest(bad)}


@verify(
    MakeTensorMapOp,
    "tensor",
    "CUDA driver API, cuTensorMapEncodeTiled",
    "tensor must be a static, contiguous memref of {legal}, got {got}",
    bad={"1x56x56x64xf16": "1x56x56x64xf16, strided<[200704, 3584, 64, 1], offset: 64>"},
)
def _(op: MakeTensorMapOp) -> Broken:
    type_ = op.tensor.type
    contiguous = type_.has_static_shape and type_.layout == ir.AffineMapAttr.get(
        ir.AffineMap.get_identity(type_.rank, op.context)
    )
    legal = (*MAP_ELEMENTS, *BYTE_ELEMENTS)
    if contiguous and str(type_.element_type) in legal:
        return None
    return {"legal": ", ".join(legal), "got": type_}


@verify(
    MakeTensorMapOp,
    "dtype",
    "CUDA driver API, CUtensorMapDataType",
    "a map of {element} must have dtype {legal}, got {got}: the driver has types for bytes, and "
    "for elements packed into them, but none of 8 bits with a meaning",
    bad={"1x56x56x64xf16": "1x56x56x64xi8"},
    good={"1x56x56x64xf16": "1x56x56x128xi8", 'swizzle = "128B"': 'swizzle = "128B", dtype = "u8"'},
)
def _(op: MakeTensorMapOp) -> Broken:
    element = str(op.tensor.type.element_type)
    units = ("u8", *PADDED) if element == "i8" else ("u8",)
    legal = [f'"{name}"' for name in units] if element in BYTE_ELEMENTS else ["none"]
    got = str(op.attributes.get("dtype", "none"))
    return None if got in legal else {"element": element, "legal": " or ".join(legal), "got": got}


@verify(
    MakeTensorMapOp,
    "attributes",
    "tc",
    "dims, strides, box, element_strides and corners must be array<i64>, got {got}",
    bad={"box = array<i64: 64, 32, 1, 1>": "box = [64, 32, 1, 1]"},
)
def _(op: MakeTensorMapOp) -> Broken:
    names = ("dims", "strides", "box", "element_strides", "corners")
    got = not_arrays(op, **dict.fromkeys(names))
    return None if got is None else {"got": got}


@verify(
    MakeTensorMapOp,
    "mode",
    "PTX ISA 5.5",
    "mode must be one of {legal}, got {got}",
    bad={'mode = "tiled"': 'mode = "im2col_h"'},
    good={
        'mode = "tiled"': 'mode = "im2col"',
        "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 128>",
        "corners = array<i64>": "corners = array<i64: -1, -1, -1, -1>",
    },
)
def _(op: MakeTensorMapOp) -> Broken:
    return one_of(op, "mode", TMA_RANK)


@verify(
    MakeTensorMapOp,
    "rank",
    "CUDA driver API, cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col",
    "a map of mode {mode} must have a number of dims {legal}, got {got}",
    bad={
        'mode = "tiled"': 'mode = "im2col"',
        "dims = array<i64: 64, 56, 56, 1>": "dims = array<i64: 64, 64>",
    },
)
def _(op: MakeTensorMapOp) -> Broken:
    mode, got = string(op, "mode"), len(integers(op, "dims"))
    return None if got in TMA_RANK[mode] else {"mode": mode, "legal": TMA_RANK[mode], "got": got}


@verify(
    MakeTensorMapOp,
    "lengths",
    "CUDA driver API, cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col",
    "a map of mode {mode} and rank {rank} needs {want}, got {got}",
    bad=(
        {'mode = "tiled"': 'mode = "im2col"'},
        {
            'mode = "tiled"': 'mode = "im2col"',
            "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 128>",
            "corners = array<i64>": "corners = array<i64: -1, -1>",
        },
    ),
    good={
        'mode = "tiled"': 'mode = "im2col"',
        "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 128>",
        "corners = array<i64>": "corners = array<i64: -1, -1, -1, -1>",
    },
)
def _(op: MakeTensorMapOp) -> Broken:
    mode, rank = string(op, "mode"), len(integers(op, "dims"))
    want = {
        "strides": rank - 1,
        "box": rank if mode == "tiled" else 2,
        "element_strides": rank,
        "corners": {"tiled": 0, "im2col": 2 * (rank - 2)}.get(mode, 2),
    }
    got = not_arrays(op, **want)
    if got is None:
        return None
    needs = ", ".join(f"{n} {name}" for name, n in want.items())
    return {"mode": mode, "rank": rank, "want": needs, "got": got}


@verify(
    MakeTensorMapOp,
    "dims",
    TMA_DIM.source,
    "dims must be {legal}, got {got}; nearest legal: {nearest}",
    bad={"dims = array<i64: 64, 56, 56, 1>": "dims = array<i64: 64, 56, 56, 0>"},
)
def _(op: MakeTensorMapOp) -> Broken:
    return _outside(TMA_DIM, integers(op, "dims"))


@verify(
    MakeTensorMapOp,
    "strides",
    TMA_STRIDE.source,
    "strides must be {legal} bytes, got {got}: TMA addresses global memory in units of 16 bytes; "
    "pad the rows of the tensor; nearest legal: {nearest}",
    bad={"strides = array<i64: 128": "strides = array<i64: 120"},
)
def _(op: MakeTensorMapOp) -> Broken:
    return _outside(TMA_STRIDE, integers(op, "strides"))


@verify(
    MakeTensorMapOp,
    "box",
    TMA_BOX.source,
    "box extents must be {legal}, got {got}; load several boxes; nearest legal: {nearest}",
    bad={"box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 257, 1, 1>"},
    good={"box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 256, 1, 1>"},
)
def _(op: MakeTensorMapOp) -> Broken:
    if string(op, "mode") != "tiled":
        return None
    return _outside(TMA_BOX, integers(op, "box"))


@verify(
    MakeTensorMapOp,
    "im2col-box",
    TMA_PIXELS.source,
    "{mode} box must be [channels per pixel {channels}, pixels per column {pixels}], got {got}",
    bad=(
        {
            'mode = "tiled"': 'mode = "im2col"',
            "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 1025>",
            "corners = array<i64>": "corners = array<i64: -1, -1, -1, -1>",
        },
        {
            'mode = "tiled"': 'mode = "im2col_w128"',
            "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 64>",
            "corners = array<i64>": "corners = array<i64: -1, 1>",
        },
    ),
    good={
        'mode = "tiled"': 'mode = "im2col"',
        "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 1024>",
        "corners = array<i64>": "corners = array<i64: -1, -1, -1, -1>",
    },
)
def _(op: MakeTensorMapOp) -> Broken:
    box, mode = integers(op, "box"), string(op, "mode")
    if mode == "tiled":
        return None
    fixed = mode == "im2col_w128"
    pixels: Any = TMA_WIDE_PIXELS if fixed else TMA_PIXELS
    fits = box[1] == TMA_WIDE_PIXELS if fixed else box[1] in TMA_PIXELS
    if box[0] in TMA_CHANNELS and fits:
        return None
    return {"mode": mode, "channels": TMA_CHANNELS, "pixels": pixels, "got": box}


@verify(
    MakeTensorMapOp,
    "swizzle",
    "CUDA driver API, cuTensorMapEncodeTiled",
    "swizzle must be one of {legal}, got {got}",
    bad=(
        {'swizzle = "128B"': 'swizzle = "16B"'},
        {
            'mode = "tiled"': 'mode = "im2col_w128"',
            "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 128>",
            "corners = array<i64>": "corners = array<i64: -1, 1>",
            'swizzle = "128B"': 'swizzle = "32B"',
        },
    ),
    good={
        "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 32, 32, 1, 1>",
        'swizzle = "128B"': 'swizzle = "64B"',
    },
)
def _(op: MakeTensorMapOp) -> Broken:
    wide = string(op, "mode") in TMA_HALO
    return one_of(op, "swizzle", TMA_WIDE_SWIZZLES if wide else SWIZZLE_SPANS)


@verify(
    MakeTensorMapOp,
    EVICT,
    "PTX ISA 9.7.9.18, createpolicy",
    "evict must be one of {legal}, got {got}; leave it out for the priority of others",
    bad={"i64: 64, 32, 1, 1>,": 'i64: 64, 32, 1, 1>, evict = "normal",'},
    good={"i64: 64, 32, 1, 1>,": 'i64: 64, 32, 1, 1>, evict = "last",'},
)
def _(op: MakeTensorMapOp) -> Broken:
    return one_of(op, EVICT, EVICTIONS) if EVICT in op.attributes else None


@verify(
    MakeTensorMapOp,
    "inner-box",
    "CUDA driver API, cuTensorMapEncodeTiled",
    "box[0] must be a multiple of 16 bytes and at most {span} (the span of swizzle {swizzle}), got "
    "{got} bytes; load several boxes, or take a wider swizzle",
    bad={"box = array<i64: 64, 32, 1, 1>": "box = array<i64: 72, 32, 1, 1>"},
)
def _(op: MakeTensorMapOp) -> Broken:
    swizzle, got = string(op, "swizzle"), inner_bytes(op)
    span = SWIZZLE_SPANS[swizzle]
    if got % TMA_INNER_BOX_MULTIPLE == 0 and (got <= span or swizzle == "NONE"):
        return None
    return {"span": span, "swizzle": swizzle, "got": got}


@verify(
    MakeTensorMapOp,
    "element-strides",
    TMA_ELEMENT_STRIDE.source,
    "element_strides must be {legal}, got {got}; nearest legal: {nearest}",
    bad={"element_strides = array<i64: 1, 1, 1, 1>": "element_strides = array<i64: 1, 9, 1, 1>"},
    good={"element_strides = array<i64: 1, 1, 1, 1>": "element_strides = array<i64: 1, 8, 1, 1>"},
)
def _(op: MakeTensorMapOp) -> Broken:
    return _outside(TMA_ELEMENT_STRIDE, integers(op, "element_strides"))


@verify(
    MakeTensorMapOp,
    "corners",
    "CUDA driver API, cuTensorMapEncodeIm2col",
    "corners of a rank {rank} map must be {legal}, got {got}: the descriptor has so few bits for "
    "them; nearest legal: {nearest}",
    bad={
        'mode = "tiled"': 'mode = "im2col"',
        "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 128>",
        "corners = array<i64>": "corners = array<i64: -129, -1, 127, -1>",
    },
    good={
        'mode = "tiled"': 'mode = "im2col"',
        "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 128>",
        "corners = array<i64>": "corners = array<i64: -128, -1, 127, -1>",
    },
)
def _(op: MakeTensorMapOp) -> Broken:
    rank, mode = len(integers(op, "dims")), string(op, "mode")
    if mode == "tiled":
        return None
    legal = TMA_CORNER[rank] if mode == "im2col" else TMA_WIDE_CORNER
    outside = _outside(legal, integers(op, "corners"))
    return None if outside is None else {"rank": rank, **outside}


@verify(
    MakeTensorMapOp,
    "bounding-box",
    "PTX ISA 5.5.4",
    "the im2col bounding box must not be empty, got [{low}, {high}] in dimension {dim} of "
    "{extent}: it runs from the lower corner to extent - 1 + upper corner",
    bad={
        'mode = "tiled"': 'mode = "im2col"',
        "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 128>",
        "corners = array<i64>": "corners = array<i64: 0, 0, -56, 0>",
    },
    good={
        'mode = "tiled"': 'mode = "im2col"',
        "box = array<i64: 64, 32, 1, 1>": "box = array<i64: 64, 128>",
        "corners = array<i64>": "corners = array<i64: 0, 0, -55, 0>",
    },
)
def _(op: MakeTensorMapOp) -> Broken:
    if string(op, "mode") == "tiled":
        return None
    corners, extents = integers(op, "corners"), integers(op, "dims")[1:-1]
    spatial = len(corners) // 2
    for i, extent in enumerate(extents[:spatial]):
        low, high = corners[i], extent - 1 + corners[spatial + i]
        if low > high:
            return {"low": low, "high": high, "dim": i + 1, "extent": extent}
    return None


@verify(
    MakeTensorMapOp,
    "in-tensor",
    "tc",
    "the map must stay within the tensor's {size} bytes, got {got}: TMA checks coordinates against "
    "dims only",
    bad={"dims = array<i64: 64, 56, 56, 1>": "dims = array<i64: 64, 56, 57, 1>"},
)
def _(op: MakeTensorMapOp) -> Broken:
    dims, strides = integers(op, "dims"), integers(op, "strides")
    row = -(-dims[0] * unit_bits(op)[0] // 8)
    got = row + sum((n - 1) * step for n, step in zip(dims[1:], strides, strict=True))
    size = prod(op.tensor.type.shape) * element_bytes(op.tensor.type.element_type)
    return None if got <= size else {"size": size, "got": got}


@verify(
    MakeTensorMapOp,
    "padded",
    "CUDA driver API, cuTensorMapEncodeTiled",
    'a map of dtype "{dtype}" needs dims[0] a multiple of 128, box[0] = 128 and strides that are '
    'multiples of 32 bytes, got {dim}, {box} and {strides}; pad K, or take dtype "u8" where the '
    "tensor core reads the elements packed",
)
def _(op: MakeTensorMapOp) -> Broken:
    dtype = string(op, "dtype") if "dtype" in op.attributes else "u8"
    dim, box, strides = integers(op, "dims")[0], integers(op, "box")[0], integers(op, "strides")
    fits = dim % PADDED_UNITS == 0 and box == PADDED_UNITS
    if dtype not in PADDED or (fits and all(step % PADDED_STRIDE == 0 for step in strides)):
        return None
    return {"dtype": dtype, "dim": dim, "box": box, "strides": strides}


@verify(
    TmaLoadOp,
    "map",
    "tc",
    "map must be the result of a tc.make_tensor_map of the same function, got {got}",
    bad={
        "%i: index": "%i: index, %other: !tc.tensor_map",
        '"tc.tma_load"(%map': '"tc.tma_load"(%other',
    },
)
def _(op: TmaLoadOp) -> Broken:
    return None if defining(op.map, MakeTensorMapOp) is not None else {"got": op.map}


def _map(op: TmaLoadOp) -> MakeTensorMapOp:
    return defining(op.map, MakeTensorMapOp)


def _rank(op: TmaLoadOp) -> int:
    return len(integers(_map(op), "dims"))


@verify(
    TmaLoadOp,
    "coords",
    "PTX ISA 9.7.9.27",
    "expected one coordinate per dimension of the map ({want}), or, of a map of two dimensions "
    "with a box of one row, a column and four rows, got {got}",
    bad={
        "%i, %i, %i, %i, %tile": "%i, %i, %i, %tile",
        "1, 4, 0": "1, 3, 0",
        "index, index, index, index": "index, index, index",
    },
)
def _(op: TmaLoadOp) -> Broken:
    want, got = _rank(op), len(op.coords)
    if want == got or (gathers(op) and box_rows(_map(op)) == 1):
        return None
    return {"want": want, "got": got}


@verify(
    TmaLoadOp,
    "offsets",
    "PTX ISA 9.7.9.27",
    "expected {want} offsets for a map of mode {mode} and rank {rank} (im2col: one per spatial "
    "dimension; the w modes: that of the width; tiled: none), got {got}",
    bad={
        "%i, %tile": "%i, %i, %i, %tile",
        "1, 4, 0": "1, 4, 2",
        "index, !tile": "index, index, index, !tile",
    },
)
def _(op: TmaLoadOp) -> Broken:
    mode, rank, got = string(_map(op), "mode"), _rank(op), len(op.offsets)
    want = {"tiled": 0, "im2col": rank - 2}.get(mode, 1)
    return None if want == got else {"want": want, "mode": mode, "rank": rank, "got": got}


@verify(
    TmaLoadOp,
    "offset-range",
    TMA_OFFSET[4].source,
    "im2col offsets of a rank {rank} map must be {legal}, got {got}: the instruction has so few "
    "bits for them",
)
def _(op: TmaLoadOp) -> Broken:
    values = [v for v in map(constant_of, op.offsets) if v is not None]
    if not values:
        return None
    wide = string(_map(op), "mode") in TMA_HALO
    outside = _outside(TMA_W_OFFSET if wide else TMA_OFFSET[_rank(op)], values)
    return None if outside is None else {"rank": _rank(op), **outside}


@verify(
    TmaLoadOp,
    "halo",
    "PTX ISA 9.7.9.27",
    "halo must be {legal} of a map of mode {wide} (tiled and im2col have none), got {got} of mode "
    "{mode}",
)
def _(op: TmaLoadOp) -> Broken:
    mode, got = string(_map(op), "mode"), halo_of(op)
    if got == 0 or (mode in TMA_HALO and got in TMA_HALO[mode]):
        return None
    wide = mode if mode in TMA_HALO else "im2col_w128"
    return {"legal": TMA_HALO[wide], "wide": wide, "got": got, "mode": mode}


@verify(
    TmaLoadOp,
    "element",
    "PTX ISA 5.5",
    "map and tile must have the same element type, got {map} and {tile}: TMA does not convert",
    bad={"f16": "bf16"},
)
def _(op: TmaLoadOp) -> Broken:
    source, tile = _map(op).tensor.type.element_type, op.tile.type.element
    if source == tile or (str(source) in BYTE_ELEMENTS and str(tile) == "i8"):
        return None
    return {"map": source, "tile": tile}


@verify(
    TmaLoadOp,
    "swizzle",
    "PTX ISA 5.5.7",
    "map and tile must have the same swizzle, got {map} and {tile}: the tensor core would read "
    "permuted elements",
    bad={
        '!tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B"': (
            '!tile = !tc.smem<array<i64: 128, 64>, f16, "K", "64B"'
        )
    },
)
def _(op: TmaLoadOp) -> Broken:
    source, tile = string(_map(op), "swizzle"), op.tile.type.swizzle
    return None if source == tile else {"map": source, "tile": tile}


@verify(
    TmaLoadOp,
    "row-bytes",
    "PTX ISA 5.5.7",
    "the box's innermost extent must fill a row of the tile ({span} bytes; without a swizzle and "
    "with k of one row: several), got {got}: a shorter one is packed, and its rows would not be "
    "the tile's",
    bad={"box = array<i64: 64, 32, 1, 1>": "box = array<i64: 32, 32, 1, 1>"},
)
def _(op: TmaLoadOp) -> Broken:
    type_, got = op.tile.type, inner_bytes(_map(op))
    several = type_.swizzle == "NONE" and type_.rows == type_.shape[0] and got % type_.span == 0
    return None if got == type_.span or several else {"span": type_.span, "got": got}


@verify(
    TmaLoadOp,
    "nbytes",
    "PTX ISA 9.7.9.27",
    "nbytes must be the bytes of the whole box ({want}), got {got}: complete_tx counts the "
    "out-of-bounds part too, and not the gaps of padded types",
    bad={"element_strides = array<i64: 1, 1, 1, 1>": "element_strides = array<i64: 1, 2, 1, 1>"},
    good={
        "element_strides = array<i64: 1, 1, 1, 1>": "element_strides = array<i64: 1, 2, 1, 1>",
        "nbytes = 4096": "nbytes = 2048",
    },
)
def _(op: TmaLoadOp) -> Broken:
    want, got = _counted_bytes(op), integer(op, "nbytes")
    return None if want == got else {"want": want, "got": got}


@verify(
    TmaLoadOp,
    "row-atom",
    "PTX ISA 5.5.7",
    "row must be a multiple of {atom}, got {got}: the destination of a swizzled box starts at a "
    "whole swizzle atom",
    bad={"row = 96": "row = 12"},
    good={"row = 96": "row = 8"},
)
def _(op: TmaLoadOp) -> Broken:
    atom, got = SWIZZLE_ATOM_ROWS, integer(op, "row")
    if box_rows(_map(op)) == 1 and op.tile.type.span == 128:
        return None  # one whole row, at a multiple of 128 bytes: the XOR is of absolute addresses
    return None if got % atom == 0 else {"atom": atom, "got": got}


@verify(
    TmaLoadOp,
    "rows",
    "tc",
    "the box must lie within the tile's rows [0, {rows}), got [{begin}, {end})",
    bad={"row = 96": "row = 104"},
)
def _(op: TmaLoadOp) -> Broken:
    begin, rows = integer(op, "row"), op.tile.type.rows
    end = begin + _load_bytes(op) // op.tile.type.span
    return None if begin >= 0 and end <= rows else {"rows": rows, "begin": begin, "end": end}


@verify(
    TmaLoadOp,
    "cta-group",
    "PTX ISA 9.7.9.27.5.2",
    "cta_group must be 1 or 2, got {got}: the bytes count on the CTA's own barrier, or on that of "
    "the leader of its pair; leave it out for one CTA",
    bad={"%full) {": "%full) {cta_group = 4 : i64,"},
    good={"%full) {": "%full) {cta_group = 1 : i64,"},
)
def _(op: TmaLoadOp) -> Broken:
    return wrong_group(op)


@verify(
    TmaLoadOp,
    "cta-mask",
    "PTX ISA 9.7.9.27.5.2",
    "cta_mask must be in [1, 255], a bit for each CTA of the cluster by its rank, or array<i64> of "
    "such a mask for each CTA, got {got}: without one the box goes to the CTA's own shared memory",
    bad=(
        {"%full) {": "%full) {cta_mask = 0 : i64,"},
        {"%full) {": "%full) {cta_mask = array<i64: 3, 256>,"},
        {"%full) {": '%full) {cta_mask = "all",'},
    ),
    good=(
        {"%full) {": "%full) {cta_mask = 3 : i64,"},
        {"%full) {": "%full) {cta_mask = array<i64: 5, 10, 5, 10>,"},
    ),
)
def _(op: TmaLoadOp) -> Broken:
    return wrong_mask(op)


@verify(
    TmaLoadOp,
    "pair-signal",
    "PTX ISA 9.7.9.27.5.2",
    "cta_group = 2 needs a signal: it counts the bytes on the mbarrier at that place in the "
    "leader's shared memory",
    bad={
        "%tile, %full)": "%tile)",
        "{row": "{cta_group = 2 : i64, row",
        "0, 1, 1>": "0, 1, 0>",
        "!tile, !tc.mbarrier) ->": "!tile) ->",
    },
    good={"%full) {": "%full) {cta_group = 2 : i64,"},
)
def _(op: TmaLoadOp) -> Broken:
    return {} if cta_group_of(op) == PAIR and op.signal is None else None

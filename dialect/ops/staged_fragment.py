"""Stores of fragments through shared memory, by TMA."""

from collections.abc import Sequence

from tcir._mlir import ext, ir
from tcir.dialect.attributes import defining, integer, integers, not_arrays, string
from tcir.dialect.operation import Op
from tcir.dialect.ops.tma import MakeTensorMapOp
from tcir.dialect.ops.warp import stored_types
from tcir.dialect.rules import Broken, verify
from tcir.dialect.types import RingType, SmemType, TensorMapType, element_bytes
from tcir.dialect.warp_types import WALK, FragmentType
from tcir.layout.atoms import mma_atom


class StoreFragmentStagedOp(
    Op,
    name="store_fragment_staged",
    role="consumer",
    stores="map",
    completed_by="tc.bulk_wait",
):
    """Stores an accumulator, rounded once (RNE), through tiles of shared memory by TMA.

    ``ring`` holds tiles, each with all rows of the fragment and one swizzle span of its columns;
    the tiles are used in turn, from ``slot`` on. For each tile, a warp waits until TMA has read the
    rows that the warp wrote to the tile before. With n tiles it waits for all but the last n - 1
    bulk groups (``cp.async.bulk.wait_group.read``). The warp then writes its next rows (by
    ``stmatrix`` for elements of 16 bits, in pairs for others) and executes a fence for the async
    proxy. Then one elected thread stores these rows as a box of ``map`` and closes the bulk group
    (PTX ISA 9.7.9.27). No two warps share a row, so the warps do not wait for each other. The
    indices are those of the tile's first element; elements outside the tensor are not stored.
    ``tc.bulk_wait`` completes the stores.

    With ``walk = array<i64: y, x>`` the rows are positions of a walk, as in `tc.store_fragment`; a
    warp's rows lie in one line of an image, so TMA leaves out positions that are not pixels.
    """

    example = """
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    !tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
    !ring = !tc.ring<2 : i64, !tile>
    func.func @example(%c: !c, %out: memref<500x512xf16>, %ring: !ring, %m: index, %n: index) {
      %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 512, 500>,
          strides = array<i64: 1024>, box = array<i64: 64, 16>, element_strides = array<i64: 1, 1>,
          corners = array<i64>, swizzle = "128B"} : (memref<500x512xf16>) -> !tc.tensor_map
      "tc.store_fragment_staged"(%c, %map, %ring, %m, %n) {slot = 0 : i64,
          operandSegmentSizes = array<i32: 1, 1, 1, 2>}
          : (!c, !tc.tensor_map, !ring, index, index) -> ()
      return
    }
    """

    fragment: ext.Operand[FragmentType]
    map: ext.Operand[TensorMapType]
    ring: ext.Operand[RingType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    slot: ir.IntegerAttr

    @property
    def tensor(self) -> ir.Value:
        """The global tensor that the tensor map describes."""
        return defining(self.map, MakeTensorMapOp).tensor

    @property
    def tile(self) -> SmemType:
        """The type of a tile of the ring."""
        return self.ring.type.of


_IMAGES = {
    "500x512xf16": "2x5x20x512xf16",
    "dims = array<i64: 512, 500>": "dims = array<i64: 512, 20, 5, 2>",
    "strides = array<i64: 1024>": "strides = array<i64: 1024, 20480, 102400>",
    "box = array<i64: 64, 16>": "box = array<i64: 64, 16, 1, 1>",
    "element_strides = array<i64: 1, 1>": "element_strides = array<i64: 1, 1, 1, 1>",
}
"""Changes of the example to an output of images."""


def _box(op: StoreFragmentStagedOp) -> list[int]:
    return list(integers(defining(op.map, MakeTensorMapOp), "box"))


@verify(
    StoreFragmentStagedOp,
    "map",
    "tc",
    "map must be the result of a tc.make_tensor_map of the same function, got {got}",
    bad={
        "%m: index,": "%m: index, %other: !tc.tensor_map,",
        '"tc.store_fragment_staged"(%c, %map': '"tc.store_fragment_staged"(%c, %other',
    },
)
def _(op: StoreFragmentStagedOp) -> Broken:
    return None if defining(op.map, MakeTensorMapOp) is not None else {"got": op.map}


@verify(
    StoreFragmentStagedOp,
    "operand",
    "tc",
    "expected a fragment of C, got one of {got}: operands are read from memory, not written",
    bad={'"C"': '"A"'},
)
def _(op: StoreFragmentStagedOp) -> Broken:
    got = op.fragment.type.operand
    return None if got == "C" else {"got": got}


@verify(
    StoreFragmentStagedOp,
    "element",
    "tc",
    "an accumulator of {fragment} is stored as {legal}, in tiles and a map of one type, got tiles "
    "of {tile} and a map of {map}",
    bad={'64>, f16, "K"': '64>, bf16, "K"'},
    good={'64>, f16, "K"': '64>, bf16, "K"', "500x512xf16": "500x512xbf16"},
)
def _(op: StoreFragmentStagedOp) -> Broken:
    fragment = str(op.fragment.type.element)
    legal, tile = stored_types(fragment), str(op.tile.element)
    target = str(op.tensor.type.element_type)
    if tile == target and tile in legal:
        return None
    return {"fragment": fragment, "legal": " or ".join(legal), "tile": tile, "map": target}


@verify(
    StoreFragmentStagedOp,
    "tile",
    "PTX ISA 9.7.16.10.6",
    "a tile must be K-major with the fragment's {rows} rows and one swizzle span of columns, which "
    "divides the fragment's {columns}, got {tile}: the rows of a warp must be consecutive",
    bad={"array<i64: 128, 64>": "array<i64: 64, 64>"},
    good={
        "array<i64: 128, 64>": "array<i64: 128, 32>",
        '"K", "128B">': '"K", "64B">',
        'swizzle = "128B"': 'swizzle = "64B"',
        "box = array<i64: 64, 16>": "box = array<i64: 32, 16>",
    },
)
def _(op: StoreFragmentStagedOp) -> Broken:
    (rows, columns), tile = op.fragment.type.shape, op.tile
    whole = (
        tile.shape[1] * element_bytes(tile.element) == tile.span and columns % tile.shape[1] == 0
    )
    if tile.major == "K" and whole and tile.shape[0] == rows:
        return None
    return {"rows": rows, "columns": columns, "tile": tile}


@verify(
    StoreFragmentStagedOp,
    "box",
    "PTX ISA 9.7.14.5",
    "a box must have a tile's columns and swizzle ({columns}, {swizzle}) and the {rows} rows of a "
    "warp, got {box} and {got}: each warp stores its own rows",
    bad={"box = array<i64: 64, 16>": "box = array<i64: 64, 32>"},
)
def _(op: StoreFragmentStagedOp) -> Broken:
    rows, tile = mma_atom(op.fragment.type.atom).shape[0], op.tile
    box, got = _box(op), string(defining(op.map, MakeTensorMapOp), "swizzle")
    want = [tile.shape[1], rows, *[1] * (len(box) - 2)]
    if box == want and got == tile.swizzle:
        return None
    return {
        "columns": tile.shape[1],
        "swizzle": tile.swizzle,
        "rows": rows,
        "box": box,
        "got": got,
    }


@verify(
    StoreFragmentStagedOp,
    "indices",
    "tc",
    "expected one index for each of the map's {want} dimensions, or, on a walk, a position for "
    "three of them, got {got}",
    bad={"%m, %n)": "%n)", "1, 1, 1, 2": "1, 1, 1, 1", "!ring, index, index)": "!ring, index)"},
)
def _(op: StoreFragmentStagedOp) -> Broken:
    want, got = len(_box(op)), len(op.indices)
    own = want - 2 if WALK in op.attributes else want
    return None if own == got else {"want": want, "got": got}


@verify(
    StoreFragmentStagedOp,
    "walk",
    "tc",
    "walk must be array<i64: y, x> of at least {image}, the rows and columns of the map's images, "
    "and x a multiple of the {rows} rows of a box, got {walk}: a box would have gaps",
    bad={**_IMAGES, "slot = 0 : i64,": "slot = 0 : i64, walk = array<i64: 5, 24>,"},
    good={**_IMAGES, "slot = 0 : i64,": "slot = 0 : i64, walk = array<i64: 5, 32>,"},
)
def _(op: StoreFragmentStagedOp) -> Broken:
    if WALK not in op.attributes:
        return None
    image, rows = list(op.tensor.type.shape)[-3:-1], _box(op)[1]
    if not_arrays(op, walk=2) is None and op.tensor.type.rank in (4, 5):
        y, x = integers(op, WALK)
        if y >= image[0] and x >= image[1] and x % rows == 0:
            return None
    return {"image": image, "rows": rows, "walk": op.attributes[WALK]}


@verify(
    StoreFragmentStagedOp,
    "slot",
    "tc",
    "slot must be one of the ring's {count}, got {got}",
    bad={"slot = 0": "slot = 2"},
    good={"slot = 0": "slot = 1"},
)
def _(op: StoreFragmentStagedOp) -> Broken:
    count, got = op.ring.type.count, integer(op, "slot")
    return None if 0 <= got < count else {"count": count, "got": got}

"""Metadata of sparse A operands: the k of each stored element, and the places of the metadata in
tensor memory.

A is stored as M × K/2. The metadata of a row are a stream of 4-bit selectors, lowest bits first,
with one selector per chunk of logical k:

* tf32 stores 1 of 2 elements: selector 0x4 means the lower element of the pair, 0xE the upper;
* f16 and the 8-bit kinds store 2 of 4: the selector is two 2-bit positions; the smaller position is
in the low bits;
* fp4 kinds store 4 of 8, in adjacent pairs: the same two fields are the positions of the pairs.

Sources: PTX ISA 9.7.16.10.8 (sparse matrices, selectors); CUTLASS
cute/atom/mma_traits_sm100_frag.hpp (tmem_e_frg, tmem_e_frg_ws) for the places, which PTX shows only
in figures.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.refusal import TmemError
from tcir.machine.tmem.places import a_lanes

Index = NDArray[np.int64]

CHUNK = {"tf32": 2, "f16": 4, "f8f6f4": 4, "i8": 4, "mxf8f6f4": 4, "mxf4": 8, "mxf4nvf4": 8}
"""Kind -> number of logical k that one selector covers."""

SPARSE_K = {"tf32": 16, "f16": 32, "f8f6f4": 64, "i8": 64, "mxf8f6f4": 64, "mxf4": 128,
            "mxf4nvf4": 128}  # fmt: skip
"""Kind -> logical K of one instruction."""

SELECTED = ("f16", "tf32")
"""Kinds whose metadata take one column, picked by the descriptor's sparsity selector. The others
take two, and their selector is 0."""

TWO_OF_FOUR = (0x4, 0x8, 0x9, 0xC, 0xD, 0xE)
"""Selectors of two different positions in increasing order, both fields of two bits."""

SWAPPED = (0x6,)
"""Selector 0b0110, positions 2 and 1, which PTX ISA allows as well."""

ONE_OF_TWO = {0x4: 0, 0xE: 1}


def selected(selectors: NDArray[np.integer], kind: str) -> NDArray[np.int32]:
    """Logical k of every stored element: selectors [M, chunks] -> int32 [M, K/2].

    Raises TmemError for a selector that the ISA does not allow, or for an unknown kind.
    """
    if kind not in CHUNK:
        raise TmemError("sparse kind", kind, "one of " + ", ".join(CHUNK), "PTX ISA 9.7.16.10.8")
    legal = tuple(ONE_OF_TWO) if kind == "tf32" else TWO_OF_FOUR + SWAPPED
    wrong = ~np.isin(selectors, legal)
    if wrong.any():
        row, chunk = map(int, np.argwhere(wrong)[0])
        raise TmemError(
            f"selector of row {row}, chunk {chunk}",
            hex(int(selectors[row, chunk])),
            ", ".join(hex(s) for s in sorted(legal)),
            f"kind {kind}: PTX ISA 9.7.16.10.8",
        )
    codes = selectors.astype(np.int32)
    start = CHUNK[kind] * np.arange(codes.shape[1], dtype=np.int32)
    if kind == "tf32":
        return start + (codes == 0xE).astype(np.int32)
    fields = np.stack([codes & 3, codes >> 2], axis=-1)
    if CHUNK[kind] == 8:
        fields = (2 * fields[..., None] + np.arange(2, dtype=np.int32)).reshape(*codes.shape, 4)
    out: NDArray[np.int32] = (start[:, None] + fields).reshape(len(codes), -1)
    return out


@cache
def metadata_places(
    kind: str,
    m: int = 128,
    *,
    cta_group: int = 1,
    ws: bool = False,
    selector: int = 0,
    packed: bool = False,
) -> tuple[Index, Index, Index]:
    """(lane, column, bit) of every selector's lowest bit: int64 [copies, rows of a CTA, chunks].

    The places are relative to the base address; a selector never straddles words. The selectors of
    a row are near the row's place in the data path of D. In general they are on the row's lane, in
    two columns. For f16 and tf32 they are on the 16 lanes of the row's group of 16 rows, in the one
    column that the sparsity selector picks. Data paths E and G, which have D's rows on several
    lanes, need as many copies (CUTLASS, tmem_e_frg_ws).

    `packed`: an alternative reading for the data paths that use half of the lanes (C and F, which
        no public source shows): the selectors are placed as if the rows were on lanes 0, 1, 2, ....
    """
    if kind not in CHUNK:
        raise TmemError("sparse kind", kind, "one of " + ", ".join(CHUNK), "PTX ISA 9.7.16.10.8")
    narrow = kind not in SELECTED
    if selector and (narrow or selector not in range(4)):
        raise TmemError(
            f"sparsity selector of kind {kind}",
            selector,
            "0" if narrow else "0..3",
            "PTX ISA 9.7.16.10.8.4",
        )
    lanes = a_lanes(m, cta_group=cta_group, ws=ws, sparse=True)[1][:, : m // cta_group]
    if packed:
        lanes = lanes * 0 + np.arange(lanes.shape[1])
    k = np.arange(0, SPARSE_K[kind], CHUNK[kind])
    if narrow:
        stream = 4 * (k // CHUNK[kind])
        lane, column, bit = lanes[:, :, None], stream // 32, stream % 32
    else:
        half = SPARSE_K[kind] // 2
        row = lanes[:, :, None] % 16
        lane = lanes[:, :, None] - row + row % 8 + 8 * (k // half)
        bit = k % half * (16 // half) + 16 * (row // 8)
        column = np.array(selector)
    shape = (*lanes.shape, len(k))
    places = []
    for array in (lane, column, bit):
        array = np.ascontiguousarray(np.broadcast_to(array, shape), np.int64)
        array.flags.writeable = False
        places.append(array)
    return places[0], places[1], places[2]

"""Metadata of a sparse A in registers, for mma.sp (PTX ISA 9.7.14.6) and wgmma .sp (9.7.15.6)."""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.syntax import Site
from tcir.machine import MachineError

_PAIRS = (0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110)
_SINGLES = (0b0100, 0b1110)


def contributors(chunks: int) -> int:
    """Number of lanes, of each group of four, whose registers contain the metadata; the selector
    says which lanes.
    """
    return {4: 1, 8: 2, 16: 4}[chunks]


def metadata(words: np.ndarray, bits: int, chunks: int, selector: int) -> np.ndarray:
    """The 4-bit code of every chunk, int [16, chunks], from the register e of all lanes.

    `selector` is the number of the lane, or pair of lanes, that contains the codes in each group of
    four lanes (number g). For elements of 16 and 32 bits, the lower half of a word contains four
    chunks of row g, and the upper half four chunks of row g + 8. For elements of 8 and 4 bits, even
    lanes contain row g and odd lanes row g + 8. These layouts were observed on an H200.
    """
    lanes = contributors(chunks)
    nibbles = words[:, None] >> (4 * np.arange(8, dtype=np.uint32)) & np.uint32(15)
    out = np.zeros((16, chunks), np.int64)
    for g in range(8):
        part = nibbles[4 * g + selector * lanes : 4 * g + (selector + 1) * lanes]
        if bits >= 16:
            out[g], out[g + 8] = part[:, :4].reshape(-1), part[:, 4:].reshape(-1)
        else:
            out[g], out[g + 8] = part[0::2].reshape(-1), part[1::2].reshape(-1)
    return out


def positions(
    codes: np.ndarray, bits: int, ordered: bool, site: Site, section: str = "9.7.14.6.1"
) -> np.ndarray:
    """Index along K of every kept element of A: int [16, k / 2]. Raises MachineError for an invalid
    code.
    """
    known = _SINGLES if bits == 32 else _PAIRS
    bad = codes[~np.isin(codes, known)]
    if bits != 32 and not ordered:  # the two may come in either order
        bad = bad[(bad & 3) == (bad >> 2)]
    if bad.size:
        raise MachineError(
            "sparse-metadata",
            f"expected one of {', '.join(f'{c:#06b}' for c in known)} for each chunk, got "
            f"{int(bad[0]):#06b}: other values are undefined (PTX ISA {section})",
            site=site,
        )
    chunk = np.arange(codes.shape[1])
    if bits == 32:
        return 2 * chunk + (codes == 0b1110)
    pair = np.stack([codes & 3, codes >> 2], axis=-1)
    if bits == 4:
        pair = np.stack([2 * pair, 2 * pair + 1], axis=-1).reshape(*codes.shape, 4)
        return (8 * chunk[:, None] + pair).reshape(16, -1)
    return (4 * chunk[:, None] + pair).reshape(16, -1)

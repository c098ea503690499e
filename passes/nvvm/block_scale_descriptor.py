"""The instruction descriptor of the block-scaled mma kinds, encoded as the PTX ISA specifies."""

from __future__ import annotations

FP8_FP6_FP4_CODE = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
"""A and B type of kind::mxf8f6f4 (PTX ISA 9.7.16.4.2, table 43)."""

FP4_CODE = {"e2m1": 1}
"""A and B type of kind::mxf4 and kind::mxf4nvf4 (table 44)."""

SCALE_CODE = {"ue4m3": 0, "ue8m0": 1}
"""Scale matrix type, bit 23."""


def scaled_instruction_descriptor(
    *,
    kind: str,
    m: int,
    n: int,
    a: str,
    b: str,
    scale: str,
    scale_ids: tuple[int, int],
    sparse: bool = False,
) -> int:
    """Descriptor of a block-scaled mma with K-major operands (PTX ISA, tables 43 and 44).

    scale_ids: byte of a column where the scales begin, for SFA and SFB
    """
    sfa_id, sfb_id = scale_ids
    code = FP8_FP6_FP4_CODE if kind == "mxf8f6f4" else FP4_CODE
    fields = (
        (int(sparse), 2, 1),
        (sfb_id, 4, 2),
        (code[a], 7, 3),
        (code[b], 10, 3),
        (n // 8, 17, 6),
        (SCALE_CODE[scale], 23, 1),
        (m // 128, 27, 2),
        (sfa_id, 29, 2),
    )
    for value, shift, bits in fields:
        if not 0 <= value < 1 << bits:
            raise ValueError(f"expected {bits} bits from bit {shift} on, got {value}")
    return sum(value << shift for value, shift, _ in fields)

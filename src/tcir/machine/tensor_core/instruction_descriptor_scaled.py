"""The 32-bit instruction descriptor of ``tcgen05.mma ... .block_scale``.

Sources: PTX ISA 9.7.16.4.2 (descriptors of mxf8f6f4, and of mxf4 and mxf4nvf4), 9.7.16.2.1
(shapes), 9.7.16.10.7 (scale vector sizes, scale factor ids); CUTLASS
cute/arch/mma_sm100_desc.hpp, InstrDescriptorBlockScaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from tcir.machine.refusal import DescriptorError
from tcir.machine.tensor_core.descriptor_fields import DescriptorFields
from tcir.machine.tensor_core.instruction_descriptor import (
    OPERAND_TYPES,
    check_shape,
    legal_n,
)

_BITS = "PTX ISA 9.7.16.4.2, instruction descriptor of block-scaled kinds"
_SCALES = "PTX ISA 9.7.16.10.7, scale vector sizes"

SCALE_VECTORS: dict[str, tuple[int, ...]] = {"mxf8f6f4": (1,), "mxf4": (2,), "mxf4nvf4": (2, 4)}
"""Kind -> scales per row of one instruction that it allows (scale_vec::1X, ::2X, ::4X)."""

BLOCKS = {("mxf8f6f4", 32): 1, ("mxf4", 32): 2, ("mxf4nvf4", 32): 2, ("mxf4nvf4", 16): 4}
"""(kind, N of .blockN) -> scales per row of one instruction: the other spelling of the
qualifier."""

SCALE_IDS: dict[int, tuple[int, ...]] = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}
"""Scales per row -> first byte of the 32-bit word that may hold them."""

SCALED_K = {"mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
"""K of one dense instruction: 32 bytes of A per row."""


@dataclass(frozen=True)
class ScaledDescriptor:
    """A decoded, legal descriptor of a block-scaled mma, whose D is f32. `sfa_id` and `sfb_id`:
    index, in its word, of the byte with the first scale of A and of B.
    """

    kind: str
    m: int
    n: int
    a_type: str
    b_type: str
    scale_type: str
    scales: int
    sfa_id: int = 0
    sfb_id: int = 0
    negate_a: bool = False
    negate_b: bool = False
    a_major: str = "K"
    b_major: str = "K"
    sparse: bool = False
    cta_group: int = 1
    ignored: str = ""
    """Names a bit that is set but has no meaning here."""

    d_type: ClassVar[str] = "f32"
    sparsity_selector: ClassVar[int] = 0
    ws: ClassVar[bool] = False

    @property
    def k(self) -> int:
        """K of one instruction. A sparse A stores half as many elements per row."""
        return SCALED_K[self.kind] * (2 if self.sparse else 1)


def scales_per_row(kind: str, scale_vec: int | None = None, block: int | None = None) -> int:
    """Number of scales per row and instruction that the qualifier `.scale_vec::` or `.block` stands
    for.

    For mxf8f6f4 and mxf4 only one number is possible and the qualifier may be omitted; mxf4nvf4
    requires it.
    """
    if kind not in SCALE_VECTORS:
        raise DescriptorError(
            "block-scaled kind", kind, "one of " + ", ".join(SCALE_VECTORS), _BITS
        )
    allowed = SCALE_VECTORS[kind]
    if block is not None:
        if (kind, block) not in BLOCKS:
            blocks = " or ".join(f".block{b}" for k, b in BLOCKS if k == kind)
            raise DescriptorError(f"kind {kind}: block size", f".block{block}", blocks, _SCALES)
        return BLOCKS[kind, block]
    if scale_vec is None and len(allowed) == 1:
        return allowed[0]
    if scale_vec not in allowed:
        value = "none" if scale_vec is None else f"{scale_vec}X"
        names = " or ".join(f"{v}X" for v in allowed)
        raise DescriptorError(f"kind {kind}: scale_vec", value, names, _SCALES)
    return scale_vec


@lru_cache(maxsize=512)
def decode_scaled(bits: int, kind: str, scales: int, *, cta_group: int = 1) -> ScaledDescriptor:
    """Decodes and checks a 32-bit descriptor. Raises DescriptorError, which names the illegal
    field.

    `kind` and `scales` (per row, see `scales_per_row`) are part of the instruction.
    """
    scales_per_row(kind, scales)
    if cta_group not in (1, 2):
        raise DescriptorError("cta_group", cta_group, "1 or 2", "PTX ISA 9.7.16.10.9")
    fields = DescriptorFields(bits, kind, _BITS)
    fields.check_range()
    _check_reserved(fields)
    a_type, b_type = _types(fields)
    a_major, b_major = fields.major("A", 15, a_type), fields.major("B", 16, b_type)
    scale_type = _scale_type(fields, scales)
    sfa_id, sfb_id = _scale_id(fields, "A", 29, scales), _scale_id(fields, "B", 4, scales)
    sparse = bool(fields.field(2))
    m, n = fields.field(27, 2) * 128, fields.field(17, 6) * 8
    ms = (128,) if cta_group == 1 else (256,) if sparse else (128, 256)
    ns = legal_n("f8f6f4", cta_group, False, wide_step=b_major == "MN")
    check_shape(f"kind {kind}, cta_group::{cta_group}", m, n, ms, ns)
    return ScaledDescriptor(
        kind=kind,
        m=m,
        n=n,
        a_type=a_type,
        b_type=b_type,
        scale_type=scale_type,
        scales=scales,
        sfa_id=sfa_id,
        sfb_id=sfb_id,
        negate_a=bool(fields.field(13)),
        negate_b=bool(fields.field(14)),
        a_major=a_major,
        b_major=b_major,
        sparse=sparse,
        cta_group=cta_group,
        ignored=_ignored(fields),
    )


def _fp4(fields: DescriptorFields) -> bool:
    """Whether the kind is mxf4 or mxf4nvf4, which have a descriptor of their own."""
    return fields.kind != "mxf8f6f4"


def _check_reserved(fields: DescriptorFields) -> None:
    for low, width in ((0, 2), (3, 1), (6, 1), (24, 3)):
        fields.zero(low, width)
    if not _fp4(fields):
        fields.zero(31)
    elif fields.field(31):
        raise DescriptorError(
            f"kind {fields.kind}: K", 96, "64 (bit 31 is 0)", "K = 96 needs sm_103a"
        )


def _ignored(fields: DescriptorFields) -> str:
    if _fp4(fields) and fields.field(12):
        # CuTe DSL sets it by default: "sparsity version", which it calls irrelevant for sm_100.
        return "bit 12 (reserved; a sparsity version in CUTLASS's CuTe DSL)"
    return ""


def _types(fields: DescriptorFields) -> tuple[str, str]:
    """Element types of A and B."""
    fp4 = _fp4(fields)
    types = {1: "e2m1"} if fp4 else OPERAND_TYPES["f8f6f4"]
    a_type = fields.element("A type", 7, 3, types)
    return a_type, fields.element("B type", 10, 2 if fp4 else 3, types)


def _scale_type(fields: DescriptorFields, scales: int) -> str:
    if fields.field(23):
        return "ue8m0"
    if scales != 4:
        name = f"kind {fields.kind}, {scales}X: scale type (bit 23)"
        raise DescriptorError(name, "0 (ue4m3)", "1 (ue8m0)", _SCALES)
    return "ue4m3"


def _scale_id(fields: DescriptorFields, operand: str, low: int, scales: int) -> int:
    """Index of the first byte that holds scales of an operand in the 32-bit word of tensor
    memory."""
    found = fields.field(low, 2)
    if found not in SCALE_IDS[scales]:
        allowed = " or ".join(map(str, SCALE_IDS[scales]))
        name = f"kind {fields.kind}, {scales}X: SF{operand} id (bits {low + 1}..{low})"
        raise DescriptorError(name, found, allowed, _SCALES)
    return found

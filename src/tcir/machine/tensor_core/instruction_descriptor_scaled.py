"""The 32-bit instruction descriptor of ``tcgen05.mma ... .block_scale``.

Sources: PTX ISA 9.7.16.4.2 (descriptors of mxf8f6f4, and of mxf4 and mxf4nvf4), 9.7.16.2.1
(shapes), 9.7.16.10.7 (scale vector sizes, scale factor ids); CUTLASS
cute/arch/mma_sm100_desc.hpp, InstrDescriptorBlockScaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from tcir.machine.numerics.formats import ELEMENT_BITS
from tcir.machine.refusal import DescriptorError
from tcir.machine.tensor_core.instruction_descriptor import OPERAND_TYPES, legal_n, listed

_BITS = "PTX ISA 9.7.16.4.2, instruction descriptor of block-scaled kinds"
_SHAPES = "PTX ISA 9.7.16.2.1, table of supported shapes"
_SCALES = "PTX ISA 9.7.16.10.7, scale vector sizes"

SCALE_VECTORS: dict[str, tuple[int, ...]] = {"mxf8f6f4": (1,), "mxf4": (2,), "mxf4nvf4": (2, 4)}
"""Kind -> scales per row of one instruction that it allows (scale_vec::1X, ::2X, ::4X)."""

BLOCKS = {("mxf8f6f4", 32): 1, ("mxf4", 32): 2, ("mxf4nvf4", 32): 2, ("mxf4nvf4", 16): 4}
"""(kind, N of .blockN) -> the same, in the other spelling."""

SCALE_IDS: dict[int, tuple[int, ...]] = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}
"""Scales per row -> first byte of the 32-bit word that may hold them."""

SCALED_K = {"mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
"""K of one dense instruction: 32 bytes of A per row."""


@dataclass(frozen=True)
class ScaledDescriptor:
    """A decoded, legal descriptor. D is f32. `sfa_id`, `sfb_id`: byte of the first scale."""

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
        """K of one instruction; a sparse one stores half of it."""
        return SCALED_K[self.kind] * (2 if self.sparse else 1)


def scales_per_row(kind: str, scale_vec: int | None = None, block: int | None = None) -> int:
    """Scales per row and instruction that the qualifier `.scale_vec::` or `.block` names.

    mxf8f6f4 and mxf4 have one choice and may leave it out; mxf4nvf4 has to say.
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
    """Decode and check a 32-bit descriptor. DescriptorError names the field that is illegal.

    `kind` and `scales` (per row, see `scales_per_row`) come from the instruction.
    """
    scales_per_row(kind, scales)
    if cta_group not in (1, 2):
        raise DescriptorError("cta_group", cta_group, "1 or 2", "PTX ISA 9.7.16.10.9")
    if not 0 <= bits < 1 << 32:
        raise DescriptorError("instruction descriptor", hex(bits), "32 bits", _BITS)

    def field(low: int, width: int = 1) -> int:
        return (bits >> low) & ((1 << width) - 1)

    def zero(low: int, width: int, why: str = "0 (reserved)") -> None:
        if field(low, width):
            name = f"bit {low}" if width == 1 else f"bits {low + width - 1}..{low}"
            raise DescriptorError(f"instruction descriptor {name}", field(low, width), why, _BITS)

    fp4 = kind != "mxf8f6f4"
    for low, width in ((0, 2), (3, 1), (6, 1), (24, 3)):
        zero(low, width)
    if not fp4:
        zero(31, 1)
    elif field(31):
        raise DescriptorError(f"kind {kind}: K", 96, "64 (bit 31 is 0)", "K = 96 needs sm_103a")
    types = {1: "e2m1"} if fp4 else OPERAND_TYPES["f8f6f4"]
    names = []
    ignored = ""
    if fp4 and field(12):
        # CuTe DSL sets it by default: "sparsity version", which it calls irrelevant for sm_100.
        ignored = "bit 12 (reserved; a sparsity version in CUTLASS's CuTe DSL)"
    for operand, low, width in (("A", 7, 3), ("B", 10, 2 if fp4 else 3)):
        code = field(low, width)
        if code not in types:
            allowed = ", ".join(f"{c} ({t})" for c, t in types.items())
            raise DescriptorError(f"kind {kind}: {operand} type code", code, allowed, _BITS)
        names.append(types[code])
    majors = []
    for operand, low, element in (("A", 15, names[0]), ("B", 16, names[1])):
        if field(low) and ELEMENT_BITS[element] < 8:
            raise DescriptorError(
                f"{operand} major (bit {low})",
                "1 (MN-major)",
                f"0 (K-major) for {element}",
                "4- and 6-bit types cannot be transposed, PTX ISA 9.7.16.10.3",
            )
        majors.append("MN" if field(low) else "K")
    scale_type = "ue8m0" if field(23) else "ue4m3"
    if scale_type == "ue4m3" and scales != 4:
        raise DescriptorError(
            f"kind {kind}, {scales}X: scale type (bit 23)", "0 (ue4m3)", "1 (ue8m0)", _SCALES
        )
    ids = {}
    for operand, low in (("A", 29), ("B", 4)):
        ids[operand] = field(low, 2)
        if ids[operand] not in SCALE_IDS[scales]:
            allowed = " or ".join(map(str, SCALE_IDS[scales]))
            where = f"bits {low + 1}..{low}"
            raise DescriptorError(
                f"kind {kind}, {scales}X: SF{operand} id ({where})", ids[operand], allowed, _SCALES
            )
    sparse = bool(field(2))
    m, n = field(27, 2) * 128, field(17, 6) * 8
    ms = (128,) if cta_group == 1 else (256,) if sparse else (128, 256)
    form = f"kind {kind}, cta_group::{cta_group}"
    if m not in ms:
        raise DescriptorError(f"{form}: M", m, " or ".join(map(str, ms)), _SHAPES)
    wide = majors[1] == "MN"
    ns = legal_n("f8f6f4", cta_group, False, wide_step=wide)
    if n not in ns:
        raise DescriptorError(f"{form}, M {m}: N", n, listed(ns), _SHAPES)
    return ScaledDescriptor(
        kind=kind,
        m=m,
        n=n,
        a_type=names[0],
        b_type=names[1],
        scale_type=scale_type,
        scales=scales,
        sfa_id=ids["A"],
        sfb_id=ids["B"],
        negate_a=bool(field(13)),
        negate_b=bool(field(14)),
        a_major=majors[0],
        b_major=majors[1],
        sparse=sparse,
        cta_group=cta_group,
        ignored=ignored,
    )

"""The 32-bit instruction descriptor of ``tcgen05.mma`` for the kinds without block scaling.

Sources: PTX ISA 9.7.16.4.2 (instruction descriptor), 9.7.16.2.1 (shapes and types);
CUTLASS cute/arch/mma_sm100_desc.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tcir.machine.numerics.formats import ELEMENT_BITS
from tcir.machine.refusal import DescriptorError
from tcir.machine.tensor_core.descriptor_fields import DescriptorFields

_SHAPES = "PTX ISA 9.7.16.2.1, table of supported shapes"
_BITS = "PTX ISA 9.7.16.4.2, instruction descriptor"
_SELECTOR = "PTX ISA 9.7.16.10.8.4, sparsity selector"

OPERAND_TYPES: dict[str, dict[int, str]] = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"},
    "i8": {0: "u8", 1: "s8"},
}
"""Kind -> code in bits 9..7 and 12..10 -> element type."""

D_TYPES: dict[str, dict[int, str]] = {
    "f16": {0: "f16", 1: "f32"},
    "tf32": {1: "f32"},
    "f8f6f4": {0: "f16", 1: "f32"},
    "i8": {2: "s32"},
}
"""Kind -> code in bits 5..4 -> type of D."""

DENSE_K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32}
"""K of one dense instruction: 32 bytes of A per row."""

MAX_SHIFT = (0, 8, 16, 32)
"""Code in bits 31..30 -> largest shift of B's rows under .ws."""


@dataclass(frozen=True)
class InstructionDescriptor:
    """A decoded, legal descriptor. With cta_group 2, `m` and `n` are those of the whole CTA
    pair.
    """

    kind: str
    m: int
    n: int
    a_type: str
    b_type: str
    d_type: str = "f32"
    negate_a: bool = False
    negate_b: bool = False
    a_major: str = "K"
    b_major: str = "K"
    saturate: bool = False
    sparse: bool = False
    sparsity_selector: int = 0
    max_shift: int = 0
    cta_group: int = 1
    ws: bool = False

    @property
    def k(self) -> int:
        """K of one instruction. A sparse A stores half as many elements per row."""
        return DENSE_K[self.kind] * (2 if self.sparse else 1)


def legal_m(kind: str, cta_group: int, ws: bool) -> tuple[int, ...]:
    """Values of M that PTX's shape table allows; they are the same for all kinds without block
    scaling.
    """
    if ws:
        return (32, 64, 128)
    return (64, 128) if cta_group == 1 else (128, 256)


def legal_n(
    kind: str, cta_group: int, ws: bool, *, sparse: bool = False, wide_step: bool = False
) -> tuple[int, ...]:
    """Values of N that PTX's shape table allows.

    `wide_step`: whether B is 8-bit and N-major; N must then be a multiple of 16 (32 for a pair),
        see the table of majorness in the PTX ISA. At M = 128 the PTX table allows multiples of 8;
        older versions of CUTLASS assert 16 there.
    """
    if ws:
        return (64, 128) if sparse else (64, 128, 256)
    if kind == "i8" and cta_group == 1:
        small = (16, 32) if wide_step else (8, 16, 24, 32)
        return small + tuple(range(48, 257, 16))
    step = 32 if kind == "i8" or (wide_step and cta_group == 2) else 8 * cta_group
    if wide_step:
        step = max(step, 16)
    return tuple(range(step, 257, step))


def listed(values: tuple[int, ...]) -> str:
    """Formats a list of values for a message."""
    if len(values) <= 4:
        return ", ".join(map(str, values))
    step = values[-1] - values[-2]
    regular = tuple(range(values[-1] % step or step, values[-1] + 1, step))
    if values == regular:
        return f"a multiple of {step} in [{values[0]}, {values[-1]}]"
    return "one of " + ", ".join(map(str, values))


@lru_cache(maxsize=512)
def decode_instruction(
    bits: int, kind: str, *, cta_group: int = 1, ws: bool = False
) -> InstructionDescriptor:
    """Decodes and checks a 32-bit descriptor. Raises DescriptorError, which names the illegal
    field.

    `kind` is f16, tf32, f8f6f4 or i8; it is part of the instruction and not of the descriptor.
    """
    _check_form(kind, cta_group, ws)
    fields = DescriptorFields(bits, kind, _BITS)
    fields.check_range()
    for low in (6, 23, 29):
        fields.zero(low)
    a_type, b_type, d_type = _types(fields)
    selector = _sparsity_selector(fields)
    _check_integer_flags(fields)
    a_major, b_major = fields.major("A", 15, a_type), fields.major("B", 16, b_type)
    max_shift = fields.field(30, 2)
    if max_shift and not ws:
        raise DescriptorError("max shift (bits 31..30)", max_shift, "0 without .ws", _BITS)
    sparse = bool(fields.field(2))
    m, n = fields.field(24, 5) * 16, fields.field(17, 6) * 8
    wide = b_major == "MN" and ELEMENT_BITS[b_type] == 8
    form = f"kind {kind}, " + (".ws" if ws else f"cta_group::{cta_group}")
    ns = legal_n(kind, cta_group, ws, sparse=sparse, wide_step=wide)
    check_shape(form, m, n, legal_m(kind, cta_group, ws), ns)
    return InstructionDescriptor(
        kind=kind,
        m=m,
        n=n,
        a_type=a_type,
        b_type=b_type,
        d_type=d_type,
        negate_a=bool(fields.field(13)),
        negate_b=bool(fields.field(14)),
        a_major=a_major,
        b_major=b_major,
        saturate=bool(fields.field(3)),
        sparse=sparse,
        sparsity_selector=selector,
        max_shift=MAX_SHIFT[max_shift],
        cta_group=cta_group,
        ws=ws,
    )


def check_shape(form: str, m: int, n: int, ms: tuple[int, ...], ns: tuple[int, ...]) -> None:
    """Raises DescriptorError unless PTX's shape table has M and N for this form of the
    instruction.
    """
    if m not in ms:
        raise DescriptorError(f"{form}: M", m, " or ".join(map(str, ms)), _SHAPES)
    if n not in ns:
        raise DescriptorError(f"{form}, M {m}: N", n, listed(ns), _SHAPES)


def _check_form(kind: str, cta_group: int, ws: bool) -> None:
    if kind not in OPERAND_TYPES:
        raise DescriptorError(
            "mma kind", kind, "one of " + ", ".join(OPERAND_TYPES), "others have other descriptors"
        )
    if cta_group not in (1, 2) or (ws and cta_group == 2):
        raise DescriptorError(
            "cta_group", cta_group, "1" if ws else "1 or 2", "PTX ISA 9.7.16.10.9, .ws is 1 only"
        )


def _types(fields: DescriptorFields) -> tuple[str, str, str]:
    """Element types of A, B and D."""
    kind = fields.kind
    a_type = fields.element("A type", 7, 3, OPERAND_TYPES[kind])
    b_type = fields.element("B type", 10, 3, OPERAND_TYPES[kind])
    d_type = fields.element("D type", 4, 2, D_TYPES[kind])
    if kind == "f16" and a_type != b_type:
        raise DescriptorError(
            "kind f16: B type", b_type, f"{a_type}, as A", "A and B are both f16 or both bf16"
        )
    if kind == "f16" and d_type == "f16" and a_type != "f16":
        raise DescriptorError("kind f16: D type", d_type, "f32 for bf16 inputs", _SHAPES)
    return a_type, b_type, d_type


def _sparsity_selector(fields: DescriptorFields) -> int:
    kind, selector = fields.kind, fields.field(0, 2)
    if selector and not fields.field(2):
        raise DescriptorError("sparsity selector", selector, "0 when dense (bit 2 is 0)", _BITS)
    if selector and kind not in ("f16", "tf32"):
        raise DescriptorError(f"sparsity selector of kind {kind}", selector, "0", _SELECTOR)
    return selector


def _check_integer_flags(fields: DescriptorFields) -> None:
    """DescriptorError if a float saturates or an integer is negated."""
    if fields.kind != "i8" and fields.field(3):
        raise DescriptorError(
            "saturate (bit 3)", 1, f"0 for kind {fields.kind}", "only i8 saturates"
        )
    if fields.kind == "i8" and fields.field(13, 2):
        raise DescriptorError("negate A/B (bits 13, 14)", 1, "0 for kind i8", _BITS)

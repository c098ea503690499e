"""The tcgen05 ops of nvvm. The argument `cta_group` says whether an op acts on one CTA or on a CTA
pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tcir._mlir import ir

from ..build import attribute, effect, integers, value


def group_of(cta_group: int) -> dict[str, ir.Attribute]:
    """The attribute `group` of an op on a CTA pair; empty for one CTA, which is the default."""
    return {"group": _group(cta_group)} if cta_group > 1 else {}


def _group(cta_group: int) -> ir.Attribute:
    return attribute("nvvm.cta_group", f"cta_{cta_group}")


def alloc(slot: ir.Value, columns: ir.Value, cta_group: int = 1) -> None:
    """Allocates columns; their address goes to `slot` in shared memory."""
    effect("nvvm.tcgen05.alloc", slot, columns, **group_of(cta_group))


def relinquish_alloc_permit(cta_group: int = 1) -> None:
    """Gives up the CTA's right to allocate further columns."""
    effect("nvvm.tcgen05.relinquish_alloc_permit", **group_of(cta_group))


def dealloc(base: ir.Value, columns: ir.Value, cta_group: int = 1) -> None:
    """Frees an allocation."""
    effect("nvvm.tcgen05.dealloc", base, columns, **group_of(cta_group))


def commit(mbarrier: ir.Value, cta_mask: ir.Value | None = None, cta_group: int = 1) -> None:
    """Arrives at an mbarrier when all asynchronous tcgen05 ops that the thread issued are complete.
    With a mask, arrives at the mbarrier of each CTA in the mask.
    """
    masks = [] if cta_mask is None else [cta_mask]
    effect("nvvm.tcgen05.commit", mbarrier, *masks, **group_of(cta_group))


def fence(kind: Literal["before", "after"]) -> None:
    """Orders tcgen05 ops against a synchronisation of threads."""
    effect("nvvm.tcgen05.fence", kind=attribute("nvvm.tcgen05_fence", kind))


def wait(kind: Literal["load", "store"]) -> None:
    """Waits for this thread's tcgen05.ld or tcgen05.st."""
    effect("nvvm.tcgen05.wait", kind=attribute("nvvm.tcgen05_wait", kind))


def ld(
    kind: ir.Type,
    pointer: ir.Value,
    shape: str = "32x32b",
    *,
    pack: bool = False,
    split: ir.Value | None = None,
) -> ir.Value:
    """``tcgen05.ld``: registers of each thread of the warp, by default a row of 32x32b."""
    return value(
        "nvvm.tcgen05.ld",
        kind,
        pointer,
        *([] if split is None else [split]),
        shape=attribute("nvvm.tcgen05_ldst_shape", f"shape_{shape}"),
        **({"pack": ir.UnitAttr.get()} if pack else {}),
    )


def st(
    pointer: ir.Value,
    row: ir.Value,
    shape: str = "32x32b",
    *,
    unpack: bool = False,
    split: ir.Value | None = None,
) -> None:
    """``tcgen05.st``: registers of each thread of the warp, by default a row of 32x32b."""
    effect(
        "nvvm.tcgen05.st",
        pointer,
        row,
        *([] if split is None else [split]),
        shape=attribute("nvvm.tcgen05_ldst_shape", f"shape_{shape}"),
        **({"unpack": ir.UnitAttr.get()} if unpack else {}),
    )


def cp(
    shape: str,
    pointer: ir.Value,
    descriptor: ir.Value,
    multicast: str | None = None,
    source_format: str | None = None,
    cta_group: int = 1,
) -> None:
    """Copies from shared to tensor memory."""
    more = group_of(cta_group)
    if multicast is not None:
        name = multicast.replace("::", "_")
        more["multicast"] = attribute("nvvm.tcgen05_cp_multicast", name)
    if source_format is not None:
        more["srcFormat"] = attribute("nvvm.tcgen05_cp_src_fmt", source_format)
    effect(
        "nvvm.tcgen05.cp",
        pointer,
        descriptor,
        shape=attribute("nvvm.tcgen05_cp_shape", f"shape_{shape}"),
        **more,
    )


def shift(pointer: ir.Value, cta_group: int = 1) -> None:
    """Moves rows of 32 bytes one lane down (to the next lower lane)."""
    effect("nvvm.tcgen05.shift", pointer, **group_of(cta_group))


@dataclass(frozen=True)
class MmaForm:
    """Attributes of an mma besides its operands.

    metadata: address of the metadata of a sparse A
    """

    cta_group: int = 1

    a_shift: bool = False
    disable_output_lane: ir.Value | None = None
    scale_input_d: ir.Value | None = None
    collector: str = "discard"
    metadata: ir.Value | None = None


def mma(
    kind: str,
    d: ir.Value,
    operands: tuple[ir.Value, ir.Value],
    idesc: ir.Value,
    accumulate: ir.Value,
    form: MmaForm,
) -> None:
    """D = A · B, plus D if `accumulate`; A is a descriptor or a tensor-memory pointer."""
    sparse = [] if form.metadata is None else [1]
    optional = [form.metadata, form.scale_input_d, form.disable_output_lane]
    given = [each for each in optional if each is not None]
    sizes = [int(each is not None) for each in optional[1:]]
    effect(
        "nvvm.tcgen05.mma.sp" if sparse else "nvvm.tcgen05.mma",
        d,
        *operands,
        idesc,
        accumulate,
        *given,
        kind=attribute("nvvm.tcgen05_mma_kind", kind),
        ctaGroup=_group(form.cta_group),
        operandSegmentSizes=integers(*[1] * 5, *sparse, *sizes),
        **_collector(form.collector),
        **({"aShift": ir.UnitAttr.get()} if form.a_shift else {}),
    )


def mma_ws(
    kind: str,
    d: ir.Value,
    operands: tuple[ir.Value, ir.Value],
    idesc: ir.Value,
    accumulate: ir.Value,
    *,
    buffer: str,
    collector: str,
    metadata: ir.Value | None = None,
) -> None:
    """D = A · B, plus D if `accumulate`.

    buffer: collector buffer of B; metadata: address of the metadata of a sparse A
    """
    sparse = [] if metadata is None else [metadata]
    effect(
        f"nvvm.tcgen05.mma.ws{'.sp' if sparse else ''}",
        d,
        *operands,
        idesc,
        accumulate,
        *sparse,
        kind=attribute("nvvm.tcgen05_mma_kind", kind),
        collectorBBuffer=attribute("nvvm.tcgen05_mma_collectorb", buffer),
        **_collector(collector),
    )


def _collector(use: str) -> dict[str, ir.Attribute]:
    if use == "discard":
        return {}
    return {"collectorOp": attribute("nvvm.tcgen05_mma_collectorop", use)}


def mma_block_scale(
    kind: str,
    block: int,
    d: ir.Value,
    operands: tuple[ir.Value, ir.Value],
    idesc: ir.Value,
    accumulate: ir.Value,
    scales: tuple[ir.Value, ir.Value],
    form: MmaForm,
) -> None:
    """D = (A · SFA) · (B · SFB), plus D if `accumulate`; there is one scale per `block` elements of
    K.
    """
    sparse = [] if form.metadata is None else [form.metadata]
    effect(
        f"nvvm.tcgen05.mma{'.sp' if sparse else ''}.block_scale",
        d, *operands, idesc, accumulate, *sparse, *scales,
        kind=attribute("nvvm.tcgen05_mma_kind", kind),
        ctaGroup=_group(form.cta_group),
        blockScale=attribute("nvvm.tcgen05_mma_block_scale", f"block{block}"),
        **_collector(form.collector),
    )  # fmt: skip

"""Ops of `nvvm` for tcgen05.mma: each is one PTX instruction (PTX ISA 9.7.16.10.9)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.thread.nvvm import address, cta_group, immediate, segments
from tcir.interp.thread.speller import Speller, expect, only, spelling

_USES = ("discard", "fill", "use", "lastuse")


@spelling("nvvm.tcgen05.mma", "nvvm.tcgen05.mma.sp")
def _tcgen05_mma(speller: Speller, op: ir.Operation) -> None:
    """Spells ``tcgen05.mma`` and ``.sp`` (PTX ISA 9.7.16.10.9.1 and .2).

    A is a descriptor (i64) or an address in tensor memory.
    """
    only(op, "aShift", "collectorOp", "ctaGroup", "kind")
    kind = _kind(op, "f16|tf32|f8f6f4|i8")
    parts = segments(op)
    (d,), (a,), (b,), (idesc,), (enable,) = parts[:5]
    scale, mask = parts[-2:]
    metadata = parts[5] if op.name.endswith(".sp") else []
    if any(str(m.type) != "vector<4xi32>" for m in mask):
        raise IncompleteError("no rule for a lane mask of a CTA pair")
    ashift = ".ashift" if "aShift" in op.attributes else ""
    form = f"{'.sp' if metadata else ''}.{cta_group(op, 'ctaGroup')}"
    operands = [
        *(address(speller, m, 6) for m in metadata),
        speller.read_one(idesc),
        *(f"{{{', '.join(speller.read(m))}}}" for m in mask),
        speller.read_one(enable),
        *(str(immediate(value)) for value in scale),
    ]
    speller.emit(
        f"tcgen05.mma{form}.kind::{kind}{ashift}{_collector(op, 'a')} "
        f"{address(speller, d, 6)}, {_matrix(speller, a)}, {speller.read_one(b)}, "
        + ", ".join(operands)
    )


@spelling("nvvm.tcgen05.mma.ws", "nvvm.tcgen05.mma.ws.sp")
def _tcgen05_mma_ws(speller: Speller, op: ir.Operation) -> None:
    """Spells ``tcgen05.mma.ws`` and ``.ws.sp`` without a zero-column mask (PTX ISA
    9.7.16.10.9.3)."""
    only(op, "collectorBBuffer", "collectorOp", "kind")
    buffers = {f"#nvvm.tcgen05_mma_collectorb<b{i}>": f"b{i}" for i in range(4)}
    buffer = buffers[expect(op, "collectorBBuffer", *buffers)]
    kind = _kind(op, "f16|tf32|f8f6f4|i8")
    form = ".sp" if op.name.endswith(".sp") else ""
    if len(op.operands) != 5 + bool(form):
        raise IncompleteError("no rule for a zero-column mask")
    d, a, b, idesc, enable, *metadata = op.operands
    speller.emit(
        f"tcgen05.mma.ws{form}.cta_group::1.kind::{kind}{_collector(op, buffer)} "
        f"{address(speller, d, 6)}, {_matrix(speller, a)}, {speller.read_one(b)}, "
        f"{_before_descriptor(speller, metadata)}{speller.read_one(idesc)}, "
        f"{speller.read_one(enable)}"
    )


def _before_descriptor(speller: Speller, metadata: Sequence[ir.Value]) -> str:
    """Returns the text of a sparse A's metadata, the operand before the instruction descriptor."""
    return "".join(f"{address(speller, each, 6)}, " for each in metadata)


def _kind(op: ir.Operation, names: str) -> str:
    kind = str(op.attributes["kind"])
    name = re.fullmatch(rf"#nvvm\.tcgen05_mma_kind<({names})>", kind)
    if name is None:
        raise IncompleteError(f"no rule for kind = {kind}")
    return name[1]


def _collector(op: ir.Operation, buffer: str) -> str:
    """Returns the ``.collector`` modifier; "" for the default, which discards the first buffer."""
    uses = {f"#nvvm.tcgen05_mma_collectorop<{use}>": use for use in _USES}
    use = uses.get(expect(op, "collectorOp", *uses, ""), "discard")
    return "" if use == "discard" else f".collector::{buffer}::{use}"


def _matrix(speller: Speller, a: ir.Value) -> str:
    """Returns the operand A: a descriptor (i64), or an address in tensor memory."""
    return speller.read_one(a) if str(a.type) == "i64" else address(speller, a, 6)


@spelling("nvvm.tcgen05.mma.block_scale", "nvvm.tcgen05.mma.sp.block_scale")
def _tcgen05_mma_block_scale(speller: Speller, op: ir.Operation) -> None:
    """Spells ``tcgen05.mma`` and ``.sp`` with ``.block_scale`` (PTX ISA 9.7.16.10.9.1).

    A is a descriptor (i64) or an address in tensor memory.
    """
    only(op, "blockScale", "collectorOp", "ctaGroup", "kind")
    block = str(op.attributes["blockScale"])
    kind = _kind(op, "mxf8f6f4|mxf4|mxf4nvf4")
    size = re.fullmatch(r"#nvvm\.tcgen05_mma_block_scale<(block16|block32)>", block)
    if size is None:
        raise IncompleteError(f"no rule for blockScale = {block}")
    d, a, b, idesc, enable, *metadata, sfa, sfb = op.operands
    start = "tcgen05.mma.sp" if metadata else "tcgen05.mma"
    speller.emit(
        f"{start}.{cta_group(op, 'ctaGroup')}.kind::{kind}.block_scale.{size[1]}"
        f"{_collector(op, 'a')} "
        f"{address(speller, d, 6)}, {_matrix(speller, a)}, {speller.read_one(b)}, "
        f"{_before_descriptor(speller, metadata)}{speller.read_one(idesc)}, "
        f"{address(speller, sfa, 6)}, {address(speller, sfb, 6)}, "
        f"{speller.read_one(enable)}"
    )

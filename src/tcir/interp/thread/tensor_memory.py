"""Ops of `nvvm` for tcgen05.ld, st and cp: each is one PTX instruction."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.interp.thread.nvvm import address, cta_group, immediate
from tcir.interp.thread.speller import Speller, expect, only, scalars, spelling

_REGISTERS = {"32x32b": 1, "16x64b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
"""Shape -> registers per repetition (PTX ISA 9.7.16.8, table 49)."""
_MULTICASTS = {
    "128x256b": (None,),
    "128x128b": (None,),
    "4x256b": (None,),
    "64x128b": ("warpx2::02_13", "warpx2::01_23"),
    "32x128b": ("warpx4",),
}
"""Shape -> legal multicasts (PTX ISA 9.7.16.9)."""


def _shape(op: ir.Operation) -> str:
    shapes = {f"#nvvm.tcgen05_ldst_shape<shape_{name}>": name for name in _REGISTERS}
    return shapes[expect(op, "shape", *shapes)]


@spelling("nvvm.tcgen05.ld")
def _tcgen05_load(speller: Speller, op: ir.Operation) -> None:
    """Spells ``tcgen05.ld`` (PTX ISA 9.7.16.8.1)."""
    only(op, "shape", "pack")
    shape, (pointer, *split) = _shape(op), op.operands
    registers = speller.define(op.results[0])
    pack = ".pack::16b" if "pack" in op.attributes else ""
    count = len(scalars(op.results[0].type)) // _REGISTERS[shape]
    offset = "".join(f", {immediate(value)}" for value in split)
    speller.emit(
        f"tcgen05.ld.sync.aligned.{shape}.x{count}{pack}.b32 "
        f"{{{', '.join(registers)}}}, {address(speller, pointer, 6)}{offset}"
    )


@spelling("nvvm.tcgen05.st")
def _tcgen05_store(speller: Speller, op: ir.Operation) -> None:
    """Spells ``tcgen05.st`` (PTX ISA 9.7.16.8.2)."""
    only(op, "shape", "unpack")
    shape, (target, value, *split) = _shape(op), op.operands
    registers = speller.read(value)
    unpack = ".unpack::16b" if "unpack" in op.attributes else ""
    offset = "".join(f" {immediate(each)}," for each in split)
    speller.emit(
        f"tcgen05.st.sync.aligned.{shape}.x{len(registers) // _REGISTERS[shape]}{unpack}.b32 "
        f"{address(speller, target, 6)},{offset} {{{', '.join(registers)}}}"
    )


@spelling("nvvm.tcgen05.cp")
def _tcgen05_copy(speller: Speller, op: ir.Operation) -> None:
    """Spells ``tcgen05.cp`` (PTX ISA 9.7.16.9.1)."""
    only(op, "group", "multicast", "shape", "srcFormat")
    shapes = {f"#nvvm.tcgen05_cp_shape<shape_{name}>": name for name in _MULTICASTS}
    shape = shapes[expect(op, "shape", *shapes)]
    multicasts = {
        f"#nvvm.tcgen05_cp_multicast<{'none' if name is None else name.replace('::', '_')}>": name
        for name in _MULTICASTS[shape]
    }
    absent = ("",) if None in _MULTICASTS[shape] else ()
    multicast = multicasts.get(expect(op, "multicast", *multicasts, *absent))
    formats = {f"#nvvm.tcgen05_cp_src_fmt<{name}>": name for name in ("b4x16_p64", "b6x16_p32")}
    source = formats.get(expect(op, "srcFormat", *formats, ""))
    words = [shape, *([multicast] if multicast else []), *(["b8x16", source] if source else [])]
    target, descriptor = op.operands
    speller.emit(
        f"tcgen05.cp.{cta_group(op)}.{'.'.join(words)} "
        f"{address(speller, target, 6)}, {speller.read_one(descriptor)}"
    )

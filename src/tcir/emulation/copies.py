"""Tensor copies that Hopper's TMA does not support: copies for CTA pairs, and copies of narrow (4-
and 6-bit) elements.

A copy with `.cta_group::2` may signal the mbarrier of the other CTA of the pair. Elements that
should be padded in shared memory arrive there without padding. In each of these cases a helper warp
of the destination CTA completes the copy. A multicast becomes one copy for each CTA.
"""

from __future__ import annotations

from tcir.emulation.narrow import NOTE, NOTE_AT, SPREAD
from tcir.emulation.sequence import PREFIX, Sequence, refused
from tcir.interp.ptx.syntax import Address, Instruction, Operand

_TENSOR = ("cp.async.bulk.tensor.", "cp.async.bulk.prefetch.tensor.")
Value = str | int


def is_rewritten(i: Instruction, narrow: bool) -> bool:
    """Whether `rewrite` applies to an instruction.

    narrow: whether some maps have narrow elements
    """
    return ".cta_group::2" in i.mnemonic or (narrow and i.mnemonic.startswith(_TENSOR))


def rewrite(s: Sequence, number: int, ctas: int, narrow: bool) -> None:
    """Rewrites a copy.

    number: number of the instruction, for labels
    ctas:   CTAs of the cluster
    """
    if ".mbarrier::complete_tx" in s.instruction.mnemonic:
        _load(s, number, ctas, narrow)
    else:
        _store(s)


def _map(s: Sequence, operand: Operand) -> tuple[str, list[str]]:
    """Emits the map's address to a register; returns that register and the coordinates."""
    if not isinstance(operand, Address) or operand.coordinates is None:
        raise refused(s.instruction, f"a map and coordinates, got {operand}", "write [map, {x, y}]")
    tensor = s.new(64)
    s.do(f"mov.b64 {tensor}, {s.value(operand.base)}")
    s.do(f"add.u64 {tensor}, {tensor}, {operand.offset}")
    return tensor, [s.value(each) for each in operand.coordinates]


def _note(s: Sequence, tensor: str, coordinates: list[str]) -> str:
    """Emits code that reads the map's note (0 for a map without one) to a register and scales the
    first coordinate by it; returns the register."""
    note, part, first, has = s.new(32), s.new(32), s.new(32), f"%{PREFIX}has"
    s.do(f".reg .pred {has}")
    s.do(f"ld.b32 {note}, [{tensor}+{NOTE_AT}]")
    s.do(f"and.b32 {part}, {note}, 0xffff0000")
    s.do(f"setp.eq.u32 {has}, {part}, {NOTE}")
    s.do(f"and.b32 {note}, {note}, 0xffff")
    s.do(f"selp.b32 {note}, {note}, 0, {has}")
    s.do(f"and.b32 {part}, {note}, 15")
    s.do(f"mul.lo.s32 {first}, {coordinates[0]}, {part}")
    s.do(f"shr.s32 {first}, {first}, 4")
    s.do(f"selp.b32 {first}, {first}, {coordinates[0]}, {has}")
    coordinates[0] = first
    return note


def _store(s: Sequence) -> None:
    """Copies from shared memory, or to L2. Padding is not removed: padded elements trap."""
    i = s.instruction
    operand, *rest = i.operands
    tensor, coordinates = _map(s, operand)
    note, padded = _note(s, tensor, coordinates), f"%{PREFIX}padded"
    s.do(f".reg .pred {padded}")
    s.do(f"and.b32 {note}, {note}, {SPREAD}")
    s.do(f"setp.ne.u32 {padded}, {note}, 0")
    s.do(f"@{padded} trap")
    more = ""
    if ".prefetch." not in i.mnemonic:
        more = f", [{s.shared_address(rest.pop(0), True)}]"
    more += "".join(f", {s.value(each)}" for each in rest)
    s.do(f"{i.mnemonic} [{tensor}, {{{', '.join(coordinates)}}}]{more}")


def _load(s: Sequence, number: int, ctas: int, narrow: bool) -> None:
    i = s.instruction
    pair, multicast = ".cta_group::2" in i.mnemonic, ".multicast::cluster" in i.mnemonic
    plain = i.mnemonic
    for word in (".cta_group::1", ".cta_group::2", ".multicast::cluster"):
        plain = plain.replace(word, "")
    target, source, barrier, *rest = i.operands
    shared, heard = s.shared_address(target, True), s.shared_address(barrier, True)
    tensor, coordinates = _map(s, source)
    note: Value = _note(s, tensor, coordinates) if narrow else 0
    cta, at = s.new(32), shared
    out, label = f"%{PREFIX}out", f"${PREFIX}copy{number}"
    if multicast:
        ranks = s.value(rest.pop(-2 if ".L2::cache_hint" in i.mnemonic else -1))
        mask, bit, at = s.new(32), s.new(32), s.new(32)
        s.do(f".reg .pred {out}")
        s.do(f"cvt.u32.u16 {mask}, {ranks}")
        s.do(f"mov.u32 {cta}, 0")
        s.mark(label)
        s.do(f"shr.u32 {bit}, {mask}, {cta}")
        s.do(f"and.b32 {bit}, {bit}, 1")
        s.do(f"setp.eq.u32 {out}, {bit}, 0")
        s.do(f"@{out} bra {label}_next")
        s.do(f"mapa.shared::cluster.u32 {at}, {shared}, {cta}")
    else:
        s.do(f"getctarank.shared::cluster.u32 {cta}, {shared}")
    relay, own, place = s.new(64), s.new(32), at
    given = (64, tensor), (32, heard), (32, cta), (32, int(pair)), (32, note)
    s.call("relay", *given, result=relay)
    s.do(f"cvt.u32.u64 {own}, {relay}")
    if narrow:
        behind, place = s.new(64), s.new(32)
        s.call_plain("behind", (64, tensor), (32, note), result=behind)
        s.do(f"cvt.u32.u64 {place}, {behind}")
        s.do(f"add.u32 {place}, {place}, {at}")
    more = "".join(f", {s.value(each)}" for each in rest)
    s.do(f"{plain} [{place}], [{tensor}, {{{', '.join(coordinates)}}}], [{own}]{more}")
    s.call("relayed", (64, relay), *given, (32, at))
    if multicast:
        s.mark(f"{label}_next")
        s.do(f"add.u32 {cta}, {cta}, 1")
        s.do(f"setp.lt.u32 {out}, {cta}, {ctas}")
        s.do(f"@{out} bra {label}")

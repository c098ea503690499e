"""Rewrites instructions of sm_100 other than tcgen05 to sequences of instructions of sm_90a."""

from __future__ import annotations

from collections.abc import Callable

from tcir.emulation.sequence import Sequence, refused
from tcir.interp.ptx.syntax import Address, Instruction, Operand, Reg, Sink, Vector

Rule = Callable[[Sequence], None]
_LONG = ("b64", "u64", "s64", "f64")


ROUNDINGS = {"rn", "rz", "rm", "rp"}


def rounded(mnemonic: str) -> str:
    """The mnemonic with an explicit rounding mode. Without it ptxas may fuse a product and a sum to
    an fma, which has other bits (PTX ISA 9.7.3 "mul").
    """
    name, *rest = mnemonic.split(".")
    if name not in ("add", "sub", "mul") or ROUNDINGS & {*rest}:
        return mnemonic
    return ".".join([name, "rn", *rest])


def _halves(s: Sequence) -> None:
    """add, sub, mul, fma of .f32x2: the operation on each of the two f32 (PTX ISA 9.7.3)."""
    each = rounded(s.instruction.mnemonic.removesuffix("x2"))
    target, *sources = s.instruction.operands
    halves = []
    for source in sources:
        if not isinstance(source, Reg):
            raise refused(s.instruction, f"registers, got {source}", "move it to one")
        low, high = s.new(32), s.new(32)
        s.do(f"mov.b64 {{{low}, {high}}}, {source.name}")
        halves.append((low, high))
    out = s.new(32), s.new(32)
    for n, half in enumerate(out):
        s.do(f"{each} {half}, {', '.join(pair[n] for pair in halves)}")
    s.do(f"mov.b64 {s.value(target)}, {{{out[0]}, {out[1]}}}")


NARROW = {"e2m3x2": 5, "e3m2x2": 6, "e2m1x2": 7}
"""Types that sm_90a does not convert, with their numbers in `tensor_core.cu`."""


def _result(s: Sequence, name: str, *given: tuple[int, str | int]) -> str:
    """Emits a call of a helper function; returns a 32-bit register with its result."""
    wide, found = s.new(64), s.new(32)
    s.call_plain(name, *given, result=wide)
    s.do(f"cvt.u32.u64 {found}, {wide}")
    return found


def _register(s: Sequence, operand: Operand) -> str:
    """Emits a move of an operand's bits to a 32-bit register; returns it."""
    at = s.new(32)
    s.do(f"mov.b32 {at}, {s.value(operand)}")
    return at


def _convert(s: Sequence) -> None:
    """cvt to and from 4- and 6-bit types and scales (PTX ISA 9.7.9 "cvt")."""
    words = s.instruction.mnemonic.split(".")
    target, *sources = s.instruction.operands
    relu = int("relu" in words)
    last = words[-1]
    if last in NARROW or last == "ue8m0x2":
        codes = s.new(32)
        s.do(f"cvt.u32.u{8 if last == 'e2m1x2' else 16} {codes}, {s.value(sources[0])}")
        found = _result(s, "widen", (32, codes), (32, NARROW.get(last, 255)), (32, relu))
        s.do(f"mov.b32 {s.value(target)}, {found}")
        return
    if last != "f32":
        raise refused(s.instruction, f"f32 to narrow, got {last}", "convert to f32 first")
    high, low = (_register(s, source) for source in sources)
    if "ue8m0x2" in words:
        flags = (32, int("rp" in words)), (32, int("satfinite" in words))
        found = _result(s, "scale", (32, high), (32, low), *flags)
    else:
        kind = next(number for name, number in NARROW.items() if name in words)
        found = _result(s, "narrow", (32, high), (32, low), (32, kind), (32, relu))
    s.do(f"cvt.u{8 if 'e2m1x2' in words else 16}.u32 {s.value(target)}, {found}")


def _wide_access(s: Sequence) -> None:
    """Splits a 256-bit load or store into two of 128 bits (PTX ISA 9.7.9 "ld", "st")."""
    i = s.instruction
    half = i.mnemonic.replace(".v8.", ".v4.")
    if half == i.mnemonic:
        half = i.mnemonic.replace(".v4.", ".v2.")
    load = i.mnemonic.startswith("ld")
    values, address = i.operands[:2] if load else i.operands[1::-1]
    if not isinstance(values, Vector) or not isinstance(address, Address):
        raise refused(
            i, f"a vector and an address, got {values} and {address}", "use the form {…}, […]"
        )
    rest = "".join(f", {s.value(each)}" for each in i.operands[2:])
    base = s.new(64)
    s.do(f"mov.b64 {base}, {s.value(address.base)}")
    middle = len(values.items) // 2
    for n, items in enumerate((values.items[:middle], values.items[middle:])):
        vector = s.value(Vector(items))
        at = f"[{base}+{address.offset + 16 * n}]"
        s.do(f"{half} {vector}, {at}{rest}" if load else f"{half} {at}, {vector}{rest}")


def _redux(s: Sequence) -> None:
    """redux.sync of f32 (PTX ISA 9.7.13)."""
    words = s.instruction.mnemonic.split(".")
    target, source, mask = s.instruction.operands
    flags = ("max" in words) + 2 * ("abs" in words) + 4 * ("NaN" in words)
    bits = _register(s, source)
    found = _result(s, "redux", (32, bits), (32, s.value(mask)), (32, flags))
    s.do(f"mov.b32 {s.value(target)}, {found}")


def _zero(s: Sequence) -> None:
    """st.bulk (PTX ISA 9.7.9)."""
    address, size, _ = s.instruction.operands
    at = s.new(64)
    spaced = ".shared" in s.instruction.mnemonic
    shared = s.shared_address(address, spaced)
    s.do(f"cvt.u64.u32 {at}, {shared}")
    s.do(f"cvta.shared.u64 {at}, {at}")
    s.call_plain("zero", (64, at), (64, s.value(size)))


def _cancel(s: Sequence) -> None:
    """clusterlaunchcontrol.try_cancel (PTX ISA 9.7.13.17): it always fails here."""
    i = s.instruction
    at, barrier = (s.shared_address(o, ".shared" in i.mnemonic) for o in i.operands)
    ranks: str | int = 0
    if ".multicast::cluster::all" in i.mnemonic:
        ranks = s.new(32)
        s.do(f"mov.u32 {ranks}, %cluster_nctarank")
    s.call_plain("cancel", (32, at), (32, barrier), (32, ranks))


def _query(s: Sequence) -> None:
    """clusterlaunchcontrol.query_cancel: nothing was cancelled."""
    target = s.instruction.operands[0]
    if ".is_canceled" in s.instruction.mnemonic:
        s.do(f"setp.ne.u32 {s.value(target)}, 0, 0")
        return
    for each in target.items if isinstance(target, Vector) else (target,):
        if not isinstance(each, Sink):
            s.do(f"mov.b32 {s.value(each)}, 0")


def _of_three(s: Sequence) -> None:
    """min and max of three f32 (PTX ISA 9.7.3)."""
    i = s.instruction
    target, *sources = (s.value(o) for o in i.operands)
    each = i.mnemonic
    if ".abs" in each:
        each = each.replace(".abs", "")
        magnitudes = [s.new(32) for _ in sources]
        for magnitude, source in zip(magnitudes, sources, strict=True):
            s.do(f"abs{'.ftz' if '.ftz' in each else ''}.f32 {magnitude}, {source}")
        sources = magnitudes
    first = s.new(32)
    s.do(f"{each} {first}, {sources[0]}, {sources[1]}")
    s.do(f"{each} {target}, {first}, {sources[2]}")


def _mixed(s: Sequence) -> None:
    """add, sub and fma of f32 whose factors are f16 or bf16 (PTX ISA 9.7.5)."""
    i = s.instruction
    each, _, half = rounded(i.mnemonic).rpartition(".")
    target, *sources = (s.value(o) for o in i.operands)
    for n in range(len(sources) - 1):
        wide = s.new(32)
        s.do(f"cvt.f32.{half} {wide}, {sources[n]}")
        sources[n] = wide
    s.do(f"{each} {target}, {', '.join(sources)}")


MAP_BYTES = 64
"""Offset in a tensor map at which the driver stores the bytes of a copy."""


def _rows(s: Sequence) -> None:
    """TMA of four rows (PTX ISA 9.7.9.27.1.2): four copies of boxes of one row, in sequence.

    The GPU requires each of them at a multiple of 128 bytes, and faults otherwise.
    """
    i = s.instruction
    load = ".tile::gather4" in i.mnemonic
    if ".multicast::" in i.mnemonic or ".cta_group::2" in i.mnemonic:
        raise refused(i, "no multicast and no .cta_group::2 with four rows", "copy for each CTA")
    each = i.mnemonic.replace(".cta_group::1", "")
    each = each.replace(".tile::gather4", ".tile").replace(".tile::scatter4", ".tile")
    shared, tensor, *rest = i.operands if load else (i.operands[1], i.operands[0], *i.operands[2:])
    if not isinstance(tensor, Address) or not tensor.coordinates or len(tensor.coordinates) != 5:
        raise refused(i, f"a map with a column and four rows, got {tensor}", "use this form")
    at, size = s.shared_address(shared, True), s.new(32)
    where = s.value(tensor.base)
    barrier = f", [{s.shared_address(rest.pop(0), True)}]" if load else ""
    more = "".join(f", {s.value(operand)}" for operand in rest)
    column, *rows = (s.value(operand) for operand in tensor.coordinates)
    s.do(f"ld.b32 {size}, [{where}+{MAP_BYTES}]")
    for n, row in enumerate(rows):
        if n:
            s.do(f"add.u32 {at}, {at}, {size}")
        source = f"[{where}, {{{column}, {row}}}]"
        operands = f"[{at}], {source}{barrier}" if load else f"{source}, [{at}]"
        s.do(f"{each} {operands}{more}")


def _wide(s: Sequence) -> None:
    """Rejects `.im2col::w`, which walks only along W: Hopper's TMA does not support it."""
    raise refused(
        s.instruction,
        "no .im2col::w and no .im2col::w::128, which TMA has from sm_100 on",
        "load with .tile or .im2col (halo-load of this compiler's pipelines), or run it on the "
        "simulated machine",
    )


def rule(i: Instruction) -> Rule | None:
    """The rule that rewrites an instruction; None if it is left unchanged."""
    words = i.mnemonic.split(".")
    first, last = words[0], words[-1]
    if last == "f32x2" and first in ("add", "sub", "mul", "fma"):
        return _halves
    if first in ("min", "max") and last == "f32" and len(i.operands) == 4:
        return _of_three
    if first in ("add", "sub", "fma") and words[-2:] in (["f32", "f16"], ["f32", "bf16"]):
        return _mixed
    if first == "cvt" and {*NARROW, "ue8m0x2"} & {*words}:
        return _convert
    if first in ("ld", "st") and ("v8" in words or ("v4" in words and last in _LONG)):
        return _wide_access
    if first == "redux" and last == "f32":
        return _redux
    if i.mnemonic.startswith("st.bulk"):
        return _zero
    if i.mnemonic.startswith("cp.async.bulk.tensor."):
        if {"tile::gather4", "tile::scatter4"} & {*words}:
            return _rows
        if {"im2col::w", "im2col::w::128"} & {*words}:
            return _wide
    if first == "clusterlaunchcontrol":
        return _cancel if words[1] == "try_cancel" else _query
    return None

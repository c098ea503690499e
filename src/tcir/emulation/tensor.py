"""Table that maps tcgen05 instructions to calls of the helper functions (PTX ISA 9.7.16).

Each rule receives the words of the instruction and a `Sequence`, which it fills. A rule leaves the
sequence empty if the instruction has no effect under emulation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcir.emulation.fuzz import GARBAGE, Late
from tcir.emulation.sequence import Sequence, refused
from tcir.interp.ptx.syntax import Address, Imm, Operand, Sink, Vector

Rule = Callable[["Qualifiers", Sequence], None]

END, MMA, CP, SHIFT, COMMIT = range(5)
A_IN_TMEM, ADD_D, ASHIFT, WS = 1 << 8, 1 << 9, 1 << 10, 1 << 11
SPARSE, MASKED, ZEROS, PAIR, MULTICAST = 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 27
KINDS = ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4")
CP_SHAPES = ("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")
SHAPES = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2")
COLUMN, LANE = 128 * 4, 4
"""Bytes between words of neighbouring columns, and of neighbouring lanes, in the layout of emulated
tensor memory."""


@dataclass(frozen=True)
class Fuzz:
    """The fuzz (late completion) of one instruction.

    on:   whether asynchronous operations complete late
    late: if this instruction is a load or store, its late access
    due:  if this instruction is a wait, the accesses that it delivers
    """

    on: bool = False
    late: Late | None = None
    due: tuple[Late, ...] = ()


class Qualifiers:
    """The words of a mnemonic after `tcgen05.NAME`. A rule removes the words that it knows; the
    words that remain are unknown.
    """

    def __init__(self, sequence: Sequence, clustered: bool, fuzz: Fuzz) -> None:
        self.instruction = sequence.instruction
        self.operands = self.instruction.operands
        self.words = self.instruction.mnemonic.split(".")[2:]
        self.clustered = clustered
        self.fuzz = fuzz

    def take(self, *words: str) -> str | None:
        """Removes and returns the first of these words that the mnemonic contains; None if it
        contains none."""
        for word in words:
            if word in self.words:
                self.words.remove(word)
                return word
        return None

    def starting(self, prefix: str) -> str | None:
        """Removes the word with this prefix and returns the rest of the word; None if there is no
        such word.
        """
        for word in self.words:
            if word.startswith(prefix):
                self.words.remove(word)
                return word[len(prefix) :]
        return None

    def pair(self) -> int:
        """`PAIR` for `.cta_group::2`, otherwise 0."""
        return PAIR if self.starting("cta_group::") == "2" else 0

    def done(self) -> None:
        """Raises EmulationError if a word is left, because no rule knows it."""
        if self.words:
            raise refused(
                self.instruction,
                f"no .{self.words[0]}, which is not emulated, got it",
                "run it on the simulated machine, which names instructions that it does not model",
            )


Value = str | int
"""A register, or a number."""


@dataclass
class Command:
    """A command for the helper warps; `tensor_core.cu` has the same fields in the same order.

    off: masks of disabled lanes
    """

    op: Value
    d: Value = 0
    a: Value = 0
    b: Value = 0
    idesc: Value = 0
    sfa: Value = 0
    sfb: Value = 0
    metadata: Value = 0
    zeros: Value = 0
    off: tuple[str, ...] = ()

    def issue(self, s: Sequence) -> None:
        """Emits a call that puts the command into the ring buffer from which the helper warps
        read.
        """
        masks: list[Value] = [*self.off, *[0] * (8 - len(self.off))]
        s.call(
            "issue", (32, self.op), (32, self.d), (64, self.a), (64, self.b), (32, self.idesc),
            (32, self.sfa), (32, self.sfb), (32, self.metadata), (64, self.zeros),
            *((32, mask) for mask in masks),
        )  # fmt: skip


def _mma(f: Qualifiers, s: Sequence) -> None:
    op = MMA | f.pair()
    kind = f.starting("kind::")
    if kind not in KINDS:
        raise refused(f.instruction, f"a kind of {', '.join(KINDS)}, got {kind}", "use one")
    op |= KINDS.index(kind) << 20
    ws, sparse, scaled = (f.take(word) is not None for word in ("ws", "sp", "block_scale"))
    op |= (WS if ws else 0) | (SPARSE if sparse else 0)
    vector, block = f.starting("scale_vec::"), f.starting("block")
    if scaled:
        count = {"mxf8f6f4": 1, "mxf4": 2}.get(kind, 4)
        if vector is not None:
            count = int(vector[0])
        elif kind == "mxf4nvf4":
            count = 2 if block == "32" else 4
        op |= count << 24
    if f.take("ashift"):
        op |= ASHIFT
    f.starting("collector::")
    f.done()
    rest = list(f.operands)
    d = s.tensor_address(rest.pop(0))
    a = rest.pop(0)
    if isinstance(a, Address):
        op |= A_IN_TMEM
        at = s.tensor_address(a)
        left = s.new(64)
        s.do(f"cvt.u64.u32 {left}, {at}")
    else:
        left = s.value(a)
    right = s.value(rest.pop(0))
    metadata = s.tensor_address(rest.pop(0)) if sparse else 0
    idesc = s.value(rest.pop(0))
    scales: tuple[Value, Value] = (0, 0)
    if scaled:
        scales = s.tensor_address(rest[0]), s.tensor_address(rest[1])
        del rest[:2]
    off: tuple[str, ...] = ()
    if rest and isinstance(rest[0], Vector):
        off = tuple(map(s.value, rest.pop(0).items))  # type: ignore[union-attr]
        op |= MASKED
    add = s.chosen(rest.pop(0), ADD_D)
    zeros: Value = 0
    if rest and ws:
        zeros = s.value(rest.pop(0))
        op |= ZEROS
    elif rest:
        scale = rest.pop(0)
        if not isinstance(scale, Imm):
            raise refused(f.instruction, "a number as scale-input-d", "write it as one")
        if kind != "i8":
            op |= int(scale.value) << 16
    word = s.new(32)
    s.do(f"or.b32 {word}, {add}, {op}")
    Command(word, d, left, right, idesc, *scales, metadata, zeros, off).issue(s)


def _cp(f: Qualifiers, s: Sequence) -> None:
    shape = f.take(*CP_SHAPES)
    if shape is None:
        raise refused(f.instruction, f"a shape of {', '.join(CP_SHAPES)}", "use one")
    op = CP | f.pair() | CP_SHAPES.index(shape) << 8
    multicast = f.take("warpx2::02_13", "warpx2::01_23", "warpx4")
    op |= (multicast == "warpx2::01_23") << 11
    packed = f.take("b4x16_p64", "b6x16_p32")
    f.take("b8x16")
    op |= {None: 0, "b4x16_p64": 1, "b6x16_p32": 2}[packed] << 12
    f.done()
    Command(op, s.tensor_address(f.operands[0]), s.value(f.operands[1])).issue(s)


def _shift(f: Qualifiers, s: Sequence) -> None:
    op = SHIFT | f.pair()
    f.take("down")
    f.done()
    Command(op, s.tensor_address(f.operands[0])).issue(s)


def _commit(f: Qualifiers, s: Sequence) -> None:
    op = COMMIT | f.pair()
    f.take("mbarrier::arrive::one")
    spaced = f.take("shared::cluster") is not None
    multicast = f.take("multicast::cluster", "multicast::cluster::16b") is not None
    f.take("b64")
    f.done()
    at, barrier = s.shared_address(f.operands[0], spaced), s.new(64)
    s.do(f"cvt.u64.u32 {barrier}, {at}")
    ranks: Value = 0
    if multicast:
        op |= MULTICAST
        ranks = s.new(32)
        s.do(f"cvt.u32.u16 {ranks}, {s.value(f.operands[1])}")
    Command(op, ranks, barrier).issue(s)


def _alloc(f: Qualifiers, s: Sequence) -> None:
    pair = f.pair() != 0
    f.take("sync"), f.take("aligned"), f.take("b32")
    spaced = f.take("shared", "shared::cta") is not None
    f.done()
    at, columns = s.shared_address(f.operands[0], spaced), s.value(f.operands[1])
    s.call("alloc", (32, at), (32, columns), (32, int(f.fuzz.on)), (32, int(pair)))


def _dealloc(f: Qualifiers, s: Sequence) -> None:
    f.pair()
    f.take("sync"), f.take("aligned"), f.take("b32")
    f.done()
    at, columns = (s.value(each) for each in f.operands)
    s.call("dealloc", (32, at), (32, columns), (32, int(f.fuzz.on)))


def _nothing(f: Qualifiers, s: Sequence) -> None:
    """Has no effect: a permit, or a fence between the program's own barriers, which the GPU
    orders."""


def _wait(f: Qualifiers, s: Sequence) -> None:
    """Delivers late accesses and makes stores visible to the helpers. The registers of a load need
    no wait."""
    for late in f.fuzz.due:
        for each in late.delivery():
            s.do(each)
    if s.instruction.mnemonic.startswith("tcgen05.wait::st"):
        s.do(f"fence.acq_rel.{'gpu' if f.clustered else 'cta'}")


def _places(shape: str, registers: int, packed: bool) -> list[int]:
    """Offsets in bytes from a thread's first word to the word of each register."""
    found = []
    for r in range(registers):
        lane, column = {
            "32x32b": (0, r),
            "16x64b": (0, 2 * r),
            "16x128b": (8 * (r & 1), 4 * (r >> 1)),
            "16x256b": (8 * (r >> 1 & 1), (r & 1) + 8 * (r >> 2)),
            "16x32bx2": (0, r),
        }[shape]
        found.append(lane * LANE + column * COLUMN * (2 if packed else 1))
    return found


def _access(f: Qualifiers, s: Sequence, packing: str, address: Operand) -> tuple[str, str, bool]:
    """Computes the place of a thread's first word; returns its register, the shape of the access,
    and whether it is packed."""
    f.take("sync"), f.take("aligned"), f.take("b32")
    shape = f.take(*SHAPES)
    if shape is None:
        raise refused(f.instruction, f"a shape of {', '.join(SHAPES)}", "use one")
    f.take(*(f"x{1 << n}" for n in range(8)))
    packed = f.take(packing) is not None
    f.done()
    distance = 0
    if shape == "16x32bx2":
        split = f.operands[2 if s.instruction.mnemonic.startswith("tcgen05.ld") else 1]
        if not isinstance(split, Imm):
            raise refused(f.instruction, "a number as half-split offset", "write it as one")
        distance = int(split.value)
    at, place = s.tensor_address(address), s.new(64)
    s.call(
        "access",
        (32, at),
        (32, SHAPES.index(shape)),
        (32, distance),
        (32, int(packed)),
        result=place,
    )
    return place, shape, packed


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _ld(f: Qualifiers, s: Sequence) -> None:
    place, shape, packed = _access(f, s, "pack::16b", f.operands[1])
    targets = _items(f.operands[0])
    late = f.fuzz.late
    do = late.deliver.append if late else s.do
    if late:
        place = _pending(s, late, place)
    parts = [late.copy() if late else s.new(32) for _ in range(2)] if packed else []
    for target, byte in zip(targets, _places(shape, len(targets), packed), strict=True):
        if isinstance(target, Sink):
            continue
        if late:
            s.do(f"mov.b32 {s.value(target)}, {GARBAGE}")
        if not packed:
            do(f"ld.cg.b32 {s.value(target)}, [{place}+{byte}]")
            continue
        for n, part in enumerate(parts):
            do(f"ld.cg.b32 {part}, [{place}+{byte + n * COLUMN}]")
        do(f"prmt.b32 {s.value(target)}, {parts[0]}, {parts[1]}, 0x5410")


def _st(f: Qualifiers, s: Sequence) -> None:
    place, shape, packed = _access(f, s, "unpack::16b", f.operands[0])
    sources = _items(f.operands[-1])
    late = f.fuzz.late
    if late:
        place = _pending(s, late, place)
    do = late.deliver.append if late else s.do
    half = s.new(32) if packed and not late else ""
    for source, byte in zip(sources, _places(shape, len(sources), packed), strict=True):
        for n, select in enumerate(("0x5410", "0x5432") if packed else ("",)):
            value = s.value(source)
            if late or packed:
                kept = late.copy() if late else half
                # upper halves as on the machine
                s.do(
                    f"prmt.b32 {kept}, {value}, 0xcbcb, {select}"
                    if packed
                    else f"mov.b32 {kept}, {value}"
                )
                value = kept
            do(f"st.cg.b32 [{place}+{byte + n * COLUMN}], {value}")


def _pending(s: Sequence, late: Late, place: str) -> str:
    """Records the place of a late access and marks it as pending; returns the register with the
    place."""
    s.do(f"mov.b64 {late.place}, {place}")
    s.do(f"setp.eq.u32 {late.flag}, 0, 0")
    return late.place


RULES: dict[str, Rule] = {
    "alloc": _alloc,
    "dealloc": _dealloc,
    "relinquish_alloc_permit": _nothing,
    "fence::before_thread_sync": _nothing,
    "fence::after_thread_sync": _nothing,
    "wait::ld": _wait,
    "wait::st": _wait,
    "ld": _ld,
    "st": _st,
    "cp": _cp,
    "shift": _shift,
    "mma": _mma,
    "commit": _commit,
}
"""Rules by the name that follows `tcgen05.`."""


def rewrite(sequence: Sequence, clustered: bool, fuzz: Fuzz) -> None:
    """Fills the sequence with the replacement of its tcgen05 instruction. Raises EmulationError for
    an unknown instruction.
    """
    name = sequence.instruction.mnemonic.split(".")[1]
    if name not in RULES:
        raise refused(
            sequence.instruction,
            f"an instruction of {', '.join(RULES)}",
            "sm_100a has no other",
        )
    RULES[name](Qualifiers(sequence, clustered, fuzz), sequence)

"""Faults in the PTX of the kernels, one at a time, as both judge them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Replacement = str | Callable[[re.Match[str]], str]

WAIT = r"mbarrier\.try_wait[^;]*;\s*not\.pred[^;]*;\s*@%p\d+ bra[^;]*;"
ONCE = r"(mbarrier\.try_wait[^;]*;\s*not\.pred[^;]*;\s*)@%p\d+ bra[^;]*;"
PARITY = r"bfe\.u32 \t(%r\d+), %r\d+, 1, 1;"
FLIPPED = r"\g<0> xor.b32 \1, \1, 1;"
LOAD = r"cp\.async\.bulk\.tensor[^;]*;"
COMMIT = r"tcgen05\.commit[^;]*;"
MMA_COMMIT = r"(tcgen05\.mma[^;]*;)((?:(?!tcgen05)[^;]*;)*\s*)(tcgen05\.commit[^;]*;)"
BARRIER = r"bar\.sync \t0;"
FIRST_WARP_BARRIER = r"@first bar\.sync [^;]*;\s*@!first bar\.arrive [^;]*;"
BYTES = r"(mov\.b32 \t%r\d+, )(\d{5});(?=\s*mbarrier\.arrive\.expect_tx)"
COUNT = r"(mov\.b32 \t%r\d+, )1;(?=\s*mbarrier\.init)"
STEPS = r"(setp\.gt\.s32 \t%p\d+, %r\d+, )4;"
ROWS = r"(sub\.s32 \t%r\d+, )120,"
SLOTS_OF_B = r"(add\.s32 \t%r\d+, %r\d+, )32768;"
ROW_BYTES = r"(shl\.b32 \t%r\d+, %r\d+, )6;(?=\s*shl\.b32 \t%r\d+, %r4, 5;)"
LANES = r"(shl\.b32 \t%r\d+, %r2, )21;"
DEALLOC = r"tcgen05\.dealloc[^;]*;"
WAIT_LD = r"tcgen05\.wait::ld[^;]*;"
AFTER, BEFORE = r"tcgen05\.fence::after[^;]*;", r"tcgen05\.fence::before[^;]*;"
INIT_FENCE = r"fence\.mbarrier_init[^;]*;"
COPY = r"tcgen05\.cp[^;]*;"
A_COLUMNS = r"(tcgen05\.mma\S* \[(%r\d+)\], )\[%r\d+\]"
SLAB_COLUMNS = r"(tcgen05\.cp\S* \t\[%r\d+\+)32\]"
WAIT_GROUP = r"(cp\.async\.wait_group \t)2;"


def more(number: int) -> Callable[[re.Match[str]], str]:
    """The second group and a number."""
    return lambda match: f"{match[1]}{int(match[2]) + number};"


LEGAL = "the edit is legal here, so neither judge has to find anything"
IN_FLIGHT = "it judges neither values nor operations in flight when the CTA ends"
SIZES = "it does not know where a buffer ends"
NAMED = "it names the fault, but says that it cannot judge it"
REGISTERS = (
    "in the SASS of ptxas, a use of the registers waits for the load, so the machine only warns; "
    "under `--ordering=isa` it reports a race, as the text of the PTX ISA requires"
)
FENCES = "it does not check fences; under `--ordering=isa` the machine reports an error"
UNDEFINED = "it does not check that bytes are written before they are read"
VALUES = "it judges no values, and it reads the kernel without `.ashift`"


@dataclass(frozen=True)
class Mutant:
    """One fault.

    subject: its name in `kernels.SUBJECTS`
    pattern: a regular expression; its match number `index` is replaced
    machine: what the machine says, as `endtoend.breaking.Caught.by`; "" if nothing
    prover:  sentryward's word
    because: why they disagree, where they do
    """

    what: str
    subject: str
    pattern: str
    replacement: Replacement
    index: int
    machine: str
    prover: str
    because: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}"


GEMM, CONV, GEMV = "gemm", "conv-shift-reuse", "gemv-padded-n, 64 columns"
WARP, WARP_ASYNC = "matmul-warp, TMA", "matmul-warp, cp.async"
RACE, DEADLOCK, ILLEGAL = "hazard: race", "deadlock", "illegal: "
NOT_SYNCED, LIFECYCLE, RACES, FREE = (
    "not_wellsynced", "invalid_lifecycle", "potential_race", "race_free"
)  # fmt: skip

MUTANTS = [
    Mutant("wait for an empty slot deleted", GEMM, WAIT, "", 0, DEADLOCK, NOT_SYNCED),
    Mutant("wait for a full slot deleted", GEMM, WAIT, "", 1, DEADLOCK, NOT_SYNCED),
    Mutant("wait for the accumulator deleted", GEMM, WAIT, "", 2, RACE, LIFECYCLE),
    Mutant("wait for an empty slot tried once", GEMM, ONCE, r"\1", 0, RACE, NOT_SYNCED),
    Mutant("wait for a full slot tried once", GEMM, ONCE, r"\1", 1, RACE, NOT_SYNCED),
    Mutant("parity of the empty slot flipped", GEMM, PARITY, FLIPPED, 0, DEADLOCK, NOT_SYNCED),
    Mutant("parity of the full slot flipped", GEMM, PARITY, FLIPPED, 1, DEADLOCK, NOT_SYNCED),
    Mutant("expect_tx 16 bytes too few", GEMM, BYTES, more(-16), 0, DEADLOCK, NOT_SYNCED),
    Mutant("expect_tx 16 bytes too many", GEMM, BYTES, more(16), 0, DEADLOCK, NOT_SYNCED),
    Mutant("load of B deleted", GEMM, LOAD, "", 1, DEADLOCK, NOT_SYNCED),
    Mutant("commit to the empty slot deleted", GEMM, COMMIT, "", 0, DEADLOCK, NOT_SYNCED),
    Mutant("commit to the accumulator deleted", GEMM, COMMIT, "", 1, DEADLOCK, NOT_SYNCED),
    Mutant("commit in front of the last mma", GEMM, MMA_COMMIT, r"\2\3\1", 0, RACE, LIFECYCLE),
    Mutant("an mbarrier of count 2", GEMM, COUNT, r"\g<1>2;", 1, DEADLOCK, NOT_SYNCED),
    Mutant("bar.sync after the mbarriers' init deleted", GEMM, BARRIER, "", 0,
           ILLEGAL + "bad-tmem-access", NOT_SYNCED),
    Mutant("bar.sync before the deallocation deleted", GEMM, BARRIER, "", 1,
           ILLEGAL + "tensor-memory-columns", LIFECYCLE),
    Mutant("loads run one step too far", GEMM, STEPS, r"\g<1>5;", 0,
           "hazard: never-awaited", FREE, IN_FLIGHT),
    Mutant("products run one step too far", GEMM, STEPS, r"\g<1>5;", 1, DEADLOCK, NOT_SYNCED),
    Mutant("products end one step early", GEMM, STEPS, r"\g<1>3;", 1,
           "hazard: never-awaited", FREE, IN_FLIGHT),
    Mutant("store to one row too many", GEMM, ROWS, r"\g<1>121,", 0,
           ILLEGAL + "out-of-bounds", FREE, SIZES),
    Mutant("slots of B begin 128 bytes early", GEMM, SLOTS_OF_B, r"\g<1>32640;", 0, RACE, RACES),
    Mutant("rows of the result overlap", GEMM, ROW_BYTES, r"\g<1>5;", 0, RACE, RACES),
    Mutant("load from another warp's lanes", GEMM, LANES, r"\g<1>20;", 0,
           ILLEGAL + "bad-tmem-access", "unsupported", NAMED),
    Mutant("deallocation deleted", GEMM, DEALLOC, "", 0,
           "hazard: tensor-memory-leak", "unsupported", NAMED),
    Mutant("wait::ld deleted", GEMM, WAIT_LD, "", 0,
           "warning: registers-before-wait", LIFECYCLE, REGISTERS),
    Mutant("fence::after_thread_sync of the mma deleted", GEMM, AFTER, "", 0, "", FREE, LEGAL),
    Mutant("fence::after_thread_sync of the epilogue deleted", GEMM, AFTER, "", 1,
           "warning: missing-fence-after", FREE, FENCES),
    Mutant("fence::before_thread_sync deleted", GEMM, BEFORE, "", 0, "", FREE, LEGAL),
    Mutant("fence.mbarrier_init deleted", GEMM, INIT_FENCE, "", 0,
           "warning: missing-init-fence", FREE, FENCES),
    Mutant("copy of a slab to tensor memory deleted", CONV, COPY, "", 1,
           "hazard: undefined-read", FREE, UNDEFINED),
    Mutant("one .ashift left out", CONV, r"\.ashift", "", 0, "difference", FREE, VALUES),
    Mutant("the accumulator as A", CONV, A_COLUMNS, r"\1[\2]", 0, RACE, RACES),
    Mutant("a slab over the accumulator", CONV, SLAB_COLUMNS, r"\g<1>24]", 0, RACE, RACES),
    Mutant("copy of scales deleted", GEMV, COPY, "", 0,
           "hazard: undefined-read", FREE, UNDEFINED),
    Mutant("wait for an empty slot deleted, of as many slots as steps", GEMV, WAIT, "", 0,
           "", FREE, LEGAL),
    Mutant("the first warp's barrier of the main loop deleted", WARP, FIRST_WARP_BARRIER, "", 1,
           RACE, NOT_SYNCED),
    Mutant("the first warp's barrier behind the first wait deleted", WARP, FIRST_WARP_BARRIER, "",
           0, "", FREE, LEGAL),
    Mutant("wait_group one group later", WARP_ASYNC, WAIT_GROUP, r"\g<1>3;", 1, RACE, RACES),
    Mutant("bar.sync of the main loop deleted", WARP_ASYNC, BARRIER, "", 1, RACE, RACES),
]  # fmt: skip

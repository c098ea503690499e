"""Draws the instructions that move data into and out of tensor memory, and the operands of the
tensor core.
"""

from __future__ import annotations

from dataclasses import dataclass

from .palette import BLUE, GREEN, ORANGE, PURPLE, category, light
from .picture import BLANK, Cell, Grid, Key, Picture

GLOBAL, SHARED, TENSOR, REGISTERS = "global", "shared", "tensor", "registers"
PLACES = (GLOBAL, SHARED, TENSOR, REGISTERS)
"""Memories, from the farthest."""
ISSUERS = {
    "one": (
        light(GREEN),
        "issued by one thread, asynchronous: an mbarrier or a bulk group ends it",
    ),
    "warp": (
        light(ORANGE),
        "by a warp for its 32 lanes, asynchronous: tcgen05.wait ends it",
    ),
    "thread": (light(BLUE), "by each thread, in program order"),
    "core": (
        light(PURPLE),
        "one thread asks the tensor core, asynchronous: tcgen05.commit to an mbarrier ends it",
    ),
}
"""Issuer of a move -> its colour, and a description with the event that ends the move."""


@dataclass(frozen=True)
class MemoryMove:
    """An instruction that moves data from one memory to another; `issuer`, the unit that issues it,
    is one of `ISSUERS`.
    """

    source: str
    target: str
    name: tuple[str, ...]
    issuer: str
    section: str


MOVES = (
    MemoryMove(GLOBAL, SHARED, ("TMA:", "cp.async.bulk", ".tensor"), "one", "9.7.9.27"),
    MemoryMove(SHARED, GLOBAL, ("TMA:", "cp.async.bulk", ".tensor"), "one", "9.7.9.27"),
    MemoryMove(GLOBAL, REGISTERS, ("ld.global",), "thread", '9.7.9, "ld"'),
    MemoryMove(REGISTERS, GLOBAL, ("st.global",), "thread", '9.7.9, "st"'),
    MemoryMove(SHARED, REGISTERS, ("ld.shared",), "thread", '9.7.9, "ld"'),
    MemoryMove(REGISTERS, SHARED, ("st.shared",), "thread", '9.7.9, "st"'),
    MemoryMove(SHARED, TENSOR, ("tcgen05.cp", "by descriptor"), "core", "9.7.16.9"),
    MemoryMove(TENSOR, TENSOR, ("tcgen05.shift", ".down"), "core", '9.7.16, "tcgen05.shift"'),
    MemoryMove(TENSOR, REGISTERS, ("tcgen05.ld",), "warp", "9.7.16.8"),
    MemoryMove(REGISTERS, TENSOR, ("tcgen05.st",), "warp", "9.7.16.8"),
)
"""All moves; a pair of memories that is not listed has no instruction."""
OPERANDS = (
    ("A", (SHARED, TENSOR), "read: by a descriptor, or at an address of tensor memory"),
    ("B", (SHARED,), "read: by a descriptor"),
    ("scales", (TENSOR,), "read: of a block-scaled mma"),
    ("sparsity", (TENSOR,), "read: the metadata of a sparse mma"),
    ("D", (TENSOR,), "read and written: the accumulator"),
)
"""Operands of tcgen05.mma, and the memories where each may be."""
LANES, COLUMNS, WARPS, STEP = 128, 512, 4, 64


def _moves() -> Grid:
    known = {(move.source, move.target): move for move in MOVES}
    rows = []
    for source in PLACES:
        row = []
        for target in PLACES:
            move = known.get((source, target))
            if move is None:
                row.append(BLANK if source == target else Cell(("no", "instruction")))
                continue
            fill, words = ISSUERS[move.issuer]
            about = f"{source} to {target}: {' '.join(move.name)} (PTX ISA {move.section}); {words}"
            row.append(Cell(move.name, fill, about=about))
        rows.append(row)
    return Grid(
        rows, list(PLACES), list(PLACES), "Moves", row_axis="from", column_axis="to",
        caption="An operand: TMA to shared memory, tcgen05.cp to tensor memory (scales; or A)\n"
        "A result: tcgen05.ld to registers, st.global; or st.shared and TMA to global memory",
    )  # fmt: skip


def _operands() -> Grid:
    rows = [
        [
            Cell(
                ("D", "in and out") if name == "D" else (name, "in"),
                ISSUERS["core"][0],
                about=f"{name} in {place} memory, {words}",
            )
            if place in places
            else Cell(("no",))
            for place in (SHARED, TENSOR, REGISTERS)
        ]
        for name, places, words in OPERANDS
    ]
    return Grid(
        rows,
        [name for name, *_ in OPERANDS],
        [SHARED, TENSOR, REGISTERS],
        "Operands of tcgen05.mma",
        row_axis="operand",
        column_axis="where it may be",
    )


def _structure() -> Grid:
    """Draws tensor memory with the warps that reach its lanes."""
    lanes = LANES // WARPS
    rows = [
        [
            Cell(
                (f"warp {warp}",),
                category(warp),
                about=f"lanes {lanes * warp} to {lanes * warp + lanes - 1}, columns {column} to "
                f"{column + STEP - 1}: tcgen05.ld and .st of warps whose number mod 4 is {warp}",
            )
            for column in range(0, COLUMNS, STEP)
        ]
        for warp in range(WARPS)
    ]
    return Grid(
        rows,
        [f"{lanes * w} to {lanes * w + lanes - 1}" for w in range(WARPS)],
        [f"{c} to\n{c + STEP - 1}" for c in range(0, COLUMNS, STEP)],
        "Tensor memory: 128 lanes x 512 columns of 32 bits, 256 KB per SM",
        row_axis="lanes",
        column_axis="columns",
        caption="A warp reaches 32 lanes, warp number mod 4, by ld and st;\n"
        "cp, shift and mma reach all lanes",
    )


def moves_view() -> Picture:
    """Draws the moves between the memories of sm_100a, the operands of its mma, and the lanes of
    tensor memory."""
    return Picture(
        "Into and out of tensor memory (sm_100a)",
        "Instructions that move data between global, shared and tensor memory and registers. There "
        "is none from global to tensor memory, nor from tensor to shared memory. The tensor core "
        "reads operands where they are, and registers never.",
        [_moves(), _operands(), _structure()],
        [Key(fill, words) for fill, words in ISSUERS.values()],
    )

"""Draws the loads and stores of one warp of a kernel on CUDA cores: the bytes that each lane
accesses.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from tcir.errors import InputError

from .palette import GREY, mix, viridis
from .picture import Cell, Grid, Key, Picture
from .walk import KernelWalk, Object, VisitedOp, nested

if TYPE_CHECKING:
    from tcir._mlir import ir

LANES, LINE = 32, 128
_DYNAMIC = -(1 << 31)
_BITS = re.compile(r"(?:vector<(\d+)x)?[a-z]+(\d+)")
_SPECIAL = re.compile(r"nvvm\.read\.ptx\.sreg\.(tid|ctaid)\.([xyz])")
_LAST = mix(GREY, "#FFFFFF", 0.3)


def _bytes(kind: str) -> int:
    """Bytes of a number type or a vector type."""
    match = _BITS.match(kind)
    if match is None:
        raise InputError(f"expected a load or store of numbers, got {kind}")
    return int(match[1] or 1) * int(match[2]) // 8


@dataclass
class _Access:
    """One execution of an instruction: the first byte of each lane in the accessed argument."""

    verb: str
    argument: int
    size: int
    starts: dict[int, int] = field(default_factory=dict)

    @property
    def lines(self) -> int:
        """Number of 128-byte lines that the access touches."""
        return len(
            {byte // LINE for at in self.starts.values() for byte in (at, at + self.size - 1)}
        )

    def __str__(self) -> str:
        lanes = sorted(self.starts)
        steps = {self.starts[b] - self.starts[a] for a, b in pairwise(lanes)}
        apart = f", {steps.pop()} a lane" if len(steps) == 1 else ""
        who = f"lanes {lanes[0]} to {lanes[-1]}" if len(lanes) > 1 else f"lane {lanes[0]}"
        lines = f"{self.lines} line{'s' * (self.lines > 1)} of {LINE}"
        return (
            f"{self.verb} of {self.size} bytes, argument {self.argument}: from byte "
            f"{min(self.starts.values())}{apart}; {who}; {lines}"
        )


@dataclass
class _Lane:
    """Follows one lane of a warp."""

    accesses: dict[tuple[int, int], _Access]
    numbers: dict[object, int]
    """Numbers of the kernel's ops."""
    cta: tuple[int, int, int]
    warp: int
    lane: int
    times: Counter[int] = field(default_factory=Counter)

    def visit(self, step: VisitedOp) -> object:
        special = _SPECIAL.fullmatch(step.name)
        if special:
            thread = (LANES * self.warp + self.lane, 0, 0)
            return (thread if special[1] == "tid" else self.cta)["xyz".index(special[2])]
        if step.name == "llvm.getelementptr":
            return self._pointer(step)
        if step.name == "llvm.load":
            self._access(step, "load", step.operands[0], str(step.operation.results[0].type))
        elif step.name == "llvm.store":
            stored = step.operation.operands[0]
            self._access(step, "store", step.operands[1], str(stored.type))
        return None

    def _pointer(self, step: VisitedOp) -> Object:
        base, *moves = step.operands
        (index,) = step.integers("rawConstantIndices")
        index = moves[0] if index == _DYNAMIC else index
        if not isinstance(index, int):
            raise InputError("expected addresses computed from indices, got one from data")
        kind = str(step.operation.attributes["elem_type"])
        return Object(base.kind, base.key, base.type, (base.slot or 0) + index * _bytes(kind))

    def _access(self, step: VisitedOp, verb: str, pointer: Object, kind: str) -> None:
        if pointer.kind != "argument":
            return  # shared memory
        number = self.numbers[step.operation]
        self.times[number] += 1
        access = _Access(verb, pointer.key, _bytes(kind))
        found = self.accesses.setdefault((number, self.times[number]), access)
        found.starts[self.lane] = pointer.slot or 0


def accesses_view(
    module: ir.Module, cta: tuple[int, int, int] = (0, 0, 0), warp: int = 0
) -> Picture:
    """Draws one row for each load and store of a warp, in program order."""
    kernels = [op for op in nested(module.operation) if "nvvm.kernel" in op.attributes]
    if not kernels:
        raise InputError(
            "expected a kernel of threads (llvm.func with nvvm.kernel), got none; lower the "
            "program first, e.g. tc-opt FILE --raise-block-scaled --convert-to-simt={rows=4}"
        )
    kernel = kernels[0]
    threads = int(re.findall(r"\d+", str(kernel.attributes["nvvm.reqntid"]).partition(":")[2])[0])
    if not 0 <= warp < -(-threads // LANES):
        raise InputError(f"expected a warp of 0..{-(-threads // LANES) - 1}, got {warp}")
    accesses: dict[tuple[int, int], _Access] = {}
    numbers = {op: number for number, op in enumerate(nested(kernel))}
    for lane in range(min(LANES, threads - LANES * warp)):
        KernelWalk(_Lane(accesses, numbers, cta, warp, lane).visit).function(kernel)
    found = list(accesses.values())
    if not found:
        raise InputError("expected a kernel that loads or stores its arguments, got none")
    cells = [[_cell(each, lane) for lane in range(LANES)] for each in found]
    labels = [f"{a.verb} arg {a.argument} +{min(a.starts.values())}" for a in found]
    return Picture(
        f"Loads and stores of {kernel.attributes['sym_name'].value}: warp {warp} of CTA "
        f"{','.join(map(str, cta))}",
        "Down: its instructions, in order. Across: the lanes; cells: the byte at which a lane "
        "begins, from the row's first.",
        [Grid(cells, labels, [str(lane) for lane in range(LANES)], column_axis="lane",
              row_axis="instruction")],
        [Key(viridis(0.15), "a row's first line of 128 bytes"), Key(viridis(0.9), "its last"),
         Key(_LAST, "takes no part", "hatch")],
        [str(each) for each in found],
    )  # fmt: skip


def _cell(access: _Access, lane: int) -> Cell:
    if lane not in access.starts:
        return Cell(("-",), _LAST, "hatch", f"lane {lane}: takes no part")
    first, last = min(access.starts.values()), max(access.starts.values())
    start = access.starts[lane]
    part = (start // LINE - first // LINE) / max(last // LINE - first // LINE, 1)
    about = f"lane {lane}: bytes {start} to {start + access.size - 1} of argument {access.argument}"
    return Cell((str(start - first),), viridis(0.15 + 0.75 * part), about=about)

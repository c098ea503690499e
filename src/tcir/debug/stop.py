"""A stopped run: the position of every warp, and the contents of registers and memories."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tcir.debug.control import Follower, LaneGroup, groups
from tcir.debug.names import named
from tcir.debug.show import lanes_of, ranges, rows_of_bytes, rows_of_words
from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.registers import VIEW_DTYPES, view
from tcir.interp.ptx.syntax import Address, Instruction, Pair, Reg, Site, Vector
from tcir.interp.ptx.warp import Warp
from tcir.machine.order.involved import lane_words
from tcir.run import LaunchError, RunReport

BYTES, ROWS, COLUMNS = 256, 4, 8
"""Default extent of a dump of shared memory (bytes) and of tensor memory (rows, columns)."""


SEEN_AS: dict[str, np.dtype] = {
    **{f"{kind}{8 * n}": np.dtype(f"{kind}{n}") for n in (1, 2, 4, 8) for kind in "u"},
    **{f"s{8 * n}": np.dtype(f"i{n}") for n in (1, 2, 4, 8)},
    "f16": np.dtype("f2"), "f32": np.dtype("f4"), "f64": np.dtype("f8"),
    "bf16": np.dtype(ml_dtypes.bfloat16), "f16x2": np.dtype("f2"), "f32x2": np.dtype("f4"),
    "bf16x2": np.dtype(ml_dtypes.bfloat16),
}  # fmt: skip
"""Types as which a register may be shown; x2: two halves, the lower one first."""


@dataclass(frozen=True)
class Register:
    """Values of a register in 32 lanes; lanes that were not written are masked (poison). undefined:
    mask of the unwritten lanes.

    The values of a predicate are bool; a register that is shown as two halves has rows of two
    values.
    """

    name: str
    type: str
    values: np.ma.MaskedArray
    undefined: int

    def fits(self, kind: str) -> bool:
        """Whether the register's bits can be shown as that type."""
        bits = np.ma.getdata(self.values).dtype
        dtype, halves = SEEN_AS.get(kind, bits), 2 if kind.endswith("x2") else 1
        return bits.kind != "b" and dtype.itemsize * halves == bits.itemsize

    def seen_as(self, kind: str) -> Register:
        """Returns the register with the same bits as another type: "f32", "s32", "f16x2", …
        (`SEEN_AS`)."""
        bits = np.ma.getdata(self.values)
        if kind not in SEEN_AS or bits.dtype.kind == "b":
            raise LaunchError(
                f"register {self.name}: expected a register other than a predicate, and one of "
                f"{', '.join(SEEN_AS)} to show it as, got {kind!r}"
            )
        dtype, halves = SEEN_AS[kind], 2 if kind.endswith("x2") else 1
        if dtype.itemsize * halves != bits.dtype.itemsize:
            raise LaunchError(
                f"register {self.name}: expected a type of {bits.dtype.itemsize} bytes, got {kind}"
            )
        values = bits.view(dtype).reshape((32, 2) if halves == 2 else 32)
        return Register(self.name, kind, _masked(values, self.undefined), self.undefined)

    def __str__(self) -> str:
        values = np.ma.getdata(self.values)
        return f"{self.name:<8} .{self.type:<6} {lanes_of(values, self.undefined)}"


def _masked(values: np.ndarray, undefined: int) -> np.ma.MaskedArray:
    lanes = np.array([bool(undefined >> lane & 1) for lane in range(32)])
    return np.ma.MaskedArray(
        values, np.broadcast_to(lanes[(...,) + (None,) * (values.ndim - 1)], values.shape)
    )


class Stop:
    """The state of a stopped run.

    reason: why the run stopped
    report: the report of `run_ptx`, up to the stop
    warp:   the warp at which the run stopped; None if there is no single warp (at a deadlock, or at
            the end)
    """

    def __init__(
        self, reason: str, report: RunReport, follower: Follower, site: Site | None = None
    ) -> None:
        self.reason, self.report, self._follower = reason, report, follower
        self.warp = follower.at.warp if follower.at is not None else None
        self._site = site

    # --- where --------------------------------------------------------------------------------
    @property
    def cta(self) -> Any:
        """The CTA to inspect: that of the stopped warp or, if there is none, the most recently
        started CTA.
        """
        if self.warp is not None:
            return self.warp.agent.cta
        return next(reversed(self._follower.warps), None)

    def positions(self) -> list[tuple[Warp, list[LaneGroup]]]:
        """Warps of the CTA, each with its groups of lanes."""
        return [(i.warp, groups(i)) for i in self._warps()]

    def _warps(self) -> list[WarpInterpreter]:
        return [] if self.cta is None else self._follower.warps.get(self.cta, [])

    def _find(self, warp: int | None) -> WarpInterpreter:
        if warp is None and self._follower.at is not None:
            return self._follower.at
        known = {i.warp.index: i for i in self._warps()}
        if (0 if warp is None else warp) not in known:
            listed = ", ".join(map(str, known)) or "none: no CTA is under way"
            raise LaunchError(f"warp: expected one of {listed}, got {warp}")
        return known[0 if warp is None else warp]

    def instruction(self) -> Instruction | None:
        """The next instruction of the warp's running lanes or, after a write to a watched place,
        the instruction that wrote.
        """
        stopped = self._follower.at
        if stopped is None:
            return None
        at = self._site or next((g.next.site for g in groups(stopped) if g.next), None)
        body = stopped.program.function.body or []
        return next((i for i in body if i.site is at), None)

    # --- what ---------------------------------------------------------------------------------
    def registers(
        self, names: Iterable[str] | None = None, *, warp: int | None = None
    ) -> list[Register]:
        """Registers of a warp by name, or "%d0..%d31"; default: the operands of `instruction`."""
        chosen = self._find(warp)
        function = chosen.program.function
        if names is None:
            instruction = self.instruction() if chosen is self._follower.at else None
            found = _registers(instruction) if instruction else []
        else:
            known = [r.name for r in function.registers]
            wanted = [name for words in names for name in named(words, known)]
            found = [r for n in wanted for r in function.registers if r.name == n]
        return [_register(chosen.warp, reg) for reg in found]

    def all_registers(self, *, warp: int | None = None) -> list[Register]:
        """Every register that the warp has written in at least one lane."""
        chosen = self._find(warp)
        read = [_register(chosen.warp, r) for r in chosen.program.function.registers]
        live = chosen.warp.live
        return [r for r in read if r.undefined & live != live]

    def shared(self, start: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns `size` bytes from address `start` of the window of shared memory, and a mask of
        the defined bytes. Without an order seed, the first address of the window is 0x400.
        """
        smem = self._memory("shared memory").smem
        if start < smem.start or size < 0 or start + size > smem.size:
            raise LaunchError(
                f"shared memory: expected bytes in [{smem.start:#x}, {smem.size:#x}), got "
                f"{start:#x}..{start + size:#x}"
            )
        where = slice(start, start + size)
        return smem.data[where].copy(), smem.defined[where].copy()

    def tensor_memory(
        self, rows: tuple[int, int], columns: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns words [lane, column] of half-open ranges, and a mask of the defined words."""
        tmem = self._memory("tensor memory").tmem
        for what, (low, high), limit in zip(
            ("lanes", "columns"), (rows, columns), tmem.words.shape, strict=True
        ):
            if not 0 <= low <= high <= limit:
                raise LaunchError(f"tensor memory: expected {what} in 0..{limit}, got {low}:{high}")
        where = (slice(*rows), slice(*columns))
        return tmem.words[where].copy(), tmem.defined[where].copy()

    def mbarriers(self) -> list[Any]:
        """The live mbarriers of the CTA, by address."""
        cta = self.cta
        return [] if cta is None else [b for _, b in sorted(cta.mbarriers.items())]

    def _memory(self, what: str) -> Any:
        if self.cta is None:
            raise LaunchError(f"{what}: no CTA is under way")
        return self.cta

    # --- text ---------------------------------------------------------------------------------
    def __str__(self) -> str:
        return "\n".join([self.where_text(), self.dump()])

    def where_text(self) -> str:
        """Reason of the stop, and the position of every warp of the CTA."""
        lines = [f"stopped: {self.reason}"]
        if self.cta is None:
            return "\n".join([*lines, "no CTA is under way"])
        lines.append(
            f"CTA {self.cta.index}, {len(self.cta.cluster.in_flight)} operations in flight"
        )
        lines += [f"    in flight: {o.site}" for o in self.cta.cluster.in_flight]
        for warp, found in self.positions():
            mark = "->" if warp is self.warp else "  "
            if not found:
                lines.append(f"{mark} warp {warp.index}: ended")
            for group in found:
                at = "the end" if group.next is None else str(group.next.site)
                lines.append(f"{mark} warp {warp.index}, {lane_words(group.lanes)}: {at}")
                mark = "  "
            if found and not warp.agent.ended and (warp.agent.waiting or warp.agent.polls):
                for pending in warp.agent.pending():
                    who = lane_words(pending.lanes) if len(found) > 1 else ""
                    lines.append(f"       {who}{' ' * bool(who)}waits for {pending.text}")
        return "\n".join(lines)

    def dump(self, specs: Iterable[str] = ()) -> str:
        """Parts of the state as text.

        specs: "registers", "registers=%r1,%d0..%d7" or "registers=all", each optionally with a warp
               ("registers@3=all") and a type ("registers:f32=%r1"; with "all", registers of another
               size are left out); "smem=0x400:0x480" (bytes); "tmem=0:4,0:16" (lanes, columns);
               "mbarriers". None: the instruction's registers, the mbarriers, and the beginning of
               the written memory
        """
        chosen = list(specs) or ["registers", "mbarriers", "smem", "tmem"]
        return "\n".join(line for spec in chosen for line in self._part(spec))

    def _part(self, spec: str) -> list[str]:
        if self.cta is None:
            return []
        name, _, value = spec.partition("=")
        name, _, kind = name.partition(":")
        name, _, number = name.partition("@")
        try:
            warp = int(number) if number else None
            match name:
                case "registers":
                    return self._registers_text(value, warp, kind)
                case "mbarriers":
                    return [str(b) for b in self.mbarriers()] or ["no mbarrier is alive"]
                case "smem":
                    return self._shared_text(value)
                case "tmem":
                    return self._tensor_text(value)
        except ValueError as error:
            if isinstance(error, LaunchError):
                raise
        raise LaunchError(
            f"dump: expected registers[@WARP][:TYPE][=NAMES|all], smem[=FROM:TO], "
            f"tmem[=LANE:LANE,COLUMN:COLUMN] or mbarriers, got {spec!r}"
        )

    def _registers_text(self, value: str, warp: int | None, kind: str) -> list[str]:
        if self.warp is None and warp is None and not value:
            return []
        index = self._find(warp).warp.index
        if value == "all":
            found = self.all_registers(warp=index)
        else:
            found = self.registers([value] if value else None, warp=index)
        if kind:
            found = [r.seen_as(kind) for r in found if value != "all" or r.fits(kind)]
        return [f"registers of warp {index}:", *(f"  {r}" for r in found)]

    def _shared_text(self, value: str) -> list[str]:
        smem = self.cta.smem
        if value:
            low, high = (int(n, 0) for n in value.split(":"))
            data, defined = self.shared(low, high - low)
            return [f"shared memory {low:#x}:{high:#x}", *rows_of_bytes(low, data, defined)]
        written = ranges(smem.defined)
        words = ", ".join(f"{a:#x}:{b:#x}" for a, b in written[:8]) or "nothing"
        more = f" and {len(written) - 8} more ranges" if len(written) > 8 else ""
        out = [f"shared memory, {smem.size - smem.start} bytes; written: {words}{more}"]
        if written:
            low, high = max(written, key=lambda r: r[1] - r[0])
            high = min(high, low + BYTES)
            out += rows_of_bytes(low, *self.shared(low, high - low))
        return out

    def _tensor_text(self, value: str) -> list[str]:
        tmem = self.cta.tmem
        if value:
            rows, columns = (tuple(int(n, 0) for n in part.split(":")) for part in value.split(","))
            words, defined = self.tensor_memory(_pair(rows), _pair(columns))
            return [
                f"tensor memory, lanes {rows[0]}:{rows[1]}",
                *rows_of_words(rows[0], columns[0], words, defined),
            ]
        if not tmem.allocations:
            return ["tensor memory: nothing is allocated"]
        listed = ", ".join(f"{b}:{b + n}" for b, n in sorted(tmem.allocations.items()))
        written = ranges(tmem.defined.any(axis=0))
        words_ = ", ".join(f"{a}:{b}" for a, b in written) or "nothing"
        out = [f"tensor memory: columns {listed} allocated; written: {words_}"]
        if written:
            low = written[0][0]
            high = min(written[0][1], low + COLUMNS)
            out += rows_of_words(0, low, *self.tensor_memory((0, ROWS), (low, high)))
        return out


def _pair(values: tuple[int, ...]) -> tuple[int, int]:
    low, high = values
    return low, high


def _registers(instruction: Instruction) -> list[Reg]:
    found: dict[int, Reg] = {}

    def visit(operand: Any) -> None:
        match operand:
            case Reg():
                found[operand.index] = operand
            case Vector():
                for item in operand.items:
                    visit(item)
            case Pair():
                visit(operand.first)
                visit(operand.second)
            case Address():
                visit(operand.base)
                for item in operand.coordinates or ():
                    visit(item)
            case _:
                visit(operand.reg) if hasattr(operand, "reg") else None

    for operand in (instruction.guard, *instruction.operands):
        visit(operand)
    return list(found.values())


def _register(warp: Warp, reg: Reg) -> Register:
    slot = reg.index
    if reg.type.size == 0:
        values = np.array([bool(warp.p[slot] >> lane & 1) for lane in range(32)])
    elif reg.type.size == 16:
        raise LaunchError(f"register: {reg.name} has 128 bits, which a dump cannot show")
    else:
        kind = view(reg.type)
        values = np.array(warp.v[kind][slot], VIEW_DTYPES[kind])
    return Register(reg.name, reg.type.name, _masked(values, warp.undef[slot]), warp.undef[slot])

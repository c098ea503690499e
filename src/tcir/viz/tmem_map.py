"""Draws the use of tensor memory in a kernel over its program: the columns that each step reads and
writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcir.errors import InputError

from .palette import EMPTY, OKABE_ITO, PAPER, light, mix
from .picture import Cell, Grid, Key, Picture
from .walk import KernelWalk, Object, VisitedOp, kernel_of, ring_slots, tile_shape, tmem_columns

UNIT = 8
"""Columns per cell: 8 columns hold the 32 bytes of one K slice."""
SCALES = 4
"""Columns of the scales of one mma."""
READ, WRITE = "R", "W"


@dataclass
class _Tile:
    column: int
    name: str
    type: str


@dataclass
class _Row:
    label: str
    uses: dict[int, set[str]] = field(default_factory=dict)
    steps: int = 0


@dataclass
class _Collector:
    allocated: int = 0
    tiles: dict[int, _Tile] = field(default_factory=dict)
    rows: list[_Row] = field(default_factory=list)

    def visit(self, step: VisitedOp) -> Any:
        handler = {
            "tc.tmem_alloc": self._alloc, "tc.tmem_dealloc": self._dealloc,
            "tc.tmem_tile": self._tile, "tc.enable_lanes": self._enable, "tc.cp": self._copy,
            "tc.cp_scales": self._copy_scales, "tc.mma": self._mma,
            "tc.mma_block_scale": self._scaled_mma, "tc.shift": self._shift,
            "tc.refresh": self._refresh, "tc.tmem_ld": self._load, "tc.tmem_st": self._store,
            "tc.tmem_st_words": self._store,
        }.get(step.name)  # fmt: skip
        if handler is not None:
            return handler(step)
        if step.name != "tc.slot" and self._touched(step):
            raise InputError(f"{step.name} uses tensor memory in a way this picture cannot show")
        return None

    def _alloc(self, step: VisitedOp) -> None:
        self.allocated += step.integer("columns")
        self._row(step, f"alloc {step.integer('columns')} columns")

    def _dealloc(self, step: VisitedOp) -> None:
        self._row(step, "dealloc")

    def _enable(self, step: VisitedOp) -> Object:
        tile: Object = step.operands[0]
        return tile

    def _copy(self, step: VisitedOp) -> None:
        _, target = step.operands[:2]
        self._use(self._row(step, "cp"), target, WRITE, step.integer("slice"))

    def _copy_scales(self, step: VisitedOp) -> None:
        _, tile, column = step.operands
        self._part(self._row(step, "cp scales"), tile, WRITE, column, SCALES)

    def _mma(self, step: VisitedOp) -> None:
        row = self._row(step, "mma")
        d, a, accumulate = step.operands[0], step.operands[1], step.operands[3]
        if a.type.startswith(("!tc.tmem", "!tc.ring")) and a.key in self.tiles:
            self._use(row, a, READ, step.integer("a_slice"))
            if step.flag("ashift"):
                self._use(row, a, WRITE, step.integer("a_slice"))
        self._accumulate(row, d, accumulate)

    def _scaled_mma(self, step: VisitedOp) -> None:
        row = self._row(step, "mma")
        d, _, _, *scales, accumulate = step.operands
        for which, tile in zip("ab", scales, strict=True):
            self._part(row, tile, READ, step.integer(f"sf{which}_column"), SCALES)
        self._accumulate(row, d, accumulate)

    def _accumulate(self, row: _Row, d: Object, accumulate: int) -> None:
        for kind in (WRITE, READ) if accumulate else (WRITE,):
            self._use(row, d, kind)

    def _shift(self, step: VisitedOp) -> None:
        row = self._row(step, "shift")
        for kind in (READ, WRITE):
            self._use(row, step.operands[0], kind, step.integer("slice"))

    def _refresh(self, step: VisitedOp) -> None:
        _, target = step.operands
        self._use(self._row(step, "refresh"), target, WRITE, step.integer("slice"))

    def _load(self, step: VisitedOp) -> None:
        tile, _, column = step.operands
        self._moved(step, "ld", tile, column, str(step.operation.results[0].type), READ)

    def _store(self, step: VisitedOp) -> None:
        values, tile, _, column = step.operands
        self._moved(step, "st", tile, column, values.type, WRITE)

    def _moved(
        self, step: VisitedOp, what: str, tile: Object, column: int, vector: str, kind: str
    ) -> None:
        """Records a tcgen05.ld or st of a vector of 32 lanes."""
        width = int(vector.split("x")[1].split("x")[0])
        row = self._row(step, f"{what} columns {column} to {column + width - 1}")
        self._part(row, tile, kind, column, width)

    def _touched(self, step: VisitedOp) -> bool:
        return any(isinstance(o, Object) and o.key in self.tiles for o in step.operands)

    def _tile(self, step: VisitedOp) -> Object:
        if "column" not in step.operation.attributes:
            raise InputError(
                "expected planned tensor memory (tc.tmem_tile with a column), got a tile without; "
                "run plan-memory first"
            )
        words = str(step.operation.results[0].type)
        rows, columns, element = tile_shape(words)
        slots = ring_slots(words)
        name = f"{rows}x{columns} {element}" + (f", {slots} slots" if slots > 1 else "")
        key = 1_000_000 + len(self.tiles)
        self.tiles[key] = _Tile(step.integer("column"), name, words)
        return Object("tmem", key, words)

    def _row(self, step: VisitedOp, what: str) -> _Row:
        at = f" i={step.iteration[0]}" if step.iteration and "column" not in what else ""
        label = f"{step.role}{at}: {what}".removeprefix(": ").strip()
        if not self.rows or self.rows[-1].label != label:
            same = [row for row in self.rows if row.label == label]
            if not same:
                self.rows.append(_Row(label))
                same = [self.rows[-1]]
            same[0].steps += 1
            return same[0]
        self.rows[-1].steps += 1
        return self.rows[-1]

    def _use(self, row: _Row, tile: Object, kind: str, k_slice: int | None = None) -> None:
        planned = self.tiles[tile.key]
        width = tmem_columns(planned.type)
        first = planned.column + (tile.slot or 0) * width
        columns = range(first, first + width)
        if k_slice is not None:
            columns = range(first + UNIT * k_slice, first + UNIT * (k_slice + 1))
        self._mark(row, columns, kind)

    def _part(self, row: _Row, tile: Object, kind: str, column: int, width: int) -> None:
        """Marks some columns of a tile in a row."""
        planned = self.tiles[tile.key]
        first = planned.column + (tile.slot or 0) * tmem_columns(planned.type) + column
        self._mark(row, range(first, first + width), kind)

    def _mark(self, row: _Row, columns: range, kind: str) -> None:
        for column in columns:
            row.uses.setdefault(column // UNIT, set()).add(kind)


def tmem_view(module: Any, cta: tuple[int, int, int] = (0, 0, 0)) -> Picture:
    """Draws one row per step (the roles one after the other), and in it one cell per 8 columns of
    the allocation.
    """
    kernel = kernel_of(module)
    found = _Collector()
    KernelWalk(found.visit, dict(zip("xyz", cta))).function(kernel)
    if not found.tiles or not found.allocated:
        raise InputError(
            "expected a kernel with tensor memory allocated and planned, got none; run the passes "
            "up to plan-memory"
        )
    units = -(-found.allocated // UNIT)
    owner: dict[int, int] = {}
    for number, tile in enumerate(found.tiles.values()):
        columns = tmem_columns(tile.type) * ring_slots(tile.type)
        for unit in range(tile.column // UNIT, -(-(tile.column + columns) // UNIT)):
            owner[unit] = number
    cells = [[_cell(unit, row, owner, found) for unit in range(units)] for row in found.rows]
    names = [
        f"{t.name}: columns {t.column} to "
        f"{t.column + tmem_columns(t.type) * ring_slots(t.type) - 1}"
        for t in found.tiles.values()
    ]
    return Picture(
        f"Tensor memory of {kernel.attributes['sym_name'].value}: {found.allocated} columns",
        "Down: the program of a CTA (roles run at the same time; each is in its own order). "
        "Across: 8 columns of all 128 lanes a cell. R is read, W is written.",
        [Grid(cells, [f"{row.label}{f' x{row.steps}' if row.steps > 1 else ''}" for row in
                      found.rows], [str(unit * UNIT) for unit in range(units)],
              column_axis="column", row_axis="step")],
        [*(Key(_strong(i), words) for i, words in enumerate(names)), Key(EMPTY, "not used"),
         Key(PAPER, "pale: not touched")],
        names,
    )  # fmt: skip


def _strong(number: int) -> str:
    return light(OKABE_ITO[number % len(OKABE_ITO)])


def _cell(unit: int, row: _Row, owner: dict[int, int], found: _Collector) -> Cell:
    if unit not in owner:
        return Cell(about="allocated, not used")
    name = list(found.tiles.values())[owner[unit]].name
    about = f"columns {unit * UNIT} to {unit * UNIT + UNIT - 1}: {name}"
    kinds = row.uses.get(unit)
    if kinds:
        return Cell(("".join(sorted(kinds)),), _strong(owner[unit]), about=about)
    return Cell((), mix(_strong(owner[unit]), PAPER, 0.8), about=about)

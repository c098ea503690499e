"""Views of layouts: indices, shared memory with its banks, the block of scale factors."""

from __future__ import annotations

import ast

from tcir.layout import SWIZZLES, Layout, LayoutError, Tensor, concatenate, phases, row_major
from tcir.layout.scale_factors import block

from .palette import EMPTY, category, viridis
from .picture import Cell, Grid, Key, Picture

LINE_BYTES, UNIT_BYTES = 128, 16


def parse_layout(words: str) -> Layout:
    """Parses ``shape:stride`` as `str(Layout)` prints it, or a shape alone."""
    shape, colon, stride = words.partition(":")
    try:
        parts = [ast.literal_eval(part) for part in ((shape, stride) if colon else (shape,))]
    except (ValueError, SyntaxError) as error:
        raise LayoutError(f"expected shape:stride such as (4,8):(8,1), got {words}") from error
    if not all(_is_int_tuple(part) for part in parts):
        raise LayoutError(f"expected ints and tuples of ints, got {words}")
    return Layout(*parts)


def _is_int_tuple(part: object) -> bool:
    if isinstance(part, tuple):
        return bool(part) and all(_is_int_tuple(item) for item in part)
    return isinstance(part, int) and not isinstance(part, bool)


def layout_view(layout: Layout) -> Picture:
    """Draws the index of every coordinate; the first mode runs downward, the other modes to the
    right.
    """
    if layout.size > 4096:
        raise LayoutError(f"expected at most 4096 elements to draw, got {layout.size}")
    rows = layout[0] if len(layout) > 1 else Layout(1, 0)
    rest = concatenate(*list(layout)[1:]) if len(layout) > 1 else layout
    top = max(layout.cosize - 1, 1)
    cells = [
        [
            Cell((str(rows(i) + rest(j)),), viridis((rows(i) + rest(j)) / top), about=f"({i}, {j})")
            for j in range(rest.size)
        ]
        for i in range(rows.size)
    ]
    return Picture(
        f"Layout {layout}",
        f"{layout.size} coordinates, indices 0 to {layout.cosize - 1}. Cells: the index.",
        [Grid(cells, list(map(str, range(rows.size))), list(map(str, range(rest.size))),
              row_axis="mode 0", column_axis="mode 1" if len(layout) < 3 else "modes 1 and up")],
        [Key(viridis(0), "index 0"), Key(viridis(0.5), f"index {top // 2}"),
         Key(viridis(1), f"index {top}")],
    )  # fmt: skip


def _lines(tensor: Tensor, rows: int, row_bytes: int, unit: int, title: str) -> Grid:
    """Draws shared memory in lines of 128 bytes, with the rows that one ldmatrix phase reads
    circled."""
    per_unit = UNIT_BYTES * 8 // tensor.element_bits
    holds: dict[int, tuple[int, int]] = {}
    for row in range(rows):
        for column in range(row_bytes // UNIT_BYTES):
            holds[tensor.address(row, column * per_unit) // UNIT_BYTES] = (row, column)
    read = [tensor.address(row, unit * per_unit) for row in range(8)]
    cells: list[list[Cell]] = []
    for line in range(-(-(max(holds) + 1) * UNIT_BYTES // LINE_BYTES)):
        cells.append([])
        for place in range(LINE_BYTES // UNIT_BYTES):
            address = line * LINE_BYTES + place * UNIT_BYTES
            held = holds.get(address // UNIT_BYTES)
            if held is None:
                cells[-1].append(Cell(("-",)))
                continue
            row, column = held
            mark = "ring" if address in read else ""
            about = f"address {address}: row {row}, bytes {16 * column} to {16 * column + 15}"
            cells[-1].append(Cell((f"r{row} u{column}",), category(column), mark, about))
    (phase,) = phases(read, UNIT_BYTES)
    verdict = "no conflict" if phase.conflicts == 0 else f"{phase.conflicts} conflicts"
    return Grid(
        cells,
        [f"{i * LINE_BYTES}" for i in range(len(cells))],
        [f"{4 * i}-{4 * i + 3}" for i in range(LINE_BYTES // UNIT_BYTES)],
        title=title,
        row_axis="address",
        column_axis="banks",
        caption=f"ldmatrix, rows 0 to 7 of unit {unit}: "
        f"{phase.wavefronts} pass{'es' if phase.wavefronts > 1 else ''} over the banks, "
        f"{verdict}",
    )


def smem_view(rows: int, columns: int, element_bytes: int, swizzle: str, unit: int) -> Picture:
    """Draws a row-major tile in shared memory, without and with a swizzle, and marks the rows that
    ldmatrix reads.
    """
    row_bytes = columns * element_bytes
    if swizzle not in SWIZZLES:
        raise LayoutError(f"expected a swizzle of {', '.join(SWIZZLES)}, got {swizzle}")
    if rows < 8 or rows > 64 or row_bytes % UNIT_BYTES or not UNIT_BYTES <= row_bytes <= 1024:
        raise LayoutError(
            f"expected 8 to 64 rows of a multiple of 16 bytes (at most 1024), got {rows} rows of "
            f"{row_bytes}"
        )
    units = row_bytes // UNIT_BYTES
    if not 0 <= unit < units:
        raise LayoutError(f"expected a unit from 0 to {units - 1}, got {unit}")
    plain = Tensor(row_major((rows, columns)), 0, 8 * element_bytes)
    grids = [_lines(plain, rows, row_bytes, unit, "no swizzle")]
    if swizzle != "NONE":
        swizzled = Tensor(plain.layout, 0, plain.element_bits, SWIZZLES[swizzle])
        grids.append(_lines(swizzled, rows, row_bytes, unit, f"{swizzle} swizzle"))
    return Picture(
        f"Shared memory: {rows} rows of {row_bytes} bytes, swizzle {swizzle}",
        "Each line is 128 bytes: 32 banks of 4. A cell is 16 bytes: unit u of row r of the tile. "
        "ldmatrix reads one unit of 8 rows per phase; two of them in the same banks conflict.",
        grids,
        [
            *(Key(category(u), f"unit {u}") for u in range(min(units, 8))),
            Key(EMPTY, "read by the phase", "ring"),
        ],
    )


def scale_factor_view() -> Picture:
    """Draws the 512-byte block of 128 x 4 scale factors, and its copies in tensor memory after
    tcgen05.cp."""
    layout = block()
    place = {layout(row, scale): (row, scale) for row in range(128) for scale in range(4)}
    cells: list[list[Cell]] = []
    for line in range(32):
        cells.append([])
        for byte in range(16):
            row, scale = place[16 * line + byte]
            about = (
                f"byte {16 * line + byte}: row {row}, scale {scale}; tensor memory: column "
                f"{byte // 4}, byte {byte % 4}, lanes {line}, {line + 32}, {line + 64}, {line + 96}"
            )
            cells[-1].append(Cell((f"r{row} s{scale}",), category(byte // 4), about=about))
    return Picture(
        "Block of scale factors: 128 rows x 4 scales, 512 bytes",
        "Row r of A (or column of B), scale s along K. tcgen05.cp.32x128b.warpx4 puts line i on "
        "lanes i, i+32, i+64 and i+96 of tensor memory, bytes 4c to 4c+3 in column c.",
        [Grid(cells, [f"{16 * i} = lane {i}" for i in range(32)],
              [f"{i}\ncol {i // 4}" for i in range(16)], row_axis="byte",
              column_axis="byte of the line, and column of tensor memory", gaps=(8, 4))],
        [Key(category(i), f"rows {32 * i} to {32 * i + 31}") for i in range(4)],
    )  # fmt: skip

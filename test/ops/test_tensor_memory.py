"""All shapes of tcgen05.ld, st and cp, against the tables of PTX ISA 9.7.16.8 and 9.7.16.9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .programs import Kernel, check, commit, fence, load, smem, tensor_map, tile, wait

X = '!tc.smem<array<i64: 128, 32>, i32, "K", "128B">'
Y = '!tc.smem<array<i64: 128, 16>, i8, "K", "NONE">'
T = "!tc.tmem<array<i64: 128, {}>, i32>"
THREADS = np.arange(32)


def vector(count: int) -> str:
    return f"vector<32x{count}xi32>"


def store(value: str, count: int, column: int, width: int) -> str:
    return (
        f'"tc.store_rows"(%{value}, %out, %m0, %c{column}) {{rows = 32 : i64, row_dim = 0 : i64, '
        f"operandSegmentSizes = array<i32: 1, 1, 2>}} : ({vector(count)}, memref<128x{width}xi32>, "
        "index, index) -> ()"
    )


def words(
    value: str,
    tile_: str,
    kind: str,
    count: int,
    column: int,
    shape: str,
    upper: bool = False,
    pack: bool = False,
    split: int | None = None,
) -> list[str]:
    more = f", split = {split} : i64" if split is not None else ""
    return [
        f'%{value} = "tc.tmem_ld_words"(%{tile_}, %quarter, %c{column}) {{shape = "{shape}", '
        f"upper = {str(upper).lower()}, pack = {str(pack).lower()}{more}}} : "
        f"({kind}, index, index) -> {vector(count)}",
        '"tc.tmem_wait"() {kind = "ld"} : () -> ()',
    ]


def stored(
    value: str,
    tile_: str,
    kind: str,
    count: int,
    column: int,
    shape: str,
    upper: bool = False,
    split: int | None = None,
) -> str:
    more = f", split = {split} : i64" if split is not None else ""
    return (
        f'"tc.tmem_st_words"(%{value}, %{tile_}, %quarter, %c{column}) {{shape = "{shape}", '
        f"upper = {str(upper).lower()}, pack = false{more}}} : "
        f"({vector(count)}, {kind}, index, index) -> ()"
    )


def copy(
    source: str,
    kind: str,
    target: str,
    into: str,
    shape: str,
    column: int,
    multicast: str = "",
    row: int = 0,
    byte: int = 0,
    more: str = "",
) -> str:
    return (
        f'"tc.cp_rows"(%{source}, %{target}) {{shape = "{shape}", multicast = "{multicast}", '
        f"row = {row} : i64, byte = {byte} : i64, column = {column} : i64{more}}} : "
        f"({kind}, {into}) -> ()"
    )


def kernel(mma: Sequence[str], epilogue: Sequence[str], tiles: Sequence[str], width: int) -> str:
    out = f"memref<128x{width}xi32>"
    return Kernel(
        arguments=[f"%x: memref<128x32xi32>, %y: memref<128x16xi8>, %out: {out}"],
        setup=[
            tensor_map("mx", "x", (128, 32), "i32", (32, 128)),
            tensor_map("my", "y", (128, 16), "i8", (16, 128), "NONE", "u8"),
            smem("sx", 0, X),
            smem("sy", 16384, Y),
        ],
        roles=[
            ("producer", [4], "one", [
                *load("mx", ["c0", "c0"], "sx", X, 16384),
                *load("my", ["c0", "c0"], "sy", Y, 2048),
            ]),
            ("mma", [5], "one", [wait("full"), fence("tcgen05.after"), *mma, commit("done")]),
            ("epilogue", [0, 1, 2, 3], "warp", [
                wait("done"), fence("tcgen05.after"), "%quarter = arith.addi %me, %c0 : index",
                "%m0 = arith.muli %me, %c32 : index", *epilogue, fence("tcgen05.before"),
            ]),
        ],
        smem=18432,
        columns=128,
        arrivals={"full": 2, "first": 1, "done": 1},
        tiles=tiles,
        constants=tuple(range(129)),
    ).text()  # fmt: skip


def inputs() -> tuple[Any, Any]:
    generator = np.random.default_rng(3)
    x = generator.integers(-(2**31), 2**31, (128, 32)).astype(np.int32)
    return x, generator.integers(-128, 128, (128, 16)).astype(np.int8)


MAPS: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "32x32b": lambda r: (THREADS, 0 * THREADS + r),
    "16x64b": lambda r: ((THREADS >> 2) + 8 * (THREADS & 1), (THREADS >> 1 & 1) + 2 * r),
    "16x128b": lambda r: ((THREADS >> 2) + 8 * (r & 1), (THREADS & 3) + 4 * (r >> 1)),
    "16x256b": lambda r: (
        (THREADS >> 2) + 8 * (r >> 1 & 1),
        2 * (THREADS & 3) + (r & 1) + 8 * (r >> 2),
    ),
}
"""Register -> (lane, column) of every thread (table in 9.7.16.8.1)."""


def read(image: Any, shape: str, count: int, column: int, upper: bool = False) -> Any:
    """Registers [128 threads, count] of what `image` [lanes, columns] holds."""
    out = np.zeros((128, count), np.int32)
    for warp in range(4):
        for r in range(count):
            lane, at = MAPS[shape](r)
            out[32 * warp : 32 * warp + 32, r] = image[32 * warp + 16 * upper + lane, column + at]
    return out


WHOLE = [copy("sx", X, "t", T.format(32), "128x256b", 8 * j, byte=32 * j) for j in range(4)]


def test_loads_of_every_shape() -> None:
    x, y = inputs()
    parts, epilogue, width = [], [], 0
    cases = [("16x64b", 4, 3, True), ("16x128b", 8, 5, False), ("16x256b", 8, 16, True),
             ("32x32b", 8, 24, False)]  # fmt: skip
    for i, (shape, count, column, upper) in enumerate(cases):
        epilogue += words(f"v{i}", "t", T.format(32), count, column, shape, upper)
        epilogue.append(store(f"v{i}", count, width, 40))
        parts.append(read(x, shape, count, column, upper))
        width += count
    epilogue += words("halves", "t", T.format(32), 4, 2, "16x32bx2", split=16)
    epilogue.append(store("halves", 4, width, 40))
    halves = np.zeros((128, 4), np.int32)
    packed = np.zeros((128, 8), np.int32)
    for warp in range(4):
        for r in range(4):
            rows = 32 * warp + (THREADS & 15)
            halves[32 * warp : 32 * warp + 32, r] = x[rows, 2 + r + 16 * (THREADS >= 16)]
    low, high = (x[:, 4 + n : 20 : 2].view(np.uint32) & 0xFFFF for n in range(2))
    packed = (low | high << np.uint32(16)).view(np.int32)
    epilogue += words("packed", "t", T.format(32), 8, 4, "32x32b", pack=True)
    epilogue.append(store("packed", 8, width + 4, 40))
    text = kernel(WHOLE, epilogue, [tile("t", 0, T.format(32))], 40)
    check(text, [x, y], np.concatenate([*parts, halves, packed], axis=1), (None, 1))


def test_stores_of_every_shape() -> None:
    """Both halves of each sub-partition, so that every word is written."""
    x, y = inputs()
    u = T.format(32)
    expected = np.zeros((128, 32), np.int32)
    epilogue = words("v", "t", T.format(32), 8, 0, "32x32b")
    for shape, count, column in (("16x64b", 8, 0), ("16x128b", 8, 16)):
        for upper in (False, True):
            epilogue.append(stored("v", "u", u, count, column, shape, upper))
            for warp in range(4):
                for r in range(count):
                    lane, at = MAPS[shape](r)
                    rows = 32 * warp + 16 * upper + lane
                    expected[rows, column + at] = x[32 * warp + THREADS, r]
    epilogue.append('"tc.tmem_wait"() {kind = "st"} : () -> ()')
    epilogue += [*words("back", "u", u, 32, 0, "32x32b"), store("back", 32, 0, 32)]
    text = kernel(WHOLE, epilogue, [tile("t", 0, T.format(32)), tile("u", 32, u)], 32)
    check(text, [x, y], expected, (None, 1))


def test_copies_of_every_shape() -> None:
    x, y = inputs()
    t = T.format(32)
    mma = [
        copy("sx", X, "t", t, "128x128b", 0, byte=16),
        copy("sx", X, "t", t, "64x128b", 4, "warpx2::02_13", row=8),
        copy("sx", X, "t", t, "64x128b", 8, "warpx2::01_23", byte=112),
        copy("sx", X, "t", t, "32x128b", 12, "warpx4", row=96, byte=32),
        copy("sx", X, "t", t, "128x256b", 16, byte=64),
        commit("first"),  # two copies to the same columns are not ordered
        wait("first"),
        copy("sx", X, "t", t, "4x256b", 16, row=40, byte=96),
        copy("sy", Y, "t", t, "128x128b", 24, more=', format = "b4x16_p64"'),
        copy("sy", Y, "t", t, "128x128b", 28),
    ]
    expected = np.zeros((128, 32), np.int32)
    lanes = np.arange(128)
    expected[:, 0:4] = x[:, 4:8]
    expected[:, 4:8] = x[8 + lanes % 64, 0:4]
    expected[:, 8:12] = x[lanes % 32 + 32 * (lanes // 64), 28:32]
    expected[:, 12:16] = x[96 + lanes % 32, 8:12]
    expected[:, 16:24] = x[:, 16:24]
    expected[31::32, 16:24] = x[40:44, 24:32]
    codes = y.view(np.uint8)[:, :8]
    nibbles = np.stack([codes & 15, codes >> 4], axis=2).reshape(128, 16)
    expected[:, 24:28] = np.ascontiguousarray(nibbles << 2).view(np.int32)  # bits 5..2 of a byte
    expected[:, 28:32] = y.view(np.int32)
    epilogue = [*words("v", "t", t, 32, 0, "32x32b"), store("v", 32, 0, 32)]
    check(kernel(mma, epilogue, [tile("t", 0, t)], 32), [x, y], expected, (None, 1))


def test_gathered_rows() -> None:
    rows = [3, 17, 0, 64, 5, 5, 127, 1]
    kind = '!tc.smem<array<i64: 8, 32>, i32, "K", "128B">'
    text = Kernel(
        arguments=["%x: memref<128x32xi32>, %out: memref<8x32xi32>"],
        setup=[
            tensor_map("mx", "x", (128, 32), "i32", (32, 1)),
            tensor_map("mo", "out", (8, 32), "i32", (32, 8)),
            smem("s", 0, kind),
        ],
        roles=[
            ("producer", [4], "one", [
                *load("mx", ["c0", *(f"c{r}" for r in rows[:4])], "s", kind, 512),
                *load("mx", ["c0", *(f"c{r}" for r in rows[4:])], "s", kind, 512, row=4),
            ]),
            ("epilogue", [0], "warp", [
                wait("full"),
                f'"tc.tma_store"(%mo, %c0, %c0, %s) {{row = 0 : i64, '
                f"operandSegmentSizes = array<i32: 1, 2, 1>}} : (!tc.tensor_map, index, index, "
                f"{kind}) -> ()",
                '"tc.bulk_commit"() : () -> ()',
                '"tc.bulk_wait"() {pending = 0 : i64, read = true} : () -> ()',
            ]),
        ],
        smem=1024,
        arrivals={"full": 2},
        constants=tuple(range(129)),
    ).text()  # fmt: skip
    x, _ = inputs()
    check(text, [x], x[rows], (None, 1))

"""Loads of mode ``im2col::w``: a row of an image, the same row of the next, and a halo behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine import MachineError
from tcir.passes.nvvm import movement

from .programs import Kernel, check, load, smem, tensor_map, wait

PIXELS, HALO, OFFSET, ROW, FIRST = 12, 4, 1, 1, 2
IMAGES, HEIGHT, WIDTH = 3, 3, 9
TILE = f'!tc.smem<array<i64: {PIXELS + HALO}, 64>, f16, "K", "128B">'


def walk() -> tuple[str, list[Any], Any]:
    """Text, input, and what lies in the tile: from pixel FIRST on, W of [-1, WIDTH - 1 + 1]."""
    strides = [128, 128 * WIDTH, 128 * WIDTH * HEIGHT]
    nbytes = 128 * (PIXELS + HALO)
    out = (PIXELS + HALO, 64)
    text = Kernel(
        arguments=[f"%x: memref<{IMAGES}x{HEIGHT}x{WIDTH}x64xf16>, %out: memref<{out[0]}x64xf16>"],
        setup=[
            f'%mx = "tc.make_tensor_map"(%x) {{mode = "im2col_w", dims = array<i64: 64, {WIDTH}, '
            f"{HEIGHT}, {IMAGES}>, strides = array<i64: {', '.join(map(str, strides))}>, box = "
            f"array<i64: 64, {PIXELS}>, element_strides = array<i64: 1, 1, 1, 1>, corners = "
            f'array<i64: -1, 1>, swizzle = "128B"}} : (memref<{IMAGES}x{HEIGHT}x{WIDTH}x64xf16>) '
            "-> !tc.tensor_map",
            tensor_map("mo", "out", out, "f16", (64, out[0])),
            smem("s", 0, TILE),
        ],
        roles=[
            ("producer", [4], "one", [
                load("mx", [], "s", TILE, nbytes)[0],
                f'"tc.tma_load"(%mx, %c0, %c{FIRST}, %c{ROW}, %c0, %c{OFFSET}, %s, %full) {{row = '
                f"0 : i64, nbytes = {nbytes} : i64, halo = {HALO} : i64, operandSegmentSizes = "
                "array<i32: 1, 4, 1, 1, 1>} : (!tc.tensor_map, index, index, index, index, index, "
                f"{TILE}, !tc.mbarrier) -> ()",
            ]),
            ("epilogue", [0], "warp", [
                wait("full"),
                '"tc.tma_store"(%mo, %c0, %c0, %s) {row = 0 : i64, operandSegmentSizes = '
                f"array<i32: 1, 2, 1>}} : (!tc.tensor_map, index, index, {TILE}) -> ()",
                '"tc.bulk_commit"() : () -> ()',
                '"tc.bulk_wait"() {pending = 0 : i64, read = true} : () -> ()',
            ]),
        ],
        smem=2048,
        arrivals={"full": 1},
    ).text()  # fmt: skip
    generator = np.random.default_rng(3)
    x = generator.integers(-64, 65, (IMAGES, HEIGHT, WIDTH, 64)).astype(np.float16)
    # Corners move with the offset: W from -1 + OFFSET to WIDTH + OFFSET, zeros outside the image.
    padded = np.zeros((IMAGES, WIDTH + 8, 64), np.float16)
    padded[:, 4 : 4 + WIDTH] = x[:, ROW]
    box = padded[:, 4 - 1 + OFFSET : 4 + WIDTH + OFFSET + 1].reshape(-1, 64)
    start = FIRST + 1
    return text, [x], box[start : start + PIXELS + HALO]


def test_a_row_and_the_next_image() -> None:
    check(*walk())


def test_a_load_of_another_mode_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A break of the lowering: ``.im2col::w::128`` from a map of ``.im2col::w``."""
    monkeypatch.setitem(movement._LOAD_MODES, "im2col_w", "im2col_w_128")
    with pytest.raises(MachineError, match="im2col_w"):
        check(*walk(), orders=(None,))

"""What a launch in lockstep finds again if it starts anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.interp.ptx.lockstep.saved import PART, Saved


@pytest.mark.parametrize("size", [0, 3, 8, PART - 8, PART, PART + 5, 2 * PART + 64])
@pytest.mark.parametrize("kind", ["one number", "first words only", "all but one byte", "noise"])
def test_bytes_come_back(kind: str, size: int) -> None:
    draw = np.random.default_rng(size)
    data = np.zeros(size + 8, np.uint8)[:size]
    numbers: Any = np.tile(np.frombuffer(np.float32(-1.5).tobytes(), np.uint8), size // 4 + 1)
    data[...] = draw.integers(0, 256, size) if kind == "noise" else numbers[:size]
    if kind == "first words only":
        data[64:] = 7
    elif kind == "all but one byte":
        data[size // 2 : size // 2 + 1] ^= 255
    wanted = data.copy()
    saved = Saved(data)
    data[...] = draw.integers(0, 256, size)
    saved.restore(data)
    np.testing.assert_array_equal(data, wanted)


def test_one_number_takes_no_room() -> None:
    saved = Saved(np.full(1 << 24, 9, np.uint8))
    assert sum(part.nbytes for part in vars(saved)["_parts"]) < 1024

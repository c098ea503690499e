"""Textures and surfaces (programs/textures.cu), compared with the formulas of the CUDA C++
Programming Guide, "Texture Fetching", computed texel by texel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from .test_program import PROGRAMS, run

MODES = ("wrap", "clamp", "mirror", "border")


def number(i: int) -> float:
    return ((i * 37 + 11) % 64) / 8 - 3


@pytest.fixture(scope="module")
def printed() -> dict[str, list[float]]:
    ended = run(PROGRAMS / "textures.cu")
    return numbers_of(ended.stdout, ended.returncode)


def numbers_of(output: str, status: int) -> dict[str, list[float]]:
    assert status == 0
    *rows, refused = output.splitlines()
    assert refused == "cudaErrorInvalidFilterSetting"
    return rows_of(rows)


def check_output(output: str, status: int) -> None:
    """Asserts what the tests of this file assert of the program's output."""
    printed = numbers_of(output, status)
    test_as_on_an_h200(printed)
    for mode, filtered, normalized in itertools.product(MODES, (0, 1), (0, 1)):
        test_lines(printed, mode, filtered, normalized)
    for check in (
        test_colors_are_read_as_numbers_from_0_to_1, test_a_volume, test_faces_of_a_cube,
        test_layers_beyond_the_last_are_the_last, test_linear_memory_is_zero_outside,
        test_a_gather_starts_at_the_lower_left, test_surfaces,
    ):  # fmt: skip
        check(printed)


def rows_of(rows: Sequence[str]) -> dict[str, list[float]]:
    """Numbers by name."""
    found = {}
    for row in rows:
        words = row.split()
        count = {"line": 4, "0": 2}.get(words[0], 1)
        found[" ".join(words[:count])] = [float(word) for word in words[count:]]
    return found


def place(x: float, size: int, mode: str, normalized: bool) -> float:
    """Coordinate in texels, by "Texture Object API": wrap is frac(x), mirror folds it; both need
    normalized coordinates, else they clamp."""
    if not normalized:
        return x
    if mode == "wrap":
        return (x - math.floor(x)) * size
    if mode == "mirror":
        part = x - math.floor(x)
        return (part if math.floor(x) % 2 == 0 else 1 - part) * size
    return x * size


def nearest(texels: Sequence[float], x: float, mode: str, normalized: bool) -> float:
    size = len(texels)
    i = math.floor(place(x, size, mode, normalized))
    if mode == "border" and not 0 <= i < size:
        return 5.0
    return texels[min(max(i, 0), size - 1)]


def linear(texels: Sequence[float], x: float, mode: str, normalized: bool) -> float:
    """(1 - a) T[i] + a T[i + 1] with i = floor(x - 0.5), and a in 1.8 fixed point."""
    size = len(texels)
    at = (x * size if normalized else x) - 0.5
    i = math.floor(at)
    a = round((at - i) * 256) / 256

    def texel(j: int) -> float:
        return nearest(texels, (j + 0.5) / size if normalized else j + 0.5, mode, normalized)

    return (1 - a) * texel(i) + a * texel(i + 1)


def test_as_on_an_h200(printed: dict[str, list[float]]) -> None:
    """All but a 16-bit unit in one value, whose rounding is unknown."""
    recorded = rows_of((PROGRAMS / "textures_h200.txt").read_text().splitlines())
    assert {*printed} - {*recorded} == {"0 driver"}
    for name, row in recorded.items():
        different = [pair for pair in zip(row, printed[name], strict=True) if pair[0] != pair[1]]
        assert len(different) <= (name == "plane"), name
        assert all(abs(a - b) < 1.6e-5 for a, b in different)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("filtered", [0, 1])
@pytest.mark.parametrize("normalized", [0, 1])
def test_lines(printed: dict[str, list[float]], mode: str, filtered: int, normalized: int) -> None:
    texels = [number(i) for i in range(8)]
    first, step = (np.float32(-1.5), np.float32(0.07)) if normalized else (-12, np.float32(0.56))
    read = linear if filtered else nearest
    points = [float(np.float32(np.float64(first) + i * np.float64(step))) for i in range(50)]
    expected = [read(texels, x, mode, bool(normalized)) for x in points]
    found = printed[f"line {mode} {filtered} {normalized}"]
    near = 2e-7
    if filtered and mode == "border":  # of y as well: the row is between rows of the border
        expected, near = [(5 + value) / 2 for value in expected], 8 / 256
    assert found == [pytest.approx(value, abs=near) for value in expected]
    if filtered:
        assert found != [nearest(texels, x, mode, bool(normalized)) for x in points]


def test_colors_are_read_as_numbers_from_0_to_1(printed: dict[str, list[float]]) -> None:
    colors = np.array([[11 * i, 255 - i, i * i, 255] for i in range(24)]) % 256 / 255
    grid = colors.reshape(4, 6, 4)

    def at(x: float, y: float, channel: int) -> float:
        rows = [linear(grid[j, :, channel].tolist(), x, "clamp", False) for j in range(4)]
        return linear(rows, y, "clamp", False)

    expected = [
        at(-0.75 + 1.1875 * x, -0.5 + 1.1875 * y, c)
        for y in range(5) for x in range(7) for c in range(4)
    ]  # fmt: skip
    assert printed["plane"] == [pytest.approx(value, abs=1e-5) for value in expected]


def test_a_volume(printed: dict[str, list[float]]) -> None:
    cells = np.array([number(i) for i in range(24)]).reshape(2, 3, 4)

    def point(i: int) -> float:
        return float(np.float32(np.float64(np.float32(0.03)) + i * np.float64(np.float32(0.31))))

    def along(values: np.ndarray, places: Sequence[float]) -> float:
        if not places:
            return float(values)
        rows = [along(part, places[1:]) for part in values]
        return linear(rows, places[0], "wrap", True)

    expected = [
        along(cells, (point(z), point(y), point(x)))
        for z in range(4) for y in range(4) for x in range(4)
    ]  # fmt: skip
    assert printed["volume"] == [pytest.approx(value, abs=8 / 256) for value in expected]


def test_layers_beyond_the_last_are_the_last(printed: dict[str, list[float]]) -> None:
    stack = 100 - 7 * np.arange(24).reshape(4, 2, 3)
    rows = stack[[3, 0, 1, 2, 3, 3]]  # layer -1 is the largest unsigned number
    assert printed["layers"] == rows[:, [0, 1, 1]].reshape(-1).tolist()


def test_faces_of_a_cube(printed: dict[str, list[float]]) -> None:
    """The guide's table of faces: x, -x, y, -y, z, -z."""
    faces = np.array([number(i) for i in range(24)]).reshape(6, 2, 2)
    table: list[Callable[[float, float, float], tuple[float, float, float]]] = [
        lambda x, y, z: (x, -z, -y), lambda x, y, z: (-x, z, -y), lambda x, y, z: (y, x, z),
        lambda x, y, z: (-y, x, -z), lambda x, y, z: (z, x, -y), lambda x, y, z: (-z, -x, -y),
    ]  # fmt: skip
    expected = []
    for i in range(32):
        x, y, z = number(3 * i), number(5 * i + 1), number(7 * i + 2)
        if abs(x) >= abs(y) and abs(x) >= abs(z):
            face = 0 if x >= 0 else 1
        elif abs(y) >= abs(z):
            face = 2 if y >= 0 else 3
        else:
            face = 4 if z >= 0 else 5
        m, s, t = table[face](x, y, z)
        column, row = (min(int((c / m + 1) / 2 * 2), 1) for c in (s, t))
        expected.append(faces[face, row, column])
    assert printed["cube"] == expected


def test_linear_memory_is_zero_outside(printed: dict[str, list[float]]) -> None:
    assert printed["fetched"] == [3 * i - 7 if 0 <= i < 20 else 0 for i in range(-2, 22)]


def test_a_gather_starts_at_the_lower_left(printed: dict[str, list[float]]) -> None:
    grid = np.array([number(i) for i in range(16)]).reshape(4, 4)
    expected = []
    for n in range(16):
        i, j = math.floor(n % 4 + 0.25 - 0.5), math.floor(n // 4 + 0.75 - 0.5)
        for column, row in ((i, j + 1), (i + 1, j + 1), (i + 1, j), (i, j)):
            expected.append(grid[min(max(row, 0), 3), min(max(column, 0), 3)])
    assert printed["gathered"] == expected


def test_surfaces(printed: dict[str, list[float]]) -> None:
    pairs = np.array([(i - 9, 1000 + i) for i in range(24)]).reshape(3, 8, 2)
    left = np.concatenate([np.zeros((3, 1, 2), int), pairs[:, :-1]], axis=1)
    expected = np.stack([2 * left[..., 0], left[..., 1] + 1], axis=-1)
    assert printed["surface"] == expected.reshape(-1).tolist()


def test_the_driver_reads_integers_as_floats_unless_told_otherwise(
    printed: dict[str, list[float]],
) -> None:
    row = np.array([(i - 9, 1000 + i) for i in range(8, 16)]) / 32767
    between = (row + row[[1, 2, 3, 4, 5, 6, 7, 7]]) / 2
    assert printed["0 driver"] == [pytest.approx(each, abs=3.2e-5) for each in between.reshape(-1)]


def test_a_store_outside_a_surface_traps() -> None:
    ended = run(PROGRAMS / "textures.cu", 9)
    assert ended.returncode == 1
    assert "surface-out-of-bounds: expected coordinates inside (32, 3)" in ended.stderr
    assert "got (32, 0), layer 0, lane 8" in ended.stderr

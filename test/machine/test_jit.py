"""Native code: what it computes, and how it is kept on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tcir.interp.ptx.isa.values.rounding import add_odd
from tcir.machine.jit import jit

SOURCE = """
import sys
from tcir.machine.jit import jit

@jit
def twice(x: int) -> int:
    return 2 * x

@jit
def total(x: int, y: tuple) -> int:
    return twice(x) + y[1]

assert total(4, (5, 6)) == 14
print("numba" in sys.modules)
"""


def run(folder: Path, home: Path) -> str:
    """What a process prints that executes the program there."""
    env = os.environ | {"HOME": str(home)}
    env.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(
        [sys.executable, folder / "program.py"], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def kept(folder: Path) -> list[Path]:
    """Object code below a folder."""
    return sorted(path for path in folder.rglob("native/*/*") if path.is_file())


def program(tmp_path: Path) -> tuple[Path, Path]:
    """A folder with the program, and an empty home."""
    folder, home = tmp_path / "program", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "program.py").write_text(SOURCE)
    return folder, home


def test_second_process_needs_no_compiler(tmp_path):
    folder, home = program(tmp_path)
    assert [run(folder, home) for _ in "ab"] == ["True", "False"]
    assert len(kept(folder / "__pycache__")) == 1
    assert not kept(home)


def test_another_constant_is_another_code(tmp_path):
    folder, home = program(tmp_path)
    run(folder, home)
    text = SOURCE.replace("2 * x", "3 * x").replace("14", "18")
    (folder / "program.py").write_text(text)  # only the function that is called has changed
    assert run(folder, home) == "True"
    assert len(kept(folder)) == 2


def test_damaged_code_is_made_again(tmp_path):
    folder, home = program(tmp_path)
    run(folder, home)
    (file,) = kept(folder)
    whole = file.read_bytes()
    file.write_bytes(whole[:100] + b"x" + whole[101:])
    assert [run(folder, home) for _ in "ab"] == ["True", "False"]
    assert file.read_bytes() == whole


def test_code_that_others_may_write_is_made_again(tmp_path: Path) -> None:
    folder, home = program(tmp_path)
    run(folder, home)
    (file,) = kept(folder)
    file.chmod(0o666)
    assert [run(folder, home) for _ in "ab"] == ["True", "False"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_folder_of_code_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    folder, home = program(tmp_path)
    run(folder, home)
    (folder / "__pycache__" / "native").chmod(0o777)
    assert [run(folder, home) for _ in "ab"] == ["True", "False"]
    assert len(kept(home)) == 1


def test_read_only_package_uses_the_home(tmp_path):
    folder, home = program(tmp_path)
    (folder / "__pycache__").write_text("")  # nobody, not even root, can write below a file
    assert [run(folder, home) for _ in "ab"] == ["True", "False"]
    assert len(kept(home)) == 1


def test_works_where_nothing_can_be_kept(tmp_path):
    folder, home = program(tmp_path)
    (folder / "__pycache__").write_text("")
    home.rmdir()
    home.write_text("")
    assert [run(folder, home) for _ in "ab"] == ["True", "True"]


def test_many_processes_at_once(tmp_path):
    folder, home = program(tmp_path)
    both = [
        subprocess.Popen(
            [sys.executable, folder / "program.py"], env=os.environ | {"HOME": str(home)}
        )
        for _ in "ab"
    ]
    assert [one.wait() for one in both] == [0, 0]
    assert len(kept(folder)) == 1
    assert not list((folder / "__pycache__").rglob("*.part"))


def test_wrong_annotation_is_refused():
    scope = {}
    exec("def plus_one(x) -> int:\n    return x + 1", scope)  # no source file
    assert jit(scope["plus_one"])(41) == 42
    with pytest.raises(TypeError, match="plus_one: annotated as int, is float64"):
        jit(scope["plus_one"])(41.0)


@jit
def _doubled_sum(numbers: np.ndarray, out: np.ndarray) -> float:
    flat = numbers.reshape(-1)
    kept = np.zeros(flat.size)
    for n in range(flat.size):
        kept[n] = 2 * flat[n]
    out[:] = kept
    return kept.sum()


def test_arrays_are_made_and_get_other_shapes():
    numbers, out = np.arange(12.0).reshape(3, 4), np.zeros(12)
    assert _doubled_sum(numbers, out) == 132.0
    assert np.array_equal(out, 2.0 * np.arange(12))


@jit
def _strided(x: np.ndarray, out: np.ndarray) -> bool:
    for m in range(x.shape[0]):
        for n in range(x.shape[1]):
            out[n, m] = x[m, n]
    return x.shape[0] > 2


def test_arrays_that_are_not_contiguous():
    x = np.arange(60.0).reshape(6, 10)
    for part in (x, x[::2, 1:7], x.T, x[:2]):
        out = np.zeros((part.shape[1] + 3, part.shape[0] + 1))
        assert _strided(part, out[3:, 1:]) is (len(part) > 2)
        assert np.array_equal(out[3:, 1:], part.T)
        assert not out[:3].any() and not out[:, 0].any()


def test_odd_sums_of_any_shape():
    """To odd: what is not exact ends in 1 and lies on the other side of the exact sum."""
    a, b = np.array([[1.0], [2.0**60]]), np.array([2.0**-60, -(2.0**-60), 3.0, np.inf])
    got = add_odd(a, b)
    assert got.shape == (2, 4)
    assert [float(x).hex() for x in got[0]] == [
        "0x1.0000000000001p+0",
        "0x1.fffffffffffffp-1",
        "0x1.0000000000000p+2",
        "inf",
    ]
    assert np.array_equal(add_odd(np.asfortranarray(got), 0.0), got)

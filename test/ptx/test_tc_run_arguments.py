"""What tc-run takes: a wrong argument is one line and exit status 3, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.machine import TensorMap
from tcir.ptxrun.command import main
from tcir.ptxrun.values import argument
from tcir.run import LaunchError, run_ptx

from .conftest import HEADER
from .test_execution import SAXPY

SIZES = ["--grid", "2", "--block", "32"]
MAP = '"array": "x.npy", "dtype": "f32", "dims": [64], "strides_bytes": [], "box": [32]'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    x = np.arange(64, dtype=np.float32)
    Path("k.ptx").write_text(HEADER + SAXPY)
    Path("program.mlir").write_text("func.func @f() { return }\n")
    Path("binary.ptx").write_bytes(b"\x7fELF\x02\xd0")
    Path("none.npy").write_bytes(b"")
    Path("junk.npy").write_bytes(b"numbers")
    np.save("x.npy", x)
    np.save("big.npy", x.astype(">f4"))
    np.savez("x.npz", x=x)
    return tmp_path


def refused(words: list[str], capsys: Any) -> str:
    assert main(words) == 3
    said = capsys.readouterr()
    assert said.err.startswith("tc-run: ") and not said.out
    return str(said.err)


def given(first: str = "x.npy", f32: str = "f32=2.5", u32: str = "u32=60") -> list[str]:
    words = (first, "zeros=f32,64", f32, u32)
    return ["k.ptx", *SIZES, *(word for text in words for word in ("--arg", text))]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"u32": "u32=5000000000"}, "expected 0..4294967295, got 5000000000"),
        ({"u32": "u32=-1"}, "expected 0..4294967295, got -1"),
        ({"f32": "f32=1e60"}, "the largest float32, got 1e60"),
        ({"first": "big.npy"}, "argument 0 (saxpy_param_0): expected little-endian elements"),
        ({"first": "x.npz"}, "expected one array (.npy), got an archive of x"),
        ({"first": "none.npy"}, "expected a .npy file of numbers"),
        ({"first": "junk.npy"}, "expected a .npy file of numbers"),
        ({"first": "parts=[7]"}, "expected a list of arguments"),
        ({"first": "zeros=f32,4x"}, "expected TYPE,AxBxC"),
        ({"first": "absent.npy"}, "absent.npy"),
        ({"first": 'map={"array": 7, "dims": [4]}'}, "array: expected the number of an argument"),
        ({"first": f'map={{{MAP}, "mode": "tild"}}'}, "expected mode tiled, im2col, "),
        ({"first": f"map={{{MAP.replace('[64]', chr(34) + '64' + chr(34))}}}"}, "dims: expected"),
        ({"first": "map=[1]"}, 'expected {"array"'),
    ],
)
def test_values(arguments: dict[str, str], words: str, files: Path, capsys: Any) -> None:
    said = refused(given(**arguments), capsys)
    assert words.replace("argument 0 (saxpy_param_0)", "argument 0") in said.replace(
        "argument 0 (x)", "argument 0"
    )


def test_values_that_fit() -> None:
    assert argument("u32=4294967295", ()) == 0xFFFFFFFF and argument("s32=-1", ()) == -1
    assert np.isinf(argument("f32=inf", ())) and np.isnan(argument("f16=nan", ()))
    array = np.zeros((4, 64), np.float16)
    made = argument(
        'map={"array": 0, "dtype": "f16", "dims": [64, 4], "strides_bytes": [128], "box": [64, 4]}',
        [array],
    )
    assert isinstance(made, TensorMap) and made.array is array


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--grid", "abc"], "--grid: expected X[,Y,Z], got 'abc'"),
        (["--seed", "abc"], "--seed: expected a number"),
        (["--max-instructions", "many"], "--max-instructions"),
        (["--nothing"], "unrecognized arguments: --nothing"),
        (["--dump", "smem"], "--dump: expected also --break-at"),
        (["--target", "sm_999"], "--target: expected --bundle DIR, or CUDA C++"),
        (["--pipeline", "conv"], "--pipeline: expected also --bundle DIR and an MLIR"),
        (["--save", "1=o.txt"], "expected a file name that ends in .npy"),
        (["--save", "1=absent/o.npy"], "there is no directory 'absent'"),
        (["--save", "2=o.npy"], "argument 2 is not an array"),
        (["--json", "absent/o.json"], "there is no directory 'absent'"),
        (["--json", "."], "it is a directory"),
        (["--out", "o.npy"], "--out: expected a launch file"),
    ],
)
def test_flags(more: list[str], words: str, files: Path, capsys: Any) -> None:
    assert words in refused(given() + more, capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--selftest", "--seed", "1"], "--selftest: expected no other argument than --json FILE"),
        (["--selftest", "--json", "no/f.json"], "--json no/f.json: there is no directory 'no'"),
        (["--list-assumptions", "--json", "f.json"], "assumptions: expected no other argument"),
        ([], "expected a file"),
        (["binary.ptx", *SIZES], "binary.ptx: expected PTX text, got byte 0xd0 at offset 5"),
        (["program.mlir"], "tc-opt program.mlir --pipeline=NAME --emit=ptx -o k.ptx"),
        (["program.mlir", "--bundle", "b"], "expected --pipeline NAME, which compiles it"),
        (["absent.ptx", *SIZES], "cannot read 'absent.ptx': No such file or directory"),
        (["absent.cu", *SIZES], "absent.cu: no such file"),
        (["k.ptx", "--grid", "2"], "expected --block: "),
        (["k.ptx", "--block", "2"], "expected --grid: "),
    ],
)
def test_files(words: list[str], said: str, files: Path, capsys: Any) -> None:
    assert said in refused(words, capsys)


def test_an_array_of_other_byte_order_is_no_argument_from_python_either(files: Path) -> None:
    x, y = np.load("big.npy"), np.zeros(64, np.float32)
    with pytest.raises(LaunchError, match="little-endian"):
        run_ptx(HEADER + SAXPY, grid=2, block=32, args=[x, y, np.float32(1), np.uint32(64)])

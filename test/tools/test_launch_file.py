"""The launch file beside emitted PTX: written by tc-opt, read by tc-run; one of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.errors import InputError
from tcir.program.launch_file import LaunchFile
from tcir.ptxrun.command import main

from .test_driver import tc_opt

ROOT = Path(__file__).parents[2]
PROGRAM = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#d = affine_map<(m, n, k) -> (m, n)>
func.func @two(%a: tensor<32x48xbf16>, %b: tensor<48x64xbf16>, %c: tensor<64x32xbf16>)
    -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %s = linalg.matmul ins(%a, %b : tensor<32x48xbf16>, tensor<48x64xbf16>)
      outs(%i : tensor<32x64xf32>) -> tensor<32x64xf32>
  %h = tensor.empty() : tensor<32x64xbf16>
  %t = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<32x64xf32>) outs(%h : tensor<32x64xbf16>) {
    ^bb0(%x: f32, %o: bf16):
      %r = arith.truncf %x : f32 to bf16
      linalg.yield %r : bf16
  } -> tensor<32x64xbf16>
  %f = tensor.empty() : tensor<32x32xf32>
  %g = linalg.fill ins(%zero : f32) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %out = linalg.matmul ins(%t, %c : tensor<32x64xbf16>, tensor<64x32xbf16>)
      outs(%g : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %out : tensor<32x32xf32>
}
"""


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 4, shape).astype(ml_dtypes.bfloat16)


def test_two_products_run_from_their_arrays(tmp_path: Path, capsys: Any) -> None:
    """Two launches with a workspace between them; bfloat16 arrays, which .npy holds as bytes."""
    (tmp_path / "two.mlir").write_text(PROGRAM)
    ptx = tmp_path / "two.ptx"
    done = tc_opt(str(tmp_path / "two.mlir"), "--pipeline=gemm", "--emit=ptx", "-o", str(ptx))
    assert done.returncode == 0, done.stderr
    fields = json.loads(ptx.with_suffix(".json").read_text())
    assert (fields["format"], fields["version"], len(fields["launches"])) == ("tcir launch", 1, 2)
    assert [a["shape"] for a in fields["arguments"]] == [[32, 48], [48, 64], [64, 32], [32, 32]]
    a, b, c = integers(0, 32, 48), integers(1, 48, 64), integers(2, 64, 32)
    words = [str(ptx)]
    for name, array in (("a", a), ("b", b), ("c", c)):
        np.save(tmp_path / f"{name}.npy", array)
        words += ["--arg", str(tmp_path / f"{name}.npy")]
    out = tmp_path / "out.npy"
    assert main([*words, "--out", str(out)]) == 0, capsys.readouterr()
    said = capsys.readouterr().out
    assert "launch 1 of 2" in said and "launch 2 of 2" in said and said.count("\nok: ") == 2
    first = (a.astype("f4") @ b.astype("f4")).astype(ml_dtypes.bfloat16)
    assert (np.load(out) == first.astype("f4") @ c.astype("f4")).all()
    for more, message in (
        (words[:-2], "--arg: expected 3 (input0: bfloat16[32, 48], "),
        ([*words[:-1], words[2]], "expected input2: bfloat16[64, 32], got "),
        ([*words, "--block", "32"], "--block: the launch file sets it"),
        ([*words, "--out", str(out), "--out", str(out)], "--out: expected at most 1 results"),
        ([*words, "--entry", "three"], "--entry: expected one of "),
        ([*words, "--break-at", "50"], "--break-at: expected --entry with one of "),
    ):
        assert main(more) == 3
        assert message in capsys.readouterr().err


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    kernel = tcir.compile(str(ROOT / "examples/tf32_one_tile.mlir"), "gemm")
    written = LaunchFile.of(kernel.signature, kernel.launches, kernel.target)
    path = tmp_path / "k.json"
    path.write_text(written.text())
    read = LaunchFile.read(path)
    assert read is not None and read.arguments == written.arguments
    assert read.text() == written.text()
    a, b, d = (np.zeros(each.spec.shape, each.spec.dtype) for each in read.arguments)
    mine, theirs = (k.only.arguments([a, b], [d]) for k in (read.launches, kernel.launches))
    assert [m.fields for m in mine[:2]] == [m.fields for m in theirs[:2]]


def with_table() -> tuple[tcir.Kernel, np.ndarray]:
    """What adds a table of the program to its input."""
    table = np.arange(1, 49, dtype=np.float16).reshape(6, 8)
    kernel = tcir.compile(
        f"""func.func @f(%x: tensor<6x8xf16>) -> tensor<6x8xf16> {{
          %t = arith.constant dense<{table.tolist()}> : tensor<6x8xf16>
          %y = arith.addf %x, %t : tensor<6x8xf16>
          return %y : tensor<6x8xf16>
        }}""",
        "simt-elementwise",
    )
    return kernel, table


def test_constants_are_in_the_file(tmp_path: Path, capsys: Any) -> None:
    kernel, table = with_table()
    ptx, x = tmp_path / "k.ptx", np.arange(48, dtype=np.float16).reshape(6, 8) / 4
    ptx.write_text(kernel.ptx)
    text = LaunchFile.of(kernel.signature, kernel.launches, kernel.target).text()
    ptx.with_suffix(".json").write_text(text)
    np.save(tmp_path / "x.npy", x)
    words = [str(ptx), "--arg", f"{tmp_path}/x.npy"]
    assert main([*words, "--out", f"{tmp_path}/y.npy"]) == 0, capsys.readouterr()
    assert (np.load(tmp_path / "y.npy") == x + table).all()
    assert main([*words, "--arg", f"{tmp_path}/x.npy"]) == 3
    assert "expected 1 (input0: float16[6, 8]), got 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": "AAAA"}, "constant0: expected 96 bytes of data, got 3"),
        ({"data": "no base 64"}, "see docs/reference/launch-file.md"),
        ({"access": "write"}, "expected access read of an argument with data, got 'write'"),
    ],
)
def test_constants_that_are_none(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    kernel, _ = with_table()
    fields = json.loads(LaunchFile.of(kernel.signature, kernel.launches, kernel.target).text())
    fields["arguments"][1] |= changed
    path = tmp_path / "k.json"
    path.write_text(json.dumps(fields))
    with pytest.raises(InputError, match=message):
        LaunchFile.read(path)


SAXPY = Path(ROOT / "examples/saxpy.ptx")
OWN = {
    "format": "tcir launch",
    "version": 1,
    "arguments": [
        {"name": "x", "dtype": "float32", "shape": [1000]},
        {"name": "y", "dtype": "float32", "shape": [1000], "access": "read-write"},
        {"name": "factor", "dtype": "float32"},
        {"name": "n", "dtype": "uint32"},
    ],
    "launches": [
        {
            "entry": "saxpy",
            "grid": [8],
            "block": [128],
            "params": [
                {"kind": "pointer", "argument": 0},
                {"kind": "pointer", "argument": 1},
                {"kind": "value", "argument": 2},
                {"kind": "value", "argument": 3},
            ],
        }
    ],
}


def own(tmp_path: Path, **changed: Any) -> list[str]:
    (tmp_path / "saxpy.ptx").write_text(SAXPY.read_text())
    (tmp_path / "saxpy.json").write_text(json.dumps(OWN | changed))
    np.save(tmp_path / "x.npy", np.arange(1000, dtype="f4"))
    np.save(tmp_path / "y.npy", np.ones(1000, "f4"))
    arrays = (str(tmp_path / "x.npy"), str(tmp_path / "y.npy"), "f32=3", "u32=1000")
    return [str(tmp_path / "saxpy.ptx"), *(w for a in arrays for w in ("--arg", a))]


def test_one_of_ones_own_with_scalars(tmp_path: Path, capsys: Any) -> None:
    words = own(tmp_path)
    out = tmp_path / "out.npy"
    assert main([*words, "--out", str(out)]) == 0, capsys.readouterr()
    assert (np.load(out) == 3 * np.arange(1000) + 1).all()
    words[words.index("u32=1000")] = "s32=1000"
    assert main(words) == 3 and "expected n: uint32, got int32[]" in capsys.readouterr().err
    assert main([*own(tmp_path), "--grid", "8", "--block", "128"]) == 0  # without the file


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"version": 2}, "expected version 1, got 2"),
        ({"launches": []}, "expected a launch that writes y, got none"),
        ({"launches": [{"entry": "saxpy", "grid": [8]}]}, "expected the field 'params'"),
        ({"arguments": [{"dtype": "float33"}]}, "float33"),
        ({"arguments": [{"dtype": "float32", "shape": [4], "access": "reads"}]}, "expected access"),
        ({"arguments": []}, "expected arguments 0 to -1"),
        ({"launches": [{**OWN["launches"][0], "params": [{"kind": "ptr"}]}]}, "expected kind"),  # type: ignore[dict-item]
    ],
)
def test_files_that_are_none(
    changed: dict[str, Any], words: str, tmp_path: Path, capsys: Any
) -> None:
    assert main(own(tmp_path, **changed)) == 3
    assert words in capsys.readouterr().err


def test_the_report_and_the_launch_file_need_different_names(tmp_path: Path) -> None:
    path = tmp_path / "k.json"
    done = tc_opt("examples/tf32_one_tile.mlir", "--pipeline=gemm", "--emit=ptx", "-o",
                  str(tmp_path / "k.ptx"), f"--validate-each={path}")  # fmt: skip
    assert done.returncode == 3 and "the PTX's launch file has this name" in done.stderr
    assert not path.exists()


def test_text_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "k.json"
    path.write_text("{")
    with pytest.raises(InputError, match="remove it"):
        LaunchFile.read(path)
    path.write_text('{"num_warps": 4}')  # Triton's
    assert LaunchFile.read(path) is None


MATMUL = """
func.func @"aten::mm"(%a: tensor<128x64xf16>, %b: tensor<64x32xf16>)
    -> tensor<128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x32xf32>) -> tensor<128x32xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x64xf16>, tensor<64x32xf16>)
    outs(%f : tensor<128x32xf32>) -> tensor<128x32xf32>
  return %r : tensor<128x32xf32>
}"""


def test_a_name_that_ptx_cannot_spell_is_mapped(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "k.mlir").write_text(MATMUL)
    ptx = tmp_path / "k.ptx"
    done = tc_opt(str(tmp_path / "k.mlir"), "--pipeline=gemm", "--emit=ptx", "-o", str(ptx))
    assert done.returncode == 0, done.stderr
    (launch,) = json.loads(ptx.with_suffix(".json").read_text())["launches"]
    assert (launch["entry"], launch["symbol"]) == ("aten$3a3a$mm", "aten::mm")
    for name, shape in (("a", (128, 64)), ("b", (64, 32))):
        np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float16))
    words = [str(ptx), "--entry", "aten::mm", "--out", str(tmp_path / "c.npy")]
    words += [f"--arg={tmp_path / each}.npy" for each in ("a", "b")]
    assert main(words) == 0, capsys.readouterr().err
    assert (np.load(tmp_path / "c.npy") == 64).all()
    assert main([*words[:2], "aten$3a3a$mm", *words[3:]]) == 0


SEQUENCE = {
    "format": "tcir launch", "version": 1,
    "arguments": [
        {"name": "x", "dtype": "float32", "shape": [64]},
        {"name": "y", "dtype": "float32", "shape": [64], "access": "write"},
    ],
    "workspaces": [1024, 1024],
    "workspace_offsets": [0, 1024],
    "launches": [
        {"entry": name, "grid": [1, 1, 1], "block": [32, 1, 1],
         "params": [{"kind": "pointer", "argument": n} for n in numbers]}
        for name, numbers in (("a", (0, 2)), ("b", (2, 3)), ("c", (2, 3, 1)))
    ],
}  # fmt: skip


def sequence(tmp_path: Path, **more: Any) -> Path:
    path = tmp_path / "k.json"
    path.write_text(json.dumps({**SEQUENCE, **more}))
    return path


@pytest.mark.parametrize(
    ("offsets", "launches", "words"),
    [
        ([0, 0], None, "@b: workspace 3, which it writes, must not share memory with workspace 2"),
        ([0, 512], None, "@b: workspace 3, which it writes, must not share memory"),
        (
            [0, 512],
            (("a", (0, 2)), ("b", (0, 3)), ("c", (2, 3, 1))),
            "@c: expected workspace 2 as an earlier launch stored it, got bytes of workspace 3 "
            "of @b, which shares memory with it",
        ),
    ],
)
def test_workspaces_that_overlap_are_refused(
    tmp_path: Path, offsets: list[int], launches: Any, words: str
) -> None:
    assert LaunchFile.read(sequence(tmp_path)) is not None
    more: dict[str, Any] = {"workspace_offsets": offsets}
    if launches:
        params = [
            {**each, "params": [{"kind": "pointer", "argument": n} for n in numbers]}
            for each, (_, numbers) in zip(SEQUENCE["launches"], launches, strict=True)  # type: ignore[call-overload]
        ]
        more["launches"] = params
        assert LaunchFile.read(sequence(tmp_path, launches=params)) is not None
    with pytest.raises(InputError) as caught:
        LaunchFile.read(sequence(tmp_path, **more))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "dtype", ["O", "object", "finfo", "(4,)u1", "M8[s]", "c8", "S4", 5, None, ["f4"], "nothing"]
)
def test_a_dtype_of_no_numbers_is_refused(tmp_path: Path, dtype: object) -> None:
    arguments = [{"name": "x", "dtype": dtype, "shape": [64]}, *SEQUENCE["arguments"][1:]]  # type: ignore[index]
    with pytest.raises(InputError, match="x: expected a dtype such as float16"):
        LaunchFile.read(sequence(tmp_path, arguments=arguments))


@pytest.mark.parametrize("number", ["x", None, 1.5, True, [1]])
def test_an_argument_without_a_number_is_refused(tmp_path: Path, number: object) -> None:
    launch = {**SEQUENCE["launches"][0], "params": [{"kind": "pointer", "argument": number}]}  # type: ignore[index]
    with pytest.raises(InputError, match="params: argument: expected a number, got"):
        LaunchFile.read(sequence(tmp_path, launches=[launch]))

"""Kernels from the cache, and options from a sweep."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import tcir
from tcir import codegen
from tcir.cache import user_store
from tcir.session.session import Session

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import run

GEMM = """\
func.func @product(%a: tensor<128x72xf16>, %b: tensor<72x96xf16>) -> tensor<128x96xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x96xf32>) -> tensor<128x96xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x72xf16>, tensor<72x96xf16>)
      outs(%f : tensor<128x96xf32>) -> tensor<128x96xf32>
  return %r : tensor<128x96xf32>
}
"""
FROM_CACHE = "from the cache: the passes ran in an earlier compilation"
WEIGHTS = [[(i * 96 + j) % 7 - 2.5 for j in range(96)] for i in range(72)]
CONSTANT = GEMM.replace(", %b: tensor<72x96xf16>", "").replace(
    "%zero =", f"%b = arith.constant dense<{WEIGHTS}> : tensor<72x96xf16>\n  %zero ="
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TCIR_CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path / "cache"


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("program", [GEMM, CONSTANT], ids=["arguments", "constant"])
def test_a_kernel_comes_back(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tcir.compile(program, "gemm", stages=2)
    cubin = first.cubin
    assert first.report.notes == [] and len(entries(folder)) == 2

    def fails(*_: object, **__: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(Session, "run_passes", fails)
    monkeypatch.setattr(codegen, "assemble", fails)
    second = tcir.compile(program, "gemm", stages=2)
    assert second.report.notes == [FROM_CACHE] and FROM_CACHE in str(second.report)
    for name in ("ptx", "llvm", "ir", "launches", "signature", "target", "name"):
        assert getattr(first, name) == getattr(second, name), name
    assert second.cubin == cubin
    constants = second.launches.constants
    assert not any(array.flags.writeable for array in constants)
    generator = np.random.default_rng(3)
    inputs = [
        generator.integers(-4, 5, spec.shape).astype(spec.dtype) + 0.5
        for spec in second.signature.inputs
    ]
    out = np.zeros((128, 96), np.float32)
    second(*(array.astype(np.float16) for array in inputs), out)
    b = inputs[1] if len(inputs) > 1 else np.array(WEIGHTS)
    assert np.array_equal(out, inputs[0].astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(
    ("program", "options"),
    [
        (GEMM, {"stages": 3}),
        (GEMM, {"stages": 2, "target": "sm_90", "pipeline": "matmul-warp"}),
        (GEMM.replace("@product", "@other"), {"stages": 2}),
        (f"\n{GEMM}", {"stages": 2}),  # other places in messages
    ],
)
def test_anything_else_is_another_kernel(
    program: str, options: dict[str, object], folder: Path
) -> None:
    tcir.compile(GEMM, "gemm", stages=2)
    other = tcir.compile(program, **{"pipeline": "gemm", **options})  # type: ignore[arg-type]
    assert other.report.notes == []


def test_other_versions_are_a_miss(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tcir.compile(GEMM, "gemm")
    assert tcir.compile(GEMM, "gemm").report.notes == [FROM_CACHE]
    monkeypatch.setattr("tcir.session.kept.versions", lambda: "tcir 9")
    assert tcir.compile(GEMM, "gemm").report.notes == []


def test_without_the_cache_nothing_is_kept(folder: Path) -> None:
    kernel = tcir.compile(GEMM, "gemm", cache=False)
    assert len(kernel.cubin) > 1000 and not folder.exists()
    tcir.compile(GEMM, "gemm")
    assert tcir.compile(GEMM, "gemm", cache=False).report.notes == []


def test_a_validation_executes(folder: Path) -> None:
    tcir.compile(GEMM, "gemm")
    kernel = tcir.compile(GEMM, "gemm", validate=True)
    assert kernel.report.ok and kernel.report.notes == []


@tcir.register_pass
@dataclass(frozen=True)
class DoesNothing(tcir.Pass):
    """A pass from outside, whose code no key names."""

    name: ClassVar[str] = "does-nothing"

    def run(self, module: object) -> None:
        """Nothing."""


def test_passes_from_outside_are_run(folder: Path) -> None:
    pipeline = tcir.named_pipeline("gemm").insert(DoesNothing(), after="raise-to-tc")
    for _ in range(2):
        assert tcir.compile(GEMM, pipeline).report.notes == []
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["cut", "another program's", "no kernel"])
def test_a_damaged_kernel_is_compiled_again(folder: Path, damage: str) -> None:
    first = tcir.compile(GEMM, "gemm")
    (path,) = entries(folder)
    key = path.parent.name + path.name
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        user_store().put(key, b"hello" if damage == "no kernel" else b"\x80\x04]\x94.")
    second = tcir.compile(GEMM, "gemm")
    assert (second.report.notes, second.ptx) == ([], first.ptx)
    assert tcir.compile(GEMM, "gemm").report.notes == [FROM_CACHE]


def swept(folder: Path, over: str, *flags: str, pipeline: str = "gemm") -> dict[str, str]:
    """The fastest combination of a sweep by tc-bench, as its table says."""
    (folder.parent / "product.mlir").write_text(f"// another file\n{GEMM}")
    words = ["tc-bench", "sweep", "product.mlir", f"--pipeline={pipeline}", "--over", over]
    ended = run([*words, "--jobs=2", "--json=rows.json", *flags], folder.parent)
    assert ended.status == 0, ended.err
    rows = json.loads((folder.parent / "rows.json").read_text())["rows"]
    best = min((row for row in rows if row["status"] == "ok"), key=lambda row: row["microseconds"])
    options = best["combination"].removeprefix("gemm{").removesuffix("}")
    return dict(word.split("=") for word in options.split())


def test_tuned_is_what_a_sweep_found(folder: Path) -> None:
    missing = tcir.compile(GEMM, "gemm", tune=True)
    (note,) = missing.report.notes
    assert note.startswith("not tuned: no sweep of this program with gemm for sm_100a in ")
    best = swept(folder, "n-tile=32,96 stages=1,2")
    assert best != {"n-tile": "96", "stages": "1"}
    kernel = tcir.compile(GEMM, "gemm", tune=True)
    plain = tcir.compile(GEMM, "gemm", n_tile=int(best["n-tile"]), stages=int(best["stages"]))
    assert kernel.ptx == plain.ptx != missing.ptx
    words = f"tuned: n-tile={best['n-tile']} stages={best['stages']}, "
    assert kernel.report.notes[-1].startswith(words)
    assert "the least modelled time of 4 combinations of a sweep; not executed there" in str(
        kernel.report
    )
    # A sweep of slower ones changes nothing; of other fixed options it is another sweep.
    swept(folder, "n-tile=96 stages=1")
    assert tcir.compile(GEMM, "gemm", tune=True).report.notes[-1].startswith(words)
    fixed = tcir.compile(GEMM, "gemm{store=tma}", tune=True).report.notes[-1]
    assert fixed.startswith("not tuned: no sweep of this program with gemm{store=tma} for")


def test_no_cache_leaves_nothing_and_rows_are_kept(folder: Path) -> None:
    swept(folder, "n-tile=96", "--no-cache")
    assert not folder.exists()
    swept(folder, "n-tile=96")
    row, tuned = 1, 1
    assert len(entries(folder)) == row + tuned
    words = ["tc-bench", "sweep", "product.mlir", "--pipeline=gemm", "--over", "n-tile=96"]
    assert run(words, folder.parent).err == ""  # no progress: nothing was done


@pytest.mark.parametrize("pipeline", [["raise-to-tc"], "builtin.module(raise-to-tc)"])
def test_passes_cannot_be_tuned(folder: Path, pipeline: list[str] | str) -> None:
    with pytest.raises(tcir.InputError, match="tune: expected a named pipeline, such as 'gemm'"):
        tcir.compile(GEMM, pipeline, tune=True)


def test_without_a_folder_the_report_says_so() -> None:
    kernel = tcir.compile(GEMM, "gemm", tune=True)
    assert "as TCIR_CACHE_DIR is empty" in kernel.report.notes[0]

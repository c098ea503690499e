"""tc-bench: tables, files, statuses, signals."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

import tcir
from tcir import codegen
from tcir._mlir import ir
from tcir.dialect.walk import walk
from tcir.pipelines.gemm import GemmOptions
from tcir.sweep.space import Combination
from tcir.sweep.work import Job, work
from tcir.time import Constants

from .programs import GEMM, PROGRAM

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import Ended, orphans, run

SWEEP = ["tc-bench", "sweep", "product.mlir", "--pipeline=gemm", "--jobs=2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "product.mlir").write_text(GEMM)
    return tmp_path


def sweep(folder: Path, over: str, *flags: str) -> Ended:
    return run([*SWEEP, "--over", over, *flags], folder)


def test_a_sweep_and_its_files(folder: Path) -> None:
    outputs = ("--csv=rows.csv", "--json=rows.json", "--plot=rows.svg", "--results=rows.jsonl")
    first = sweep(folder, "n-tile=96,40 stages=2,3", "--validate=1", *outputs)
    assert (first.status, first.orphans) == (0, 0), first.err
    head, best, second, *others = first.out.splitlines()
    assert head.startswith("modelled, not measured")
    assert best.startswith("gemm{n-tile=96 stages=2}") and best.endswith("held")
    assert second.startswith("gemm{n-tile=96 stages=3}") and second.endswith("-")
    assert all(
        "not legal: product.mlir:5:8: expected n-tile to be a multiple of 16" in line
        for line in others
    )
    rows = json.loads((folder / "rows.json").read_text())["rows"]
    assert [row["combination"] for row in rows] == [
        f"gemm{{n-tile={n} stages={stages}}}" for n in (96, 40) for stages in (2, 3)
    ]
    listed = list(csv.DictReader((folder / "rows.csv").open()))
    assert [row["message"] for row in listed] == [row["message"] for row in rows]
    drawn = (folder / "rows.svg").read_text()
    assert drawn.count('data-mark="hatch"') == 2 and drawn.count('data-mark="ring"') == 1
    # What ptxas says of the same program, compiled another way.
    cubin = codegen.assemble(tcir.compile(GEMM, "gemm", n_tile=96, stages=3).ptx)
    assert (rows[1]["registers"], rows[1]["spill_bytes"]) == (cubin.registers, cubin.spill_bytes)
    # Nothing is done twice.
    before = (folder / "rows.jsonl").read_bytes()
    again = sweep(folder, "n-tile=96,40 stages=2,3", "--validate=1", "--results=rows.jsonl")
    assert (again.status, again.out, again.err) == (0, first.out, "")
    assert (folder / "rows.jsonl").read_bytes() == before


@pytest.mark.parametrize(("n_tile", "reads_of_a"), [(96, 1), (64, 2), (32, 3)])
def test_bytes_are_those_of_the_tiles(n_tile: int, reads_of_a: int) -> None:
    row = work(PROGRAM, Job("", "measure", Combination.parse(f"gemm{{n-tile={n_tile}}}")))
    assert row.ctas == reads_of_a
    assert row.bytes == reads_of_a * 128 * 72 * 2 + 72 * 96 * 2 + 128 * 96 * 4


def test_loads_ahead_of_use_take_less_time() -> None:
    long = replace(PROGRAM, text=GEMM.replace("72x", "1024x").replace("x72", "x1024"))
    pipelines = [Combination.parse(f"gemm{{stages={stages}}}") for stages in (1, 2, 4)]
    times = [work(long, Job("", "measure", each)).microseconds for each in pipelines]
    assert None not in times and times == sorted(set(times), reverse=True)  # type: ignore[type-var]
    assert times[0] > 1.5 * times[-1]  # type: ignore[operator]


def test_launches_come_one_after_the_other() -> None:
    one, two = (
        work(PROGRAM, Job("", "measure", Combination.parse(f"gemm{{split-k={splits}}}")))
        for splits in (1, 2)
    )
    assert (one.launches, two.launches) == (1, 2)
    launch = Constants("sm_100a")["launch"]
    assert one.microseconds and two.microseconds and two.microseconds > one.microseconds + launch


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--over", "n-tile=16", "--jobs=0"], "--jobs: expected at least 1, got 0"),
        (["--over", "n-tile=16", "--jobs=-1"], "expected a number from 0 to 999999, got '-1'"),
        (["--over", "n-tile=16", "--plot=x.png"], "expected a name that ends in .svg"),
        (["--over", "n-tile=16", "--csv=no/x.csv"], "there is no directory 'no'"),
        (["--over", "n-tile=16", "--csv=x", "--json=x"], "expected a file of its own, got the "),
        (["--over", "n-tile=16", "--scheduler=tcp://x:1"], "--jobs, processes here, and --sched"),
        (["--over", "n-tile=16", "--target=sm_70"], "of sm_80, sm_90, sm_90a, sm_100a, got"),
        (["--over", "n-tile=16", "--entry=f"], "'f'"),
        ([], "the following arguments are required: --over (tc-bench sweep --help)"),
        (["--over", "n-tile=3", ], "not legal"),
    ],
)  # fmt: skip
def test_refusals(folder: Path, flags: list[str], words: str) -> None:
    ended = run([*SWEEP, *flags], folder)
    assert ended.status == 3
    assert words in ended.out + ended.err and "Traceback" not in ended.err
    assert sorted(path.name for path in folder.iterdir()) == ["product.mlir"]


@tcir.register_pass
@dataclass(frozen=True)
class ChangesTheEpilogue(tcir.Pass):
    """A wrong pass: what is multiplied by two is multiplied by three."""

    name: ClassVar[str] = "changes-the-epilogue"

    def run(self, module: ir.Module) -> None:
        """Replaces the constant."""
        for op in walk(module.operation):
            if op.operation.name == "arith.constant" and "2.0" in str(op.attributes["value"]):
                kind = op.results[0].type
                three = ir.FloatAttr.get(kind.element_type, 3.0)
                op.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, three)


def broken(options: GemmOptions) -> tcir.Pipeline:
    """The pipeline gemm with that pass."""
    passes = tcir.named_pipeline("gemm", n_tile=options.n_tile)
    return (
        passes.insert(ChangesTheEpilogue(), after="fold-empty") if options.n_tile < 96 else passes
    )


tcir.register_pipeline(
    tcir.NamedPipeline("gemm-broken", "wrong below 96.", GemmOptions, ("what gemm takes",), broken)
)


def test_a_wrong_combination_is_found_and_never_tuned(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCIR_CACHE_DIR", str(folder / "cache"))
    doubled = GEMM.replace(
        "  return %r",
        """  %c = arith.constant dense<2.0> : tensor<128x96xf32>
  %d = arith.mulf %r, %c : tensor<128x96xf32>
  return %d""",
    )
    (folder / "product.mlir").write_text(doubled)
    words = ["tc-bench", "sweep", "product.mlir", "--pipeline=gemm-broken", "--over"]
    ended = run([*words, "n-tile=32,96", "--validate=2"], folder)
    assert ended.status == 1, ended.err
    _, wrong, held, why = ended.out.splitlines()
    assert wrong.startswith("gemm-broken{n-tile=32}") and wrong.endswith("different")
    assert held.startswith("gemm-broken{n-tile=96}") and held.endswith("held")
    assert "first at pass 2, changes-the-epilogue" in why
    note = tcir.compile(doubled, "gemm-broken", tune=True).report.notes[-1]
    assert note.startswith("tuned: n-tile=96, ") and "after every pass: held there" in note


def test_a_program_that_cannot_be_read_is_refused_once(folder: Path) -> None:
    (folder / "product.mlir").write_text(GEMM.replace("linalg.matmul", "linalg.matmull"))
    ended = sweep(folder, "stages=2..4")
    assert (ended.status, ended.out) == (3, "")
    assert ended.err.count("product.mlir:5:8: error") == 1


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
    ],
)
def test_an_interrupt_leaves_whole_lines(folder: Path, number: int, status: int) -> None:
    words = [*SWEEP[1:], "--over", "n-tile=16..96:16 stages=1..20", "--results=rows.jsonl"]
    with subprocess.Popen(
        [sys.executable, "-m", "tcir.tools.tc_bench", *words],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # shells may ignore it
    ) as running:
        assert running.stderr is not None
        first = running.stderr.readline()
        running.send_signal(number)
        rest = running.stderr.read()
    assert (running.returncode, "Traceback" in rest) == (status, False), rest
    assert first.split()[0] == "1/120"
    lines = (folder / "rows.jsonl").read_text().split("\n")
    assert 1 < len(lines) < 120 and lines[-1] == ""
    assert {json.loads(line)["kind"] for line in lines[:-1]} == {"measure"}
    assert orphans(running.pid) == 0

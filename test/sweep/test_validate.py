"""tc-bench validate: a row for each module, whatever happens to it."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import tcir
from tcir._mlir import ir
from tcir.pipelines.gemm import GemmOptions
from tcir.sweep.cluster import DaskCluster
from tcir.sweep.executor import JobExecutor
from tcir.sweep.local import LocalProcesses
from tcir.sweep.results import Results
from tcir.sweep.space import Combination
from tcir.sweep.validation import SweepValidation
from tcir.sweep.verdicts import columns
from tcir.sweep.work import SweepProgram, SweepRow
from tcir.validation.settings import Settings

from .programs import GEMM, PROGRAM
from .test_tc_bench import ChangesTheEpilogue

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import Ended, run

DOUBLED = GEMM.replace(
    "  return %r",
    """  %c = arith.constant dense<2.0> : tensor<128x96xf32>
  %d = arith.mulf %r, %c : tensor<128x96xf32>
  return %d""",
)


@tcir.register_pass
@dataclass(frozen=True)
class DiesOfAName(tcir.Pass):
    """Ends its process if the function is called ``dies``."""

    name: ClassVar[str] = "dies-of-a-name"

    def run(self, module: ir.Module) -> None:
        """Looks at the name."""
        if "@dies" in str(module):
            os.kill(os.getpid(), signal.SIGKILL)


def _fragile(options: GemmOptions) -> tcir.Pipeline:
    passes = tcir.named_pipeline("gemm")
    passes = passes.insert(DiesOfAName(), after="fold-empty")
    return passes.insert(ChangesTheEpilogue(), after="fold-empty")


tcir.register_pipeline(
    tcir.NamedPipeline("gemm-fragile", "ends its process.", GemmOptions, ("products",), _fragile)
)


def validate(folder: Path, *words: str) -> Ended:
    return run(["tc-bench", "validate", "--jobs=2", *words], folder)


def test_every_file_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "good.mlir").write_text(GEMM)
    (tmp_path / "wrong.mlir").write_text(DOUBLED)
    (tmp_path / "dies.mlir").write_text(GEMM.replace("@product", "@dies"))
    (tmp_path / "torn.mlir").write_text(GEMM[:200])
    names = ["wrong.mlir", "torn.mlir", "good.mlir", "dies.mlir", "gone.mlir"]
    flags = ["--pipeline=gemm-fragile", "--json=v.json", "--csv=v.csv", "--results=v.jsonl"]
    ended = validate(tmp_path, *names, *flags)
    assert (ended.status, ended.orphans) == (3, 0), ended.err
    lines = ended.out.splitlines()
    verdicts = ["different", "refused", "held", "failed", "refused"]
    assert [line.split()[:2] for line in lines[1:6]] == [
        list(each) for each in zip(names, verdicts, strict=True)
    ]
    why = [line for line in lines[6:] if ": " in line]
    assert why[0].startswith("wrong.mlir: different: first at pass 2, changes-the-epilogue")
    assert why[1].startswith("torn.mlir:4:31: error:") and why[3].startswith("gone.mlir: cannot")
    assert why[2].startswith("dies.mlir: 3 workers died on this job (SIGKILL)")
    assert lines[-1] == "1 of 5 held"
    whole = json.loads((tmp_path / "v.json").read_text())
    assert [each["file"] for each in whole["modules"]] == names
    passes = {each["name"]: each["verdict"] for each in whole["modules"][0]["report"]["passes"]}
    assert passes["changes-the-epilogue"] == "different"
    assert [row["verdict"] for row in csv.DictReader((tmp_path / "v.csv").open())] == verdicts
    # What is known is not done again; what failed is.
    again = validate(tmp_path, *names, *flags)
    assert (again.status, again.out) == (3, ended.out)
    assert again.err.count("\n") == 1 and "dies.mlir" in again.err
    assert validate(tmp_path, "good.mlir", *flags).status == 0
    assert validate(tmp_path, "good.mlir", "wrong.mlir", *flags).status == 1
    assert validate(tmp_path, "good.mlir", "dies.mlir", *flags).status == 2


def test_names_that_are_not_text(tmp_path: Path) -> None:
    here, gone = os.fsdecode(b"\xff.mlir"), os.fsdecode(b"a\n\xff")
    (tmp_path / here).write_text(GEMM[:200])
    ended = validate(tmp_path, here, gone, "--pipeline=gemm", "--csv=v.csv")
    assert ended.status == 3
    lines = ended.out.splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["?.mlir", "refused", "-", "-", "-"],
        ["a", "?", "refused", "-", "-", "-"],
    ]
    assert lines[3].startswith("?.mlir:4:31: error:")
    rows = [row["file"] for row in csv.DictReader((tmp_path / "v.csv").open(newline=""))]
    assert rows == ["?.mlir", "a\n?"]


@pytest.mark.parametrize(("words", "said"), [
    (["--pipeline=gemm"], "the following arguments are required: FILE"),
    (["a.mlir"], "the following arguments are required: --pipeline"),
    (["a.mlir", "--pipeline=gem"], "unknown pipeline 'gem'; did you mean 'gemm'?"),
    (["a.mlir", "--pipeline=gemm", "--orders=0"], "expected at least 1 completion order, got 0"),
    (["a.mlir", "--pipeline=gemm", "--csv=x", "--json=x"], "expected a file of its own"),
])  # fmt: skip
def test_refusals(tmp_path: Path, words: list[str], said: str) -> None:
    ended = validate(tmp_path, *words)
    assert ended.status == 3 and said in ended.err, ended.err
    assert not list(tmp_path.iterdir())


def rows_by(executor: JobExecutor) -> list[SweepRow]:
    """Two modules, 40 orders of each: three jobs."""
    modules = [PROGRAM, SweepProgram(DOUBLED, "doubled.mlir", None, "sm_100a", PROGRAM.versions)]
    validation = SweepValidation(modules, Combination("gemm"), Settings(orders=40), executor)
    return validation.run(Results(), lambda done, total, row: None)


def untimed(row: SweepRow) -> dict[str, object]:
    said = {key: value for key, value in columns(row).items() if key != "seconds"}
    lines = [
        {key: value for key, value in line.items() if not key.endswith("_seconds")}
        for line in json.loads(row.report)["passes"]
    ]
    return said | {"lines": lines}


@pytest.mark.timeout(3000)
def test_the_same_rows_from_a_cluster_and_as_one_report() -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    here = rows_by(LocalProcesses(2))
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster:
        there = rows_by(DaskCluster(cluster.scheduler_address))
    assert [row.verdict for row in here] == ["held", "held"]
    assert [*map(untimed, there)] == [*map(untimed, here)]
    alone = tcir.validate(GEMM, "gemm", orders=40)
    found = json.loads(here[0].report)["passes"]
    assert [line["compared"] for line in found] == [line.compared for line in alone.passes]
    assert [line["counters"] for line in found] == [dict(line.counters) for line in alone.passes]

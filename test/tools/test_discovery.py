"""Passes and pipelines by name: what is named is imported alone; a plugin's pass goes anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tcir.passmanager.pipeline import (
    find_pass,
    find_pipeline,
    named_pipeline,
    registered_passes,
    registered_pipelines,
)

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_those_of_files() -> None:
    for name, cls in registered_passes().items():
        if cls.__module__.startswith("tcir."):
            assert cls.__module__.rpartition(".")[2] == name.replace("-", "_")
    for name, pipeline in registered_pipelines().items():
        if pipeline.build.__module__.startswith("tcir."):
            assert pipeline.build.__module__ == f"tcir.pipelines.{name.replace('-', '_')}"


def test_a_second_name_finds_the_pipeline_alone() -> None:
    assert find_pipeline("matmul") is find_pipeline("gemm")
    assert "matmul" not in registered_pipelines()
    assert str(named_pipeline("matmul{n-tile=64}")) == str(named_pipeline("gemm", n_tile=64))
    assert "tcir.pipelines.conv" not in loaded("matmul")


def test_what_is_no_name_of_a_pass_is_upstreams() -> None:
    assert find_pass("canonicalize") is None
    assert find_pass("../secrets") is None


COLD = """
import sys, tcir
from tcir import _mlir
_mlir.load_without_numpy()
tcir.named_pipeline({pipeline!r})
from tcir.opt import invocation
print(*sorted(sys.modules))
"""


def loaded(pipeline: str) -> set[str]:
    """Modules that a process imports for a named pipeline."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    words = [sys.executable, "-c", COLD.format(pipeline=pipeline)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    return set(done.stdout.split())


def test_a_named_pipeline_imports_only_what_it_needs() -> None:
    for pipeline, other in (("matmul", "conv"), ("gemv-padded-n", "conv"), ("conv", "gemv")):
        modules = loaded(pipeline)
        assert not [name for name in modules if name.startswith(f"tcir.passes.{other}.")]
        assert not modules & {"numpy", "ml_dtypes", "numba", "tcir.machine", "llvmlite"}
        assert "torch_mlir.dialects.linalg.opdsl" not in modules


def test_a_compilation_without_execution_imports_neither_numpy_nor_all_ops_of_llvm(
    tmp_path: Path,
) -> None:
    words = [sys.executable, "-X", "importtime", "-m", "tcir.tools.tc_opt"]
    words += [str(ROOT / "examples" / "matmul.mlir"), "--pipeline=matmul", "--emit=cubin"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [*words, "-o", str(tmp_path / "kernel.cubin")],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "tcir.session.session" in imported
    # A line `numpy` alone is the attempt of the bindings that `load_without_numpy` has fail.
    assert not [name for name in imported if name.startswith("numpy.")]
    assert not imported & {"ml_dtypes", "numba"}
    # 250 op classes each, of which the passes build a few: `tcir._mlir_dialects` has those.
    assert not [name for name in imported if name.endswith(("_llvm_ops_gen", "_nvvm_ops_gen"))]


PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar

import tcir
from tcir._mlir import ir


@tcir.register_pass
@dataclass(frozen=True)
class CountTiles(tcir.Pass):
    '''Counts the allocations of shared memory.'''

    name: ClassVar[str] = "count-tiles"

    def run(self, module):
        count = str(module).count("tc.smem_alloc")
        module.operation.attributes["test.tiles"] = ir.StringAttr.get(str(count))
"""


def test_a_plugins_pass_in_the_middle_of_a_named_pipeline(tmp_path: Path, capfd) -> None:
    from tcir.opt.command import main

    plugin = tmp_path / "count_tiles.py"
    plugin.write_text(PLUGIN)
    load = f"--load-pass-plugin={plugin}"
    assert main([load, "--list-passes"]) == 0
    assert "--count-tiles\n    Counts the allocations" in capfd.readouterr().out
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import count_tiles, tcir\n"
        "pipeline = tcir.named_pipeline('matmul').insert('count-tiles', after='tile-gemm')\n"
        f"kernel = tcir.compile({str(ROOT / 'examples' / 'matmul.mlir')!r}, pipeline)\n"
        "names = [line.name for line in kernel.report.passes]\n"
        "assert names[names.index('tile-gemm') + 1] == 'count-tiles'\n"
        "assert 'test.tiles' in kernel.ir['count-tiles']\n"
        "assert 'tcgen05.mma' in kernel.ptx\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, script], check=True, env=environment)

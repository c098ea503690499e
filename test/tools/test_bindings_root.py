"""The bindings under upstream's import root, ``mlir``: a shim stands in for such a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tcir import _mlir
from tcir.dialect.base import TC
from tcir.program.source import mlir_context

ROOT = Path(__file__).resolve().parents[2]

SHIM = '''
import importlib, importlib.abc, importlib.machinery, sys


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """mlir.X is torch_mlir.X."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith("mlir."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return importlib.import_module("torch_" + spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Alias())
__path__ = []
'''

SMOKE = f"""
import tcir
from tcir import _mlir
program = open({str(ROOT / "examples" / "matmul.mlir")!r}).read()
kernel = tcir.compile(program, "matmul")
assert ".entry" in kernel.ptx and "tcgen05.mma" in kernel.ptx
small = '''func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}}'''
report = tcir.validate(small, ["canonicalize"])
assert report.ok, report
print(_mlir.root(), _mlir.ir.__spec__.name)
"""


def test_compiles_and_executes_with_the_root_mlir(tmp_path: Path) -> None:
    (tmp_path / "mlir").mkdir()
    (tmp_path / "mlir" / "__init__.py").write_text(SHIM)
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    environment = {**os.environ, "TCIR_MLIR_ROOT": "mlir", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SMOKE], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["mlir", "mlir.ir"]


FIRST = """
from tcir.mlir import ir, linalg
from tcir.program.source import mlir_context
with mlir_context():
    module = ir.Module.parse(open("examples/matmul.mlir").read())
    ops = [op.opview for op in module.body.operations[0].body.blocks[0]]
    assert [isinstance(op, linalg.MatmulOp) for op in ops].count(True) == 1, ops
"""


def test_the_first_op_of_linalg_has_its_class() -> None:
    """Plugins ask for it in a process that has met no op of linalg."""
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_passes_ask_for_names_of_linalg_ops() -> None:
    """An op that is met before its class is imported is of none: the module for passes has no
    classes."""
    with pytest.raises(AttributeError):
        _ = _mlir.linalg.GenericOp


NOTHING = "import sys; sys.modules['torch_mlir'] = sys.modules['mlir'] = None; import tcir; "


def test_without_bindings_the_error_names_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTHING + "tcir.validate('module {}')"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert "MissingDependencyError" in done.stderr
    assert "pip install torch-mlir" in done.stderr


def test_only_dialects_that_are_used_are_offered() -> None:
    used = {
        name
        for folder in ("src", "dialect", "passes", "test", "examples")
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text().splitlines()
        if line.strip().startswith("from tcir._mlir import")
        for name in line.partition(" import ")[2].replace(",", " ").replace("(", " ").split()
    }
    assert set(_mlir._DIALECTS) - used == set()


def test_a_dialect_is_built_op_by_op_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Except after another op was declared."""
    with mlir_context() as first:
        monkeypatch.setattr(TC, "_emit_dialect", lambda: pytest.fail("built again"))
        with mlir_context() as second:
            assert first is not second and second.is_dialect_loaded("tc")
        monkeypatch.setattr(TC, "operations", [*TC.operations, TC.operations[0]])
        with pytest.raises(pytest.fail.Exception, match="built again"), mlir_context():
            pass

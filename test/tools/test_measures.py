"""The measures of `make check` count what they say, and a number above its ceiling fails."""

from pathlib import Path

import pytest

from tcir.tools.dev import measures
from tcir.tools.dev.measures import ROOT, Tree

PASS = """
from __future__ import annotations
from typing import TYPE_CHECKING, Any
if TYPE_CHECKING:
    from tcir.passes.conv import rows

Op = Any

def lower(op: Any, *, a, b, c, d, e, f, g, h) -> list[Any]:
    from tcir.passes.emit import builders
    return []

@jit
def kernel(a, b, c, d, e, f, g, h, i): ...

def public(op, *, a, b, c, d, e, f, g, h): ...
"""
SOURCES = {
    "tcir/__init__.py": "_EXPORTS = {'public': 'x', 'Shown': 'x'}\n",
    "passes/conv/a.py": PASS,
    "passes/conv/rows.py": "from tcir.passes.conv.a import lower\n",
    "passes/emit/builders.py": """class Shown:
    def __init__(self, *, a, b, c, d, e, f, g, h, i): ...
    def _hidden(self, a, *, b, c, d, e, f, g, h, i, j): ...
""",
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("dialect", "pipelines", "tools"):
        (tmp_path / name).mkdir()
    return Tree(tmp_path)


def test_counts(tree: Tree) -> None:
    found = measures.measures(tree)
    assert found["any-passes"].value == 3
    assert found["functions-over-8-parameters"].detail == (
        "9 lower (passes/conv/a.py:9)",
        "10 _hidden (passes/emit/builders.py:3)",
    )
    assert found["arrows-between-passes-rooms"].detail == ("conv -> emit: 1",)
    assert found["cyclic-files-passes"].detail == ("passes/conv/a <-> passes/conv/rows",)
    assert found["complexity-over-15"].value == 0
    assert found["code-lines-passes"].value == 15


def test_code_lines_are_no_comments_and_no_docstrings(tree: Tree) -> None:
    room = tree.root / "pipelines"
    (room / "a.py").write_text('"""Doc."""\n\n# why\nA = """two\nlines"""\n"""Of A."""\n')
    assert measures.measures(tree)["code-lines-pipelines"].value == 2


def test_a_class_name_that_two_files_give(tree: Tree) -> None:
    (tree.root / "pipelines" / "b.py").write_text("class Shown: ...\nclass _Own: ...\n")
    (tree.root / "tools" / "c.py").write_text("class _Own: ...  # fmt: skip\n")
    found = measures.measures(tree)
    assert found["class-names-twice"].detail == ("Shown: passes/emit/builders.py, pipelines/b.py",)
    assert found["fmt-skip"].value == 1


def test_ops_that_a_table_lists_by_name(tree: Tree) -> None:
    """Those of upstream and of tc that have a class, but for the rules that execute ops."""
    files = {
        "dialect/ops/a.py": 'class MmaOp(Op, name="mma"): ...\n',
        "passes/conv/b.py": 'A = ("arith.addf", "linalg.fill", "tc.mma", "tc.x")\nB = "tc.mma"\n',
        "pipelines/c.py": 'RULES = {"tensor.pad": 1}\nx = f("tensor.pad")\n',
        "tcir/interp/d.py": 'RULES = {"tensor.pad": 1}\n',
    }
    for name, text in files.items():
        (tree.root / name).parent.mkdir(parents=True, exist_ok=True)
        (tree.root / name).write_text(text)
    assert measures.measures(tree)["ops-by-name"].detail == (
        "arith.addf (passes/conv/b.py:1)",
        "tc.mma (passes/conv/b.py:1)",
        "tensor.pad (pipelines/c.py:1)",
    )


def test_above_its_ceiling(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    found = {name: measure.value for name, measure in measures.measures(tree).items()}

    def check(**changed: int) -> int:
        lines = [f"{name} = {value}" for name, value in (found | changed).items()]
        (tree.root / "pyproject.toml").write_text("\n".join(["[tool.measures]", *lines]))
        return measures.check(tree.root)

    assert check() == 0
    assert check(**{"any-passes": 2}) == 1
    assert "any-passes: expected at most 2, got 3" in capsys.readouterr().out
    assert check(unheard_of=1) == 1


def test_floors() -> None:
    floors = Tree(ROOT).imports.floors()
    assert floors["errors"] < floors["dialect"] < floors["passes"] < floors["pipelines"]

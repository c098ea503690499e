"""What imports what: the machine and the PTX rules run without the compiler and without MLIR."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tcir

# Importing any of these by the modules below is an error.
COMPILER = (
    "tcir.dialect tcir.passes tcir.pipelines tcir.tools tcir.codegen tcir.passmanager tcir.opt "
    "tcir.session tcir.validation tcir.program"
)
MLIR = "torch_mlir mlir"
BLOCKED = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if any(name == b or name.startswith(b + ".") for b in {blocked!r}.split()):
            raise ImportError("blocked: " + name)

sys.meta_path.insert(0, Blocked())
{code}
"""


def run_blocked(blocked: str, code: str) -> subprocess.CompletedProcess[str]:
    program = BLOCKED.format(blocked=blocked, code=code)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def every_module(package: str) -> str:
    return (
        "import pkgutil\n"
        f"package = importlib.import_module({package!r})\n"
        f"for found in pkgutil.walk_packages(package.__path__, {package + '.'!r}):\n"
        "    if not found.name.endswith('__main__'): importlib.import_module(found.name)\n"
    )


@pytest.mark.parametrize("package", ["tcir.machine", "tcir.interp.ptx"])
def test_machine_and_ptx_rules(package: str) -> None:
    done = run_blocked(f"{COMPILER} {MLIR} tcir.layout tcir._mlir", every_module(package))
    assert done.returncode == 0, done.stderr


def test_run_ptx() -> None:
    code = "import tcir\ntcir.run_ptx, tcir.RunReport, tcir.TensorMap, tcir.Error"
    done = run_blocked(f"{COMPILER} {MLIR} tcir.layout tcir._mlir", code)
    assert done.returncode == 0, done.stderr


def test_layout() -> None:
    done = run_blocked(
        f"{COMPILER} {MLIR} tcir._mlir tcir.machine tcir.interp", every_module("tcir.layout")
    )
    assert done.returncode == 0, done.stderr


def test_the_check_sees_a_forbidden_import() -> None:
    done = run_blocked("tcir.layout", every_module("tcir.layout"))
    assert done.returncode != 0
    assert "blocked: tcir.layout" in done.stderr


def test_every_public_name_resolves() -> None:
    for name in tcir.__all__:
        assert getattr(tcir, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = tcir.nope


def test_what_users_copy_imports_no_private_name() -> None:
    """Documentation, examples, and the plugins that tests load."""
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("examples/**/*.py")]
    pages += [*root.glob("test/*/Inputs/*.py"), *root.glob("test/ptx/plugin/*.py")]
    assert len(pages) > 40
    private = re.compile(
        r"^\s*(?:from\s+\S*\b_[a-z]\S*\s+import|(?:from \S+ )?import .*\b_[a-z])", re.M
    )
    found = {str(page): private.findall(page.read_text(encoding="utf-8")) for page in pages}
    assert not {page: lines for page, lines in found.items() if lines}


def test_the_public_bindings_are_the_bindings() -> None:
    from tcir import _mlir, mlir

    others = [name for name in mlir.__all__ if name != "linalg"]
    assert all(getattr(mlir, name) is getattr(_mlir, name) for name in others)
    assert mlir.linalg is _mlir.import_bindings("dialects.linalg")  # with classes of ops
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mlir.nothing  # noqa: B018


@pytest.mark.parametrize("old", ["matmul", "conv2d", "block_scaled_matmul"])
def test_an_old_name_is_the_new_one_and_warns(old: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"is now tcir.compile_{old}: it"):
        assert getattr(tcir, old) is getattr(tcir, f"compile_{old}")
    assert old not in tcir.__all__

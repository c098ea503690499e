"""What imports what: the machine and the PTX rules run without the compiler and without MLIR."""

import subprocess
import sys

import pytest

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
    import tcir

    for name in tcir.__all__:
        assert getattr(tcir, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = tcir.nope

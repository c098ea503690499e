"""The package as installed: nothing forgotten, also from a path with a space."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tcir", "dialect", "passes", "pipelines", "tools", "pyproject.toml", "setup.py")


def test_every_folder_with_code_is_a_package() -> None:
    for folder in ("tcir", "dialect", "passes", "pipelines", "tools"):
        for source in (ROOT / folder).rglob("*.py"):
            assert (source.parent / "__init__.py").exists(), f"{source.parent} has no __init__.py"


def test_no_module_hides_one_of_another_folder() -> None:
    for folder in ("dialect", "passes", "pipelines", "tools"):
        assert not (ROOT / "tcir" / folder).exists()
        assert not (ROOT / "tcir" / f"{folder}.py").exists()


@pytest.mark.slow
@pytest.mark.parametrize("editable", [False, True])
def test_install_from_a_path_with_a_space(tmp_path: Path, editable: bool) -> None:
    source = tmp_path / "a folder" / "tcir source"
    source.mkdir(parents=True)
    for name in (*FOLDERS, "LICENSE", "README.md"):
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.exists():
            shutil.copy(path, source / name)
    environment = tmp_path / "an environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--no-deps"]
    subprocess.run([*install, *(["-e"] if editable else []), str(source)], check=True)
    code = (
        "import tcir, tcir.layout, tcir.tools.tc_opt, importlib.util as u; "
        "assert all(u.find_spec('tcir.' + n) for n in "
        "('dialect', 'passes', 'pipelines', 'machine', 'interp.ptx.isa', 'codegen')); "
        "from pathlib import Path; assert Path(tcir.__file__).with_name('py.typed').exists(); "
        "print(tcir.__file__)"
    )
    # The dependencies come from this environment; last, so that its own tcir is not found.
    borrow = f"import sys; sys.path.append({str(Path(np.__file__).parents[1])!r}); "
    done = subprocess.run(
        [python, "-c", borrow + code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert ("tcir source" in done.stdout) == editable
    assert (environment / "bin" / "tc-opt").exists()
    assert (environment / "bin" / "tc-run").exists()

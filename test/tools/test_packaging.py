"""The package as installed: nothing forgotten, found from everywhere, developer tools left out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("dialect", "passes", "pipelines", "tools")
"""At the top of the repository; `src/tcir` links to them."""


def test_every_folder_with_code_is_a_package() -> None:
    for folder in ("src/tcir", *FOLDERS):
        for source in (ROOT / folder).rglob("*.py"):
            assert (source.parent / "__init__.py").exists(), f"{source.parent} has no __init__.py"


def test_the_links_lead_to_the_folders_at_the_top() -> None:
    for folder in FOLDERS:
        assert (ROOT / "src" / "tcir" / folder).resolve() == ROOT / folder


def clone(parent: Path) -> Path:
    """A copy of the tracked sources, called `tcir` as a clone is."""
    source = parent / "tcir"
    source.mkdir(parents=True)
    for name in (*FOLDERS, "src", "pyproject.toml", "LICENSE", "README.md"):
        path = ROOT / name
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
        if path.is_dir():
            shutil.copytree(path, source / name, symlinks=True, ignore=ignore)
        else:
            shutil.copy(path, source / name)
    return source


def modules(names: list[str]) -> set[str]:
    """Dotted names of the modules of an archive."""
    inside = [name[name.rindex("tcir/") :] for name in names if "tcir/" in name]
    return {name[:-3].replace("/", ".") for name in inside if name.endswith(".py")}


EXPECTED = {
    "tcir.dialect.tc", "tcir.passes.gemm.tile_gemm", "tcir.pipelines.gemm",
    "tcir.tools.tc_opt", "tcir.machine.engine.machine", "tcir.interp.ptx.isa.bits",
}  # fmt: skip


def check_archive(names: list[str]) -> None:
    found = modules(names)
    assert found >= EXPECTED
    assert not [name for name in found if name.startswith("tcir.tools.dev")]
    assert any(name.endswith("tcir/py.typed") for name in names)


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_no_developer_tools(tmp_path: Path) -> None:
    source = clone(tmp_path / "a folder")
    wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "out"]
    subprocess.run([*wheel, source], check=True)
    (built,) = (tmp_path / "out").glob("tcir-*.whl")
    check_archive(zipfile.ZipFile(built).namelist())


SDIST = "from setuptools import build_meta; import sys; build_meta.build_sdist(sys.argv[1])"


@pytest.mark.slow
def test_the_source_archive_builds_the_same(tmp_path: Path) -> None:
    source = clone(tmp_path / "a folder")
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "setuptools>=77"], check=True)
    (tmp_path / "out").mkdir()
    subprocess.run([python, "-c", SDIST, tmp_path / "out"], cwd=source, check=True)
    (archive,) = (tmp_path / "out").glob("tcir-*.tar.gz")
    with tarfile.open(archive) as tar:
        check_archive(tar.getnames())
    wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "wheel"]
    subprocess.run([*wheel, archive], check=True)
    (built,) = (tmp_path / "wheel").glob("tcir-*.whl")
    check_archive(zipfile.ZipFile(built).namelist())


SCRIPT = """
import sys
sys.path.append({libraries!r})  # dependencies; last, so that their tcir is not found
import tcir, tcir.layout, tcir.pipelines.gemm, tcir.tools.tc_opt
from pathlib import Path
assert tcir.compile and tcir.validate
assert Path(tcir.__file__).with_name("py.typed").exists()
print(tcir.__file__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("editable", [False, True])
def test_installed_and_found_in_above_and_beside_the_clone(tmp_path: Path, editable: bool) -> None:
    above = tmp_path / "a folder"
    source, beside = clone(above), above / "beside"
    beside.mkdir()
    environment = tmp_path / "an environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--no-deps"]
    subprocess.run([*install, *(["-e"] if editable else []), str(source)], check=True)
    libraries = str(Path(np.__file__).parents[1])
    for folder in (source, above, beside):
        script = folder / "script.py"
        script.write_text(SCRIPT.format(libraries=libraries))
        for words in ([script], ["-c", SCRIPT.format(libraries=libraries)]):
            done = subprocess.run(
                [python, *words], capture_output=True, text=True, cwd=folder, env={}
            )
            assert done.returncode == 0, (folder, done.stderr)
            at = Path(done.stdout.strip())
            assert at.is_relative_to(source / "src" if editable else environment), folder
    for command in ("tc-opt", "tc-run", "tc-viz"):
        assert (environment / "bin" / command).exists()

"""The package as installed: nothing forgotten, found from everywhere, developer tools left out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

import tcir

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SCRIPTS = ("tc-bench", "tc-opt", "tc-reduce", "tc-run", "tc-viz")
FOLDERS = ("dialect", "passes", "pipelines", "tools")
"""At the top of the repository; `src/tcir` links to them."""


def test_every_folder_with_code_is_a_package() -> None:
    for folder in ("src/tcir", *FOLDERS):
        for source in (ROOT / folder).rglob("*.py"):
            assert (source.parent / "__init__.py").exists(), f"{source.parent} has no __init__.py"


def test_the_links_lead_to_the_folders_at_the_top() -> None:
    for folder in FOLDERS:
        assert (ROOT / "src" / "tcir" / folder).resolve() == ROOT / folder


def test_constraints_are_within_the_bounds() -> None:
    """Every package that is needed or tested with has its version; an extra's may be open."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    versions = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *extras["test"], *extras["torch"], *extras["triton"]]
    for line in [*needed, *(line for each in extras.values() for line in each)]:
        bound = Requirement(line)
        name = bound.name.lower().replace("_", "-")
        assert name in versions or line not in needed, line
        assert name not in versions or bound.specifier.contains(versions[name]), line


def test_the_version_is_written_once() -> None:
    """But for CITATION.cff, which tools read as it is."""
    cited = (ROOT / "CITATION.cff").read_text()
    assert "version" not in PROJECT
    assert f"\nversion: {tcir.__version__}\n" in cited


def test_bounds_do_not_end_with_a_year() -> None:
    """A version that is a date has no upper bound: it would end for everybody on one day."""
    extras = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *(line for each in extras.values() for line in each)]:
        assert not re.search(r"<\s*20\d\d", line), line


def test_every_command_is_known() -> None:
    assert tuple(sorted(PROJECT["scripts"])) == SCRIPTS


def clone(parent: Path) -> Path:
    """A copy of the tracked sources, called `tcir` as a clone is."""
    source = parent / "tcir"
    source.mkdir(parents=True)
    files = ("pyproject.toml", "LICENSE", "README.md", "MANIFEST.in", "CHANGELOG.md", "Makefile")
    for name in (*FOLDERS, "src", "docs", "examples", "test", *files):
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", parent / "out"]
    subprocess.run([*words, clone(parent / "a folder")], check=True)
    (built,) = (parent / "out").glob("tcir-*.whl")
    return built


def test_the_wheel_holds_the_package_and_no_developer_tools(wheel: Path) -> None:
    check_archive(zipfile.ZipFile(wheel).namelist())


SDIST = "from setuptools import build_meta; import sys; build_meta.build_sdist(sys.argv[1])"


def test_the_source_archive_builds_the_same(wheel: Path, tmp_path: Path) -> None:
    source = clone(tmp_path / "a folder")
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "setuptools>=77"], check=True)
    (tmp_path / "out").mkdir()
    subprocess.run([python, "-c", SDIST, tmp_path / "out"], cwd=source, check=True)
    (archive,) = (tmp_path / "out").glob("tcir-*.tar.gz")
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    check_archive([name for name in names if "/src/" in name])
    for name in (
        "test/conftest.py",
        "docs/explanation/architecture.md",
        "examples/matmul.mlir",
        "CHANGELOG.md",
    ):
        assert any(each.endswith(f"/{name}") for each in names), name
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "wheel"]
    subprocess.run([*words, archive], check=True)
    (built,) = (tmp_path / "wheel").glob("tcir-*.whl")
    assert zipfile.ZipFile(built).namelist() == zipfile.ZipFile(wheel).namelist()


SCRIPT = """
import sys
sys.path.append({libraries!r})  # dependencies; last, so that their tcir is not found
import tcir, tcir.layout, tcir.pipelines.gemm, tcir.tools.tc_opt
from pathlib import Path
assert tcir.compile and tcir.validate
assert Path(tcir.__file__).with_name("py.typed").exists()
print(tcir.__file__)
"""


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
    for command in SCRIPTS:
        assert (environment / "bin" / command).exists()


def pythons() -> list[str]:
    """Interpreters of the versions that pyproject.toml names, those that are on this machine."""
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for version in named:
        here = sorted(str(path) for path in kept.glob(f"{version}.*/bin/python"))
        if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
            here = [sys.executable]
        found += here[-1:] or filter(None, [shutil.which(f"python{version}")])
    return found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("python", pythons())
def test_a_fresh_environment_compiles_and_executes(
    python: str, wheel: Path, tmp_path: Path
) -> None:
    """The wheel with its dependencies, and nothing else: no checkout, no path."""
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("PYTHON")}
    subprocess.run([python, "-m", "venv", tmp_path / "environment"], check=True, env=environment)
    bin_ = tmp_path / "environment" / "bin"
    constraints = ["-c", ROOT / "constraints.txt"]
    install = [bin_ / "python", "-m", "pip", "install", "-q", *constraints, wheel]
    subprocess.run(install, check=True, env=environment)
    program = tmp_path / "one_tile.mlir"
    shutil.copy(ROOT / "examples" / "tf32_one_tile.mlir", program)

    def run(*words: str) -> str:
        done = subprocess.run(
            [bin_ / words[0], *words[1:]],
            cwd=tmp_path,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, (words, done.stdout)
        return done.stdout

    for script in SCRIPTS:
        assert "ptxas" in run(script, "--version")
    report = run(
        "tc-opt", program.name, "--pipeline=gemm", "--emit=cubin", "-o", "k.cubin",
        "--validate-each",
    )  # fmt: skip
    assert re.search(r"^held: \d+ steps; full range; special values$", report, re.M), report
    assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")


@pytest.mark.parametrize("constrained", [False, True])
def test_the_extras_resolve_together(wheel: Path, constrained: bool) -> None:
    words = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed"]
    if constrained:
        words += ["-c", str(ROOT / "constraints.txt")]
    words += ["--report", "-", f"{wheel}[torch,triton]"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {each["metadata"]["name"].lower() for each in json.loads(done.stdout)["install"]}
    assert found >= {"tcir", "torch", "triton"}

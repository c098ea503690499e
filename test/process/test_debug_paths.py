"""Sources in code begin as --debug-prefix-map says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tcir
from tcir.codegen.debug_paths import map_prefixes, parse_prefixes
from tcir.errors import InputError

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "tf32_one_tile.mlir"


def line(path: str, folder: str = "") -> str:
    return f'!4 = !DIFile(filename: "{path}", directory: "{folder}")'


@pytest.mark.parametrize(
    ("path", "texts", "mapped"),
    [
        ("/home/me/a.mlir", ["/home/me=."], "./a.mlir"),
        ("/home/me/a.mlir", ["/home/you=."], "/home/me/a.mlir"),
        ("/home/me/a.mlir", ["/home=x", "/home/me=y"], "y/a.mlir"),
        ("/home/me/a.mlir", ["/home/me=y", "/home=x"], "x/me/a.mlir"),
        ("/home/me/a.mlir", ["/home/me/="], "a.mlir"),
        ("/home/me/a.mlir", ["/home/me=a=b"], "a=b/a.mlir"),
        (r"/gr\C3\B6\C3\9Fe/a.mlir", ["/größe=/ä"], r"/\C3\A4/a.mlir"),
        (r"/a\22b/\5Cc", ['/a"b=q"'], r"q\22/\5Cc"),
    ],
)
def test_beginnings_of_paths(path: str, texts: list[str], mapped: str) -> None:
    prefixes = parse_prefixes(texts)
    assert map_prefixes(f"x\n{line(path)}\n", prefixes) == f"x\n{line(mapped)}\n"
    assert map_prefixes(line("a", path), prefixes) == line("a", mapped)


def test_nothing_else_of_the_text_changes() -> None:
    text = '@s = constant [9 x i8] c"/home/me/"\n; !DIFile(filename: "/home/me/a")\n'
    assert map_prefixes(text, {"/home/me": "."}) == text


@pytest.mark.parametrize("text", ["/home", "=x", ""])
def test_what_is_no_prefix(text: str) -> None:
    with pytest.raises(InputError, match=r"--debug-prefix-map: expected OLD=NEW"):
        parse_prefixes([text])


def ptx_in(folder: Path, *flags: str) -> str:
    folder.mkdir()
    (folder / "a.mlir").write_text(EXAMPLE.read_text())
    words = ["tc-opt", str(folder / "a.mlir"), "--pipeline=gemm", "--emit=ptx", *flags]
    ended = run(words, folder)
    assert ended.status == 0, ended.err
    return ended.out


def test_two_folders_make_the_same_code(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first, second = (ptx_in(each, f"--debug-prefix-map={each}=.") for each in (one, two))
    assert first == second and '"./a.mlir"' in first and str(tmp_path) not in first
    assert str(tmp_path / "three") in ptx_in(tmp_path / "three")


def test_the_cache_tells_them_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCIR_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "a.mlir").write_text(EXAMPLE.read_text())
    for new in ("x", "y", "x"):
        prefixes = {str(tmp_path): new}
        kernel = tcir.compile(tmp_path / "a.mlir", "gemm", debug_prefix_map=prefixes)
        assert f'"{new}/a.mlir"' in kernel.ptx
    assert "from the cache" in str(kernel.report.notes)

"""The site of the documentation: every page is in it, and it builds without a warning."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tcir

ROOT = Path(__file__).parents[2]


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    named = set(re.findall(r"[\w-]+\.md", text.split("nav:")[1]))
    assert named == {page.name for page in (ROOT / "docs").glob("*.md")}


def test_every_public_name_is_on_the_page() -> None:
    """What `tcir.__all__` exports, packages aside."""
    text = (ROOT / "docs" / "api.md").read_text()
    named = set(re.findall(r"^::: tcir\.[\w.]+\.(\w+)$", text, re.M))
    assert named == set(tcir.__all__) - {"__version__", "cuda", "debug", "formats"}


def test_every_picture_is_in_the_gallery() -> None:
    text = (ROOT / "docs" / "gallery.md").read_text()
    named = set(re.findall(r"\(pictures/([\w.]+)\)", text))
    assert named == {file.name for file in (ROOT / "docs" / "pictures").iterdir()}


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocstrings") is None, reason="needs the extra docs (make site)"
)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tutorial-pass.html").is_file()
    api = (tmp_path / "api.html").read_text()
    assert '<span class="go">  %rd28' in (tmp_path / "debugging.html").read_text()  # no command
    triton = (tmp_path / "triton.html").read_text()
    assert '<span class="flag">--autotune</span> modelled' in triton
    assert "<code>persistent_<wbr>matmul_<wbr>pipelined_<wbr>kernel</code>" in triton
    assert "<li><code>pipeline</code>: what compiled it" in api and "<details" not in api

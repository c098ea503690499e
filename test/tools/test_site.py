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
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    named = re.findall(r"[\w/-]+\.md", text.split("nav:")[1])
    pages = (ROOT / "docs").rglob("*.md")
    assert sorted(named) == sorted(str(page.relative_to(ROOT / "docs")) for page in pages)


def test_every_page_is_of_one_kind() -> None:
    folders = {page.parent.name for page in (ROOT / "docs").glob("*/*.md")}
    kinds = {"tutorials", "how-to", "reference", "explanation", "design-notes", "results"}
    assert folders == kinds
    results = {page.name for page in (ROOT / "docs" / "results").iterdir()}
    results -= {"first-hour.md", "time-model.md"}  # written by one command from several runs
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d-[a-z0-9-]+\.md", name) for name in results)
    assert {page.name for page in (ROOT / "docs").glob("*.md")} == {"index.md", "found.md"}


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each).lower() for each in headings)
    return {re.sub(r"[^\w\- ]", "", each).strip().replace(" ", "-") for each in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^()\s]+)\)", text):
        if re.match(r"https?:|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_that_a_text_names_is_there() -> None:
    """In docstrings, comments, errors and tests."""
    words = ["git", "grep", "-hoE", r"\bdocs/[a-z0-9/_-]+\.(md|svg|png)"]
    named = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.split()
    assert len(named) > 100
    others = ("docs/cpp/cute/", "docs/pallas/", "docs/a.md")  # CUTLASS, JAX, a test of the lint
    missing = {name for name in named if not (ROOT / name).exists()}
    assert all(name.startswith(others) for name in missing), missing


def test_every_public_name_is_on_the_page() -> None:
    """What `tcir.__all__` exports, packages aside."""
    text = (ROOT / "docs" / "reference" / "api.md").read_text()
    named = set(re.findall(r"^::: tcir\.[\w.]+\.(\w+)$", text, re.M))
    assert named == set(tcir.__all__) - {"__version__", "cuda", "debug", "formats"}


def test_every_picture_is_in_the_gallery() -> None:
    text = (ROOT / "docs" / "reference" / "gallery.md").read_text()
    named = set(re.findall(r"\(\.\./pictures/([\w.]+)\)", text))
    assert named == {file.name for file in (ROOT / "docs" / "pictures").iterdir()}


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocstrings") is None, reason="needs the extra docs (make site)"
)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tutorials" / "first-pass.html").is_file()
    api = (tmp_path / "reference" / "api.html").read_text()
    assert (
        '<span class="go">  %rd28' in (tmp_path / "tutorials" / "debugging.html").read_text()
    )  # no command
    triton = (tmp_path / "how-to" / "triton.html").read_text()
    assert '<span class="flag">--autotune</span> modelled' in triton
    assert "<code>persistent_<wbr>matmul_<wbr>pipelined_<wbr>kernel</code>" in triton
    assert "<li><code>pipeline</code>: what compiled it" in api and "<details" not in api

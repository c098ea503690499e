"""The list of tests that only `make test-all` runs."""

from __future__ import annotations

from pathlib import Path

from tiers import BUDGET, KEPT, LIST, listed, over_budget

ROOT = LIST.parents[1]

JUNIT = """<testsuites><testsuite>
<testcase classname="test.a.test_x" name="quickest" time="{0}" />
<testcase classname="test.a.test_x" name="second[1-2]" time="{1}" />
<testcase classname="test.a.test_x" name="third" time="0.1" />
<testcase classname="test.triton_scripts.test_y" name="one" time="{1}" />
<testcase classname="test.triton_scripts.test_y" name="two" time="{1}" />
<testcase name="crashed" time="9" />
</testsuite></testsuites>"""


def test_the_listed_exist() -> None:
    assert len(listed()) > 100
    for name in (*listed(), *KEPT):
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(), name


def test_each_file_keeps_its_quickest(tmp_path: Path) -> None:
    report = tmp_path / "quick.xml"
    report.write_text(JUNIT.format(0.01, BUDGET * 2))
    assert over_budget(report) == ["test/a/test_x.py::second[1-2]"]
    report.write_text(JUNIT.format(BUDGET * 2, BUDGET * 3).replace('"0.1"', f'"{BUDGET * 4}"'))
    assert over_budget(report) == ["test/a/test_x.py::second[1-2]", "test/a/test_x.py::third"]

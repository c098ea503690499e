"""What is slow follows from the stored seconds; shards take as long each."""

from __future__ import annotations

from pathlib import Path

import tiers
from tiers import KEPT, over_budget

from tcir.tools.dev.shards import DURATIONS, durations, parts

ROOT = DURATIONS.parents[1]
JUNIT = """<testsuites><testsuite>
<testcase classname="test.a.test_x" name="fast" time="0.01" />
<testcase classname="test.a.test_x" name="slow[1-2]" time="2.34" />
<testcase name="crashed" time="9" />
</testsuite></testsuites>"""


def test_the_listed_exist() -> None:
    assert len(durations()) > 500
    for name in (*durations(), *KEPT):
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(), name


def test_each_file_keeps_its_quickest() -> None:
    stored = {"test/a/x.py::second": 0.4, "test/a/x.py::third": 2.0, "test/b/y.py::all": 9.0,
              "test/b/y.py::most": 7.0, "test/torch_models/z.py::one": 9.0,
              "test/torch_models/z.py::two": 9.0, KEPT[0]: 99.0}  # fmt: skip
    names = ["test/a/x.py::unlisted", *stored]
    assert over_budget(names, stored, 1.0) == {"test/a/x.py::third", "test/b/y.py::all"}
    assert over_budget(names, stored, 0.3) >= {"test/a/x.py::second"}
    assert over_budget(names, stored, float("inf")) == frozenset()


def test_a_report_brings_the_list_up_to_date(tmp_path: Path) -> None:
    stored = tmp_path / "durations.txt"
    stored.write_text("3.0 test/a/test_x.py::fast\n0.5 test/b.py::other\n")
    (tmp_path / "quick.xml").write_text(JUNIT)
    tiers.write([tmp_path / "quick.xml"], stored)
    assert stored.read_text() == "2.3 test/a/test_x.py::slow[1-2]\n0.5 test/b.py::other\n"


def test_shards_take_as_long_each() -> None:
    stored = durations()
    found = parts(stored, 8)
    assert found.keys() == stored.keys() and set(found.values()) == set(range(8))
    seconds = [sum(stored[name] for name in found if found[name] == part) for part in range(8)]
    assert max(seconds) - min(seconds) <= max(stored.values())

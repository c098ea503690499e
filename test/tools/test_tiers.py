"""What is slow follows from the stored seconds; shards take as long each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import tiers
from tiers import KEPT, LIST, durations, over_budget

from tcir.tools.dev.shards import parts

ROOT = LIST.parents[1]
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


def test_each_file_keeps_its_quickest(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {"test/a/x.py::second": 0.4, "test/a/x.py::third": 2.0, "test/b/y.py::all": 9.0,
              "test/b/y.py::most": 7.0, "test/torch_models/z.py::one": 9.0,
              "test/torch_models/z.py::two": 9.0, KEPT[0]: 99.0}  # fmt: skip
    monkeypatch.setattr(tiers, "durations", lambda: stored)
    names = ["test/a/x.py::unlisted", *stored]
    assert over_budget(names, 1.0) == {"test/a/x.py::third", "test/b/y.py::all"}
    assert over_budget(names, 0.3) >= {"test/a/x.py::second"}
    assert over_budget(names, float("inf")) == frozenset()


def test_a_report_brings_the_list_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = tmp_path / "durations.txt"
    monkeypatch.setattr(tiers, "LIST", stored)
    monkeypatch.setattr(
        tiers, "durations", lambda: {"test/a/test_x.py::fast": 3.0, "test/b.py::other": 0.5}
    )
    (tmp_path / "quick.xml").write_text(JUNIT)
    tiers.write([tmp_path / "quick.xml"])
    assert stored.read_text() == "2.3 test/a/test_x.py::slow[1-2]\n0.5 test/b.py::other\n"


def test_shards_take_as_long_each() -> None:
    found = parts(LIST, 8)
    seconds: Counter[int] = Counter()
    for name, part in found.items():
        seconds[part] += durations()[name]  # type: ignore[assignment]
    assert found.keys() == durations().keys() and len(seconds) == 8
    assert max(seconds.values()) - min(seconds.values()) <= max(durations().values())

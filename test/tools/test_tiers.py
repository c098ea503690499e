"""What is slow follows from the stored seconds; shards take as long each."""

from __future__ import annotations

from pathlib import Path

import tiers
from tiers import CASES, FEATURES, KEPT, LONGEST, SENTINEL, SHARE, over_budget

from tcir.tools.dev.shards import DURATIONS, UNLISTED, durations, expected, parts, seconds

ROOT = DURATIONS.parents[1]
JUNIT = """<testsuites><testsuite>
<testcase classname="test.a.test_x" name="fast" time="0.01" />
<testcase classname="test.a.test_x" name="skipped" time="0.01"><skipped /></testcase>
<testcase classname="test.a.test_x" name="slow[1]" time="1.21" />
<testcase classname="test.a.test_x" name="slow[2]" time="1.19" />
<testcase classname="test.a.test_x" name="slow[3-4]" time="4.2" />
<testcase name="crashed" time="9" />
</testsuite></testsuites>"""


def test_the_listed_exist() -> None:
    assert len(durations()) > 500
    for name in (*durations(), *FEATURES, *KEPT):
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(), name


def test_seconds_of_a_case() -> None:
    stored = {"test/x.py::f": 2.0, "test/x.py::f[1]": 0.5}
    names = ("test/x.py::f[1]", "test/x.py::f[2]", "test/x.py::g[1]")
    assert [seconds(name, stored) for name in names] == [0.5, 2.0, UNLISTED]


def test_each_file_keeps_its_quickest() -> None:
    stored = {"test/a/x.py::second": 0.4, "test/a/x.py::third": 2.0, "test/b/y.py::all": 9.0,
              "test/b/y.py::most": 7.0, "test/torch_models/z.py::one": 9.0,
              "test/torch_models/z.py::two": 9.0, KEPT[0]: 99.0}  # fmt: skip
    names = ["test/a/x.py::unlisted", *stored]
    assert over_budget(names, stored, 1.0) == {"test/a/x.py::third", "test/b/y.py::all"}
    assert over_budget(names, stored, 0.3) >= {"test/a/x.py::second"}
    assert over_budget(names, stored, float("inf")) == frozenset()


def test_a_file_of_very_slow_tests_keeps_none() -> None:
    stored = {"test/b/y.py::all": LONGEST + 0.1}
    assert over_budget(stored, stored, 1.0) == set(stored)


def test_the_cases_of_a_function_have_a_share() -> None:
    stored = {"test/a/x.py::f": 0.25}
    names = [f"test/a/x.py::f[{n}]" for n in range(60)]
    assert len(over_budget(names, stored, 0.3)) == len(names) - 4 * SHARE
    assert len(over_budget(names, stored, 1.0)) == len(names) - 4 * CASES < len(names)
    unlisted = [f"test/a/x.py::g[{n}]" for n in range(100 * SHARE)]
    assert not over_budget(unlisted, stored, 0.3)


def test_a_share_has_cases_of_all_parameters() -> None:
    stored = {"test/a/x.py::f": 0.1}
    names = [f"test/a/x.py::f[{kind}-{n}]" for kind in "abcdefgh" for n in range(25)]
    quick = set(names) - over_budget(names, stored, 0.1)
    assert len(quick) in (10 * SHARE, 10 * SHARE - 1)  # of sums of floats
    assert {name.partition("[")[2][0] for name in quick} == set("abcdefgh")


def test_a_feature_keeps_its_quickest_case_whatever_it_takes() -> None:
    feature = FEATURES[0]
    stored = {f"{feature}[1]": 8.0, f"{feature}[2]": 9.0, "test/cache/x.py::other[1]": 8.0}
    names = ["test/cache/x.py::unlisted", *stored]
    assert over_budget(names, stored, 0.1) == {f"{feature}[2]", "test/cache/x.py::other[1]"}


def test_each_function_keeps_its_quickest_unless_it_takes_long() -> None:
    stored = {
        "test/a/x.py::f": SENTINEL + 0.01,
        "test/a/x.py::f[1]": SENTINEL,
        "test/a/x.py::g": SENTINEL + 0.01,
    }
    names = ["test/a/x.py::unlisted", "test/a/x.py::f[1]", "test/a/x.py::f[2]", "test/a/x.py::g"]
    assert over_budget(names, stored, 0.1) == {"test/a/x.py::f[2]", "test/a/x.py::g"}


def test_a_report_brings_the_list_up_to_date(tmp_path: Path) -> None:
    """The mean of a function's cases, and those that are far from it."""
    stored = tmp_path / "durations.txt"
    stored.write_text(
        "3.0 test/a/test_x.py::fast\n0.5 test/b.py::other\n"
        "0.5 test/a/test_x.py::skipped\n9.0 test/a/test_x.py::slow[1]\n"
    )
    (tmp_path / "all.xml").write_text(JUNIT)
    tiers.write([tmp_path / "all.xml"], stored)
    assert stored.read_text() == (
        "0.5 test/a/test_x.py::skipped\n"
        "2.2 test/a/test_x.py::slow\n"
        "1.2 test/a/test_x.py::slow[1]\n"
        "1.2 test/a/test_x.py::slow[2]\n"
        "4.2 test/a/test_x.py::slow[3-4]\n"
        "0.5 test/b.py::other\n"
    )


def test_of_several_reports_the_longest_time_counts(tmp_path: Path) -> None:
    """Among the quick cases one may be the first to compute what several share."""
    stored = tmp_path / "durations.txt"
    stored.write_text("")
    case = '<testsuite><testcase classname="test.b" name="shared" time="{}" /></testsuite>'
    reports = [tmp_path / "all.xml", tmp_path / "quick.xml", tmp_path / "again.xml"]
    for report, time in zip(reports, (0.01, 2.5, 0.02)):
        report.write_text(case.format(time))
    tiers.write(reports, stored)
    assert stored.read_text() == "2.5 test/b.py::shared\n"


def test_shards_take_as_long_each() -> None:
    stored = durations()
    names = [*stored, *(f"test/new.py::case[{n}]" for n in range(1000))]
    found = parts(names, stored, 8)
    assert found.keys() == set(names) and set(found.values()) == set(range(8))
    loads = [sum(seconds(n, stored) for n in found if found[n] == part) for part in range(8)]
    assert max(loads) - min(loads) <= UNLISTED
    assert expected(found, stored, 8) == (
        f"{len(names)} tests take {sum(loads):.0f} s by test/durations.txt, "
        f"the longest of 8 shards {max(loads):.0f} s"
    )

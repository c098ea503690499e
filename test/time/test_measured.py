"""What an H200 measured of the frozen predictions, and the page that says so."""

from __future__ import annotations

import json
import statistics
from hashlib import sha256
from pathlib import Path

import pytest

from tcir.tools.dev import time_measured
from tcir.tools.dev.time_measured import SEEN, measured, per_step, probes, section

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/results/time-model.md").read_text(encoding="utf-8")
PREDICTIONS = ROOT / "bench/predictions_sm90.json"
MEASURED = json.loads((ROOT / "bench/measured_sm90.json").read_text())


def test_it_judges_the_predictions_that_were_frozen() -> None:
    frozen = PREDICTIONS.with_suffix(".sha256").read_text().split()[0]
    assert frozen.startswith("a71b9caaaa6890d9")
    assert MEASURED["predictions"] == frozen == sha256(PREDICTIONS.read_bytes()).hexdigest()
    names = [kernel["name"] for kernel in json.loads(PREDICTIONS.read_text())["kernels"]]
    assert all([row["name"] for row in run] == names for run in MEASURED["runs"])
    assert set(SEEN) < set(names) and len(SEEN) == 9


def test_the_table_follows_from_the_two_files() -> None:
    cycles = {k["name"]: k["cycles"] for k in json.loads(PREDICTIONS.read_text())["kernels"]}
    start = PAGE.index("### Measured")
    table = PAGE[start:]
    for first, second in zip(*MEASURED["runs"], strict=True):
        errors = []
        for row in (first, second):
            errors.append(cycles[row["name"]] / (row["us"] * row["ghz"] * 1000) - 1)
            assert errors[-1] == pytest.approx(row["error"], abs=1e-12)  # as it was printed there
        assert second["us"] == pytest.approx(first["us"], rel=0.02)
        line = next(x for x in table.splitlines() if x.startswith(f"| {first['name']} | "))
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        assert cells[1] == str(cycles[first["name"]])
        assert cells[2] == f"{first['us'] * first['ghz'] * 1000:.0f}"
        assert cells[4:] == [f"{error:+.1%}" for error in errors]
        missed = "**" in line
        assert missed == (abs(errors[0]) > 0.1)
        assert (table.count(first["name"]) > 1) or not missed  # explained below
    for number, run in enumerate(MEASURED["runs"]):
        median = statistics.median(abs(row["error"]) for row in run)
        assert median <= 0.1
        which = "in the second run the median" if number else "**The median error"
        assert f"{which} is {median:.1%}" in " ".join(table.split())
    assert section().strip() in PAGE


def test_numbers_in_the_prose_are_those_of_the_files() -> None:
    _, rows = measured()
    by_name = {row.name: row for row in rows}
    f32, f16 = by_name["matmul-warp 2048 f32"], by_name["matmul-warp 2048 f16"]
    assert f32.predicted - f16.predicted == 3340
    assert round(f16.measured[0] - f32.measured[0]) == 3359
    step = per_step(rows, "")[1][0]
    assert round(step) == 1722
    assert by_name["matmul-warp 1024 f32"].measured[0] - 2300 - 16 * 1722 == pytest.approx(
        10490, abs=1
    )
    for copy, want in (
        (by_name["TMA load, 8 KiB x 4"], 569),
        (by_name["TMA copy, 8 KiB x 4"], 1392),
    ):
        assert round((copy.measured[0] - 2300) / 64) == want


def test_another_file_of_predictions_and_a_miss_without_reason_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("predictions_sm90.json", "measured_sm90.json"):
        (tmp_path / name).write_bytes((ROOT / "bench" / name).read_bytes())
    monkeypatch.setattr(time_measured, "BENCH", tmp_path)
    assert section().strip() in PAGE
    document = json.loads(json.dumps(MEASURED))
    document["runs"][0][0]["us"] *= 1.2
    (tmp_path / "measured_sm90.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="a reason for each miss"):
        section()
    (tmp_path / "predictions_sm90.json").write_text(
        PREDICTIONS.read_text().replace("41397", "41398")
    )
    with pytest.raises(ValueError, match="the hash of predictions"):
        section()


def test_what_the_page_says_of_the_probes() -> None:
    frozen = (ROOT / "bench/probes_sm90.sha256").read_text().split()[0]
    assert frozen == sha256((ROOT / "bench/probes_sm90.json").read_bytes()).hexdigest()
    _, rows = measured("probes_sm90.json", "probes_measured_sm90.json")
    assert len(rows) == 31 and probes().strip() in PAGE
    took = {row.name: row.measured[0] for row in rows}
    modelled = {row.name: row.predicted for row in rows}

    def box(name: str, cycles: dict[str, float], count: int = 1) -> int:
        return round((cycles[name] - 2300) / 64 * count)

    load, one, cached = (f"TMA load, 8 KiB x 1{where}" for where in ("", ", one SM", ", in L2"))
    several = [box(f"TMA load, 8 KiB x {count}", took, count) for count in (2, 3)]
    assert [box(one, took), box(load, took), *several] == [1007, 1168, 1482, 1859]
    assert [box(one, modelled), box(load, modelled), box(cached, took)] == [1382, 1720, 474]
    store = "TMA store, 8 KiB x 1, one SM"
    assert [box(store, took), box(store, modelled)] == [336, 1413]
    pieces, rows_of_it = took["store, 8 x 32 bytes"], took["store, 1 x 256 bytes"]
    assert pieces / rows_of_it == pytest.approx(1.4, abs=0.05)
    short, narrow = took["store, 8 x 16 bytes"], took["store, 1 x 128 bytes"]
    assert short / narrow == pytest.approx(3.8, abs=0.05)
    assert short / pieces == pytest.approx(1.5, abs=0.05)
    for out, want in (("f32", (1850, 1726, 18.0, 13.8)), ("f16", (1830, 1850, 21.9, 8.4))):
        low, high = (f"matmul-warp 2048x2048x{k} {out} copy=tma" for k in (256, 1024))
        found = [(cycles[high] - cycles[low]) / 12 for cycles in (took, modelled)]
        rest = [cycles[low] - 4 * each for cycles, each in zip((took, modelled), found)]
        assert found == pytest.approx(list(want[:2]), abs=5)
        assert [round(x / 1000, 1) for x in rest] == list(want[2:])

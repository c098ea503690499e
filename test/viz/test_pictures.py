"""The pictures of docs/pictures are what the command writes today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcir.viz.pictures import FOLDER, PICTURES, main


def test_the_pictures_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out
    assert len(PICTURES) == 15
    assert sorted(PICTURES) == sorted(path.name for path in FOLDER.glob("*.svg"))


def test_the_check_sees_a_change_and_a_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    costly = [name for name in PICTURES if name.startswith(("tmem", "conv", "timeline"))]
    for name in costly:
        monkeypatch.delitem(PICTURES, name)
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    changed, gone = (tmp_path / name for name in list(PICTURES)[:2])
    changed.write_text(changed.read_text(encoding="utf-8").replace("T31", "T30"), encoding="utf-8")
    gone.unlink()
    assert main(["--check", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.count("is not up to date: run python -m tcir.viz.pictures") == 2
    assert changed.name in said and gone.name in said

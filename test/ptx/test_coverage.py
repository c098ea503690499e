"""docs/reference/ptx-coverage.md is what the generator writes."""

from __future__ import annotations

from typing import Any

from tcir.interp.ptx.registry import DECODERS, REFUSED
from tcir.tools.dev.ptx_coverage import TARGET, document, instructions, main


def test_document_is_fresh() -> None:
    assert main(["--check"]) == 0, "run python -m tcir.tools.dev.ptx_coverage"


def test_stale_document_is_noticed(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    stale = tmp_path / "coverage.md"
    stale.write_text(TARGET.read_text().replace("`fma`", "`fmaa`"))
    monkeypatch.setattr("tcir.tools.dev.ptx_coverage.TARGET", stale)
    assert main(["--check"]) == 1 and "stale" in capsys.readouterr().err
    assert main([]) == 0 and main(["--check"]) == 0


def test_every_instruction_and_what_its_rule_looks_at() -> None:
    text = document()
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    assert rows.keys() == set(instructions())
    assert len(instructions()) == len(DECODERS) - 7 and not DECODERS.keys() & REFUSED.keys()
    assert ".trans" in rows["ldmatrix.sync"] and ".x4" in rows["ldmatrix.sync"]
    assert ".satfinite" in rows["cvt"]  # a helper takes it
    assert ".f32x2" in rows["fma"] and ".xorsign" in rows["max"]
    assert "fp" not in rows["cp.async.commit_group"]

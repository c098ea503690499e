"""`Kernel.modelled`: a row for each launch, equal launches executed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tcir
import tcir.modelled
from tcir.run import RunReport
from tcir.time import modelled_time

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_row_for_each_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tcir.compile((EXAMPLES / "attention_block.mlir").read_text(), "layers")
    executed: list[str] = []
    run = tcir.modelled.run_ptx

    def counted(ptx: str, *, entry: str, **options: Any) -> RunReport:
        executed.append(entry)
        return run(ptx, entry=entry, **options)

    monkeypatch.setattr(tcir.modelled, "run_ptx", counted)
    program = kernel.modelled()
    launches = kernel.launches.launches
    assert [each.row.name for each in program.launches] == [each.title for each in launches]
    assert len(executed) == len(set(executed)) < len(launches)
    for each in program.launches:
        again = modelled_time(each.stream, "sm_100a", each.ctas, unique_bytes=each.bytes)
        assert each.time == again and each.roofline.microseconds < each.time.microseconds
        assert each.moved >= each.bytes  # a tile is loaded for each CTA that multiplies it
    (attention,) = (each for each in program.launches if each.row.work.computes == ("attention",))
    assert attention.roofline.flops == {"f16": 2 * 14_902_656}
    kernels = sum(each.time.microseconds for each in program.launches)
    assert program.microseconds > kernels  # and the gaps between launches
    assert len(program.trace()) > 10_000

    lines = str(program).splitlines()
    assert lines[0].split()[:3] == ["launch", "computes", "CTAs"]
    assert lines[-1].startswith("modelled: ") and "on sm_100a at" in lines[-1]
    assert len(lines) == len(launches) + 2


def test_a_program_without_launches() -> None:
    assert str(tcir.modelled.ModelledProgram(())) == "modelled: no launches"

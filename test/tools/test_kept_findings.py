"""What ends a run does not hide the hazards that were found before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.interp import Outcome
from tcir.machine import Agent, Machine
from tcir.validation.faults import guarded
from tcir.validation.report import Line


def racing(end: str) -> Any:
    """Two warps store to one word; then the first waits for nobody, or does what has no rule."""

    def body(agent: Agent) -> Any:
        data = np.full((1, 4), agent.warp, np.uint8)
        agent.memory.store("shared", np.array([0]), data, site=f"store of warp {agent.warp}")
        yield from agent.pause()
        if end == "deadlock" and agent.warp == 0:
            yield from agent.barrier.sync(1, 96, site="barrier of three warps")
        elif end == "no rule" and agent.warp == 0:
            yield from agent.pause()
            agent.fence("of another world", site="fence")

    def run() -> Outcome:
        machine = Machine(grid=(1, 1, 1), block=(64, 1, 1), dynamic_smem=64)
        machine.run(lambda cta: [cta.agent(f"warp {w}", warp=w, body=body) for w in (0, 1)])
        return Outcome([], "tile", findings=machine.findings)

    return run


@pytest.mark.parametrize(
    ("end", "verdict", "words"),
    [
        ("", "different", "1 error(s) of the program"),
        ("deadlock", "different", "illegal use of the machine: deadlock"),
        ("no rule", "incomplete", ""),
    ],
)
def test_findings_before_the_end_are_kept(end: str, verdict: str, words: str) -> None:
    line = Line(0, "a pass")
    assert guarded(line, racing(end)) is None
    assert line.verdict == verdict and words in line.compared
    assert [f["code"] for f in line.findings] == ["race"]
    assert "store of warp 0" in line.findings[0]["text"]
    guarded(line, racing(end))
    assert len(line.findings) == 1  # once, whatever the number of orders

"""Random forms of tcgen05.mma, emulated on an H200, leave what the simulated machine leaves.

`emulation.json` has digests of the GPU's bytes by number of the form; a Hopper GPU writes it anew:
`python -m tcir.testing.gpu --forms 300 --first 150 --digests test/hopper/emulation.json`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tcir.testing.forms import recorded
from tcir.testing.recorded import digest

DIGESTS = json.loads(Path(__file__).with_name("emulation.json").read_text())
QUICK = 8


def check(number: str) -> None:
    after = recorded(int(number)).after
    assert digest([each for each in after if not isinstance(each, str)]) == DIGESTS[number]


@pytest.mark.parametrize("number", [*DIGESTS][:QUICK])
def test_quick(number: str) -> None:
    check(number)


@pytest.mark.parametrize("number", [*DIGESTS][QUICK:])
def test_forms(number: str) -> None:
    check(number)

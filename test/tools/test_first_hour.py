"""The commands of docs/results/first-hour.md, which are those of README and the tutorials, in a
row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from first_hour import INSTALLATION, TARGET, outcome, steps, titles
from pasted import copy_checkout, follow


def test_the_table_has_nothing_that_no_page_tells_to_paste() -> None:
    """What was added to a page since, the next writing of the table adds."""
    found = re.findall(r"^\| [^|]*\| `(.+?)` \| \d+ \|", TARGET.read_text(), re.M)
    assert len(found) > 30 and set(found) <= {*INSTALLATION, *titles()}


def test_the_outcome_is_the_verdict_or_the_last_line() -> None:
    assert outcome("one\nheld: 2 steps\nremark\n   ^") == "held: 2 steps"
    assert outcome("ok: 25 instructions in 0.02 s (1 k/s)") == "ok: 25 instructions (1 k/s)"
    assert outcome("[[1 2]\n [3 4]]\n\n") == "[3 4]]"
    assert outcome("") == ""


@pytest.mark.timeout(3600)
def test_all_run_one_after_the_other(tmp_path: Path) -> None:
    copy = copy_checkout(tmp_path / "clone")
    for block in steps():
        if block.can_run:
            follow(block, copy)

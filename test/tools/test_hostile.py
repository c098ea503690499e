"""Inputs that mean harm: no traceback, hang, orphan or half-written file; known statuses.

Beside 1,500 over the first commands, there are 1,000 each over tc-reduce and the page of a report.

`hostile.hostile` draws an input from a seed. What these inputs found, all mended:

| input | seen before |
|---|---|
| ``ulimit -v`` below what numpy, MLIR or LLVM take | tracebacks; status 1, "a hazard" |
| a crash of native code in tc-run, tc-viz | died by the signal, no word of it |
| standard input closed | ``'NoneType' object has no attribute 'buffer'`` |
| standard error full | status 1 or 4 of a wrong flag |
| text of ``--emit=pretty`` | ``Unable to parse module assembly`` at 0:0; a traceback of tc-viz |
| a picture or an array where the disk ends (``ulimit -f``) | half a file; of tc-run with status 0 |
| ``/dev/full`` or ``/dev/zero`` as a report | read for ever |
| ``tc-viz report -o x.svg`` | a web page in ``x.svg`` |
| ``.version bytes`` | ``invalid literal for int()``, internal |
| another key in a launch file's tensor map | ``got an unexpected keyword argument``, internal |
| a bracket that is not closed in a .npy header | Python's TokenError, internal |
| ``--half-split -5`` | a picture of columns below 0 |
| a name of 300 letters | ``File name too long``, internal |
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tcir.tools.tc_viz

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import Setting
from hostile import Hostile, all_complaints, complaints, hostile, hostile_page, hostile_reduce

COUNT, QUICK, BATCH = 1500, 25, 73


def test_some_hostile_inputs() -> None:
    found = all_complaints(range(QUICK), hostile)
    assert not found, "\n".join(found)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(QUICK, COUNT, BATCH))
def test_hostile_inputs(first: int) -> None:
    found = all_complaints(range(first, first + BATCH), hostile)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("drawn", [hostile_reduce, hostile_page])
def test_some_hostile_inputs_of_newer_doors(drawn: Callable[[int], Hostile]) -> None:
    found = all_complaints(range(4), drawn)
    assert not found, "\n".join(found)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(4, 1000, 83))
@pytest.mark.parametrize("drawn", [hostile_reduce, hostile_page])
def test_hostile_inputs_of_newer_doors(drawn: Callable[[int], Hostile], first: int) -> None:
    found = all_complaints(range(first, first + 83), drawn)
    assert not found, "\n".join(found)


def _raises() -> int:
    raise KeyError("x")


def _sleeps() -> int:
    time.sleep(60)
    return 0


def _leaves_a_child() -> int:
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    return 0


def _writes_half() -> int:
    Path("out.svg").write_text("<svg>")
    return 0


def _leaves_a_file() -> int:
    Path(".out.svg.abcd1234").write_text("<svg></svg>")
    return 0


@pytest.mark.parametrize(
    ("main", "found"),
    [
        (_raises, "Traceback"),
        (_sleeps, "hangs"),
        (_leaves_a_child, "1 orphans"),
        (_writes_half, "out.svg is half-written"),
        (_leaves_a_file, "leaves .out.svg.abcd1234"),
        (lambda: 3, "says nothing"),
        (lambda: 7, "status 7"),
        (lambda: 1, "status 1 of tc-viz"),
    ],
)
def test_each_complaint_is_made(
    main: Callable[[], int], found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcir.tools.tc_viz, "main", main)
    case = Hostile("", ["tc-viz"], {}, Setting(seconds=1), ("out.svg",))
    assert found in complaints(case, tmp_path)

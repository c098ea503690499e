"""1,500 inputs that mean harm: no traceback, hang, orphan or half-written file; known statuses.

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
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tcir.tools.tc_viz

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import Setting
from hostile import Hostile, complaints, hostile, hostile_door

COUNT, QUICK, BATCH = 1500, 40, 73


def _wrong(seeds: range, drawn: Callable[[int], Hostile] = hostile) -> list[str]:
    found = []
    for seed in seeds:
        case = drawn(seed)
        with tempfile.TemporaryDirectory() as folder:
            wrong = complaints(case, Path(folder))
        found += [f"seed {seed}: {case}: {'; '.join(wrong)}"] if wrong else []
    return found


def test_some_hostile_inputs() -> None:
    found = _wrong(range(QUICK))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(QUICK, COUNT, BATCH))
def test_hostile_inputs(first: int) -> None:
    found = _wrong(range(first, first + BATCH))
    assert not found, "\n".join(found)


def test_some_hostile_inputs_of_newer_doors() -> None:
    found = _wrong(range(6), hostile_door)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(6, 300, 49))
def test_hostile_inputs_of_newer_doors(first: int) -> None:
    found = _wrong(range(first, first + 49), hostile_door)
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

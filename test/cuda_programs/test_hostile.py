"""1,000 calls of `tcir.cuda.Module` and 1,000 runs of `python -m tcir.cuda` that mean harm.

A call ends well or with `tcir.Error`; a command with a status that docs/how-to/cuda.md has, without
a traceback, a hang, an orphan or a half-written file.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import CLOSED, UNREAD, Setting
from hostile import PLACES, VALUES, Hostile, all_complaints, changed, flags
from hostile_values import Draw, array, value

CALLS, COMMANDS, BATCH = 1000, 1000, 83
ROOT = Path(__file__).parents[2]
PROGRAM = (ROOT / "examples" / "histogram.cu").read_bytes()
SAXPY = (ROOT / "examples" / "saxpy.ptx").read_bytes()
OPTIONS = ["cluster", "dynamic_smem", "hazards", "order_seed", "numerics", "max_instructions",
           "assumptions", "ordering", "ctas_per_sm", "programmatic", "lockstep", "jobs", "events",
           "addressed"]  # fmt: skip


def call(draw: Draw) -> Callable[[], object]:
    """A call with one to three things changed."""
    ptx: Any = SAXPY.decode()
    sizes: dict[str, Any] = {"grid": 8, "block": 128, "max_instructions": 20000}
    given: list[Any] = [np.ones(1000, np.float32), np.ones(1000, np.float32), 1.5, 1000]
    name: Any = "saxpy"
    for _ in range(draw.choice([1, 1, 2, 3])):
        match draw.randrange(6):
            case 0:
                ptx = changed(SAXPY, draw).decode(errors="replace")
            case 1:
                ptx = value(draw)
            case 2:
                name = value(draw)
            case 3:
                sizes[draw.choice(["grid", "block"])] = value(draw)
            case 4:
                sizes[draw.choice(OPTIONS)] = value(draw)
            case _:
                given[draw.randrange(4)] = draw.choice([array, value])(draw)
    if draw.random() < 0.1:
        given = given[: draw.randrange(4)]

    def work() -> object:
        module = tcir.cuda.Module.from_ptx(ptx)
        if draw.random() < 0.1:
            return module.variable(name)
        return module.kernel(name).launch(*given, **sizes)

    return work


def wrong(seed: int) -> str:
    """What is wrong with the way that a call ended; "" if nothing is."""
    begun = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(random.Random(seed))()
    except tcir.Error as error:
        if not str(error).strip() or "internal" in str(error):
            return f"says {str(error)[:300]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    spent = time.process_time() - begun
    return f"{spent:.0f} s" if spent > 60 else ""


def _calls(seeds: range) -> list[str]:
    found = [(seed, wrong(seed)) for seed in seeds]
    return [f"seed {seed}: {what}" for seed, what in found if what]


def test_some_calls() -> None:
    found = _calls(range(60))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_calls() -> None:
    found = _calls(range(60, CALLS))
    assert not found, "\n".join(found)


# --- the command ---------------------------------------------------------------------------------

FLAGS = ["--order-seed", "--order-seeds", "--numerics", "--jobs", "--trace", "--max-findings",
         "--warnings", "--sms", "--sample", "--target", "--nvcc", "--help",
         "--version"]  # fmt: skip


def _command(seed: int) -> Hostile:
    """Few streams and signals: those are compilations of the whole program."""
    draw = random.Random(seed)
    words, files = ["tcir.cuda", "program.cu"], {"program.cu": PROGRAM}
    setting, kind = Setting(seconds=100), "cuda"
    (what,) = draw.choices(["file", "flags", "places", "streams", "signals"], [40, 40, 10, 5, 5])
    match what:
        case "file":
            files["program.cu"], kind = changed(PROGRAM, draw), "program"
        case "flags":
            words = ["tcir.cuda", *flags(FLAGS, draw), "program.cu", draw.choice(VALUES)]
        case "places":
            place = draw.choice(PLACES)
            words = draw.choice(
                [
                    ["tcir.cuda", place],
                    ["tcir.cuda", "--trace", place, "program.cu"],
                    ["tcir.cuda", f"--nvcc={place}", "program.cu"],
                    ["tcir.cuda"],
                ]
            )
        case "streams":
            stream = draw.choice([
                {"stdin": CLOSED}, {"stdout": CLOSED}, {"stdout": "/dev/full"}, {"stdout": UNREAD},
                {"stderr": CLOSED}, {"stderr": "/dev/full"}, {"stderr": UNREAD},
            ])  # fmt: skip
            setting = Setting(**stream, seconds=100)
        case _:
            number = draw.choice([2, 15, 9, 1])
            setting = Setting(send=(number, 4 * draw.random() ** 2), seconds=100)
    return Hostile(kind, words, files, setting)


def test_some_commands() -> None:
    found = all_complaints(range(4), _command)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(4, COMMANDS, BATCH))
def test_commands(first: int) -> None:
    found = all_complaints(range(first, first + BATCH), _command)
    assert not found, "\n".join(found)

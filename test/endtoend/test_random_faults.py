"""Random single faults between passes: each gets a verdict, within seconds.

What a fault does to a program is not known beforehand (`mutating.py`), so the test asks only that
the outcome is one that a user is told in the project's words: equal, different, incomplete, or
refused by the pass or verifier that comes next. Never an exception, an internal error, a crash or a
loop without end. `test_breaks.py` and its siblings ask which verdict known faults get.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
from collections import Counter
from dataclasses import asdict, dataclass

import pytest

import tcir
from tcir.passmanager.pipeline import named_pipeline
from tcir.validation.report import Line

from .block_scaled_text import BlockScaled
from .breaking import Broken
from .linalg_text import Conv, Matmul
from .mutating import Mutation, NoFaultError

PROGRAMS = {
    "conv": Conv(1, 4, 6, 16, 16, 3, 3, (1, 1, 1, 1)).text(),
    "conv-implicit-gemm": Conv(1, 3, 10, 3, 16, 2, 3, (1, 0, 1, 1)).text(),
    "conv-shift-reuse": Conv(1, 4, 6, 16, 16, 3, 3, (1, 1, 1, 1)).text(),
    "conv-smem-offset": Conv(1, 4, 6, 64, 16, 3, 3, (1, 1, 1, 1)).text(),
    "gemv-padded-n": BlockScaled(m=128, k=512, n=3).linalg(),
    "gemv-simt": BlockScaled(m=16, k=256).linalg(),
    "matmul": Matmul(32, 16, 64).text(),
    "matmul-warp": Matmul(32, 16, 64).text(),
}
SEEDS = range(40)
"""Faults of each pipeline: 320."""
MOST_SECONDS = 60
"""Of processor time for one validation; they take two to five."""
VERDICTS = {"held", "different", "incomplete", "refused"}


@dataclass
class Outcome:
    """What a fault came to: `verdict` of the report, or "refused" by a later pass or verifier."""

    verdict: str
    fault: str
    at: str
    text: str = ""


def outcome(pipeline: str, seed: int) -> Outcome:
    """Puts the fault `seed` behind one of the passes, one that leaves something to damage."""
    draw = random.Random(f"{pipeline}/{seed}")
    while True:
        passes = list(named_pipeline(pipeline))
        place = draw.randrange(len(passes))
        mutation, lines = Mutation(seed), list[Line]()
        item = passes[place]
        passes[place] = Broken(item, mutation)
        broken = tcir.Pipeline(passes)
        try:
            report = tcir.validate(PROGRAMS[pipeline], broken, on_line=lines.append)
        except NoFaultError:
            continue
        except tcir.PassError as error:
            return Outcome("refused", mutation.what, item.name, str(error))
        except Exception as error:
            return Outcome(
                "exception", mutation.what, item.name, f"{type(error).__name__}: {error}"
            )
        break
    failed = [f["text"] for n in lines for f in n.findings if f["code"] == "interpreter-failed"]
    if failed:
        return Outcome("internal", mutation.what, item.name, failed[0])
    failure = report.first_failure()
    if failure is not None and failure.index < place + 1:
        return Outcome("named too early", mutation.what, item.name, str(failure))
    return Outcome(report.verdict, mutation.what, item.name, str(failure or ""))


def contained(pipeline: str, seed: int) -> Outcome:
    """`outcome` in a child process, which may crash or hang."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))  # SIGXCPU, SIGKILL
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MLIR tells there what it refuses
        with os.fdopen(writing, "w") as out:
            json.dump(asdict(outcome(pipeline, seed)), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        data = told.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return Outcome(signal.Signals(os.WTERMSIG(status)).name, f"seed {seed}", "")
    return Outcome(**json.loads(data))


def check(pipeline: str, seeds: range) -> Counter[str]:
    """Fails for the faults without a verdict; how often each verdict was given."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        got = contained(pipeline, seed)
        counts[got.verdict] += 1
        assert got.verdict in VERDICTS, f"{pipeline}, seed {seed}: {got}"
    return counts


@pytest.mark.parametrize("pipeline", PROGRAMS)
def test_a_random_fault_gets_a_verdict(pipeline: str) -> None:
    assert check(pipeline, SEEDS[1:2])


@pytest.mark.parametrize("pipeline", PROGRAMS)
def test_random_faults_get_a_verdict(pipeline: str) -> None:
    assert tcir.validate(PROGRAMS[pipeline], pipeline), "the whole program holds"
    counts = check(pipeline, SEEDS)
    print(pipeline, dict(counts))
    assert counts["different"] >= len(SEEDS) // 4, counts

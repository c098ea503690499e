"""Runs a library's calls and writes OUT/NAME.outcome and OUT/NAME.ptx for each.

    python -m peers.calls SOURCE OUT [NAME …] [--seeds N] [--jobs N] [--minutes N] [--resume]

Each call runs as issued, under seeds 1 to N, and as issued under the profile "isa", in a process
of its own. Needs the library's
Python, in which tcir is installed, too.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import io
import math
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from peers.kept import call_key, read, write
from peers.outcome import PROFILES, Outcome, Run, verdict
from peers.page import row
from peers.sources import SOURCES
from tcir.doors.device import SimulatedDevice
from tcir.doors.launches import DoorLaunch, Launches
from tcir.doors.repeats import Repeats
from tcir.errors import Error
from tcir.run import RunReport
from tcir.target import DEFAULT_TARGET

MULTIPROCESSORS = 4
"""What the device reports, so that kernels with a program for each one stay small."""
LONGEST = 900
"""Seconds after which a call is ended."""


@dataclass
class Seen:
    """Launches of a call, and the PTX of its kernels by what names them."""

    reports: list[RunReport] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)

    def __call__(self, launch: DoorLaunch, report: RunReport) -> None:
        self.reports.append(report)
        self.kernels[f"{launch.name} {digest(launch.ptx)}"] = launch.ptx


def digest(ptx: str) -> str:
    """Tells kernels apart whose instructions differ; source lines and comments do not count."""
    lines = [
        text
        for line in ptx.partition(".section")[0].splitlines()
        if (text := line.partition("//")[0].strip()) and not text.startswith((".loc", ".file"))
    ]
    plain = re.sub(r"\$L__\w+", "", "\n".join(lines))
    return hashlib.sha256(plain.encode()).hexdigest()[:8]


@contextmanager
def door(launches: Launches) -> Iterator[None]:
    """Context in which Triton's kernels run on the simulated device, where tensors are created
    unless another is named."""
    from triton.runtime import driver

    from tcir.triton.addresses import Addresses
    from tcir.triton.cuda import simulated
    from tcir.triton.driver import SimulatedDriver

    addresses = Addresses()
    driver.set_active(SimulatedDriver(launches, addresses))
    with simulated(launches, addresses, "first"), torch.device("cuda"):
        yield


def run_once(
    compute: object, launches: Launches, seed: int | None, profile: str = PROFILES[0]
) -> tuple[Run, dict[str, str]]:
    """One execution of a call, and its kernels."""
    from peers.calls.compare import values

    seen = Seen()
    launches.order_seed, launches.ordering, launches.seen = seed, profile, seen
    launches.repeats = Repeats()  # each execution is one
    torch.manual_seed(1)
    word, why, compared = "", "", "–"
    try:
        compared = values(compute())
    except Error as error:
        word, why = "refused", str(error)
    except Exception as error:
        word = "raised" if seen.reports else "not started"
        why = f"{type(error).__name__}: {error}"
    bad = next((v for v in map(verdict, seen.reports) if v[0] != "ok"), None)
    if bad is not None:
        word, why = bad
    kinds = Counter(f"{f.severity} {f.code}" for r in seen.reports for f in r.findings)
    instructions = sum(r.instructions for r in seen.reports)
    if not word and not seen.reports:
        word, why = "not started", "nothing was launched"
    return Run(compared, word or "ok", why or compared, kinds, instructions), seen.kernels


def run_call(source: str, name: str, launches: Launches, out: Path, seeds: int, key: str) -> None:
    """All executions of a call; writes its outcome."""
    from peers.calls import CALLS

    started = time.perf_counter()
    issued, kernels = run_once(CALLS[name], launches, None)
    outcome = Outcome(name, source, issued, kernels=sorted(kernels))
    if issued.verdict not in ("refused", "not started"):
        for seed in range(1, seeds + 1):
            outcome.seeds[seed], more = run_once(CALLS[name], launches, seed)
            kernels |= more
        for profile in PROFILES[1:]:
            outcome.profiles[profile], _ = run_once(CALLS[name], launches, None, profile)
    outcome.kernels = sorted(kernels)
    outcome.seconds = time.perf_counter() - started
    (out / f"{name}.ptx").write_text("\n".join(kernels.values()))
    write(out / f"{name}.outcome", key, outcome)


def run_all(
    source: str, keys: dict[str, str], launches: Launches, given: argparse.Namespace
) -> None:
    """Runs the calls that have keys, `given.jobs` at a time, each in a process of its own that ends
    with it."""
    fork, waiting = multiprocessing.get_context("fork"), list(keys)
    deadline = time.monotonic() + 60 * given.minutes
    running: dict[BaseProcess, tuple[str, float]] = {}
    while waiting or running:
        while waiting and len(running) < given.jobs and time.monotonic() < deadline:
            name = waiting.pop(0)
            arguments = (source, name, launches, given.out, given.seeds, keys[name])
            process = fork.Process(target=run_call, args=arguments)
            process.start()
            running[process] = name, time.monotonic()
        if not running:
            return
        wait([process.sentinel for process in running], timeout=5)
        for process, (name, started) in list(running.items()):
            long = time.monotonic() - started > LONGEST
            if process.is_alive() and not long:
                continue
            if long:
                process.kill()
            process.join()
            del running[process]
            report(
                source, name, given.out, keys[name], f"{LONGEST} s" if long else process.exitcode
            )


def report(source: str, name: str, out: Path, key: str, ended: object) -> None:
    """Prints what a call's process wrote; if it wrote nothing, writes how it ended."""
    path = out / f"{name}.outcome"
    outcome = read(path, key)
    if outcome is None:
        outcome = Outcome(name, source, Run("–", "ended", f"its process ended: {ended}"))
        write(path, key, outcome)
    print(row(outcome), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser("python -m peers.calls", description=__doc__)
    parser.add_argument("source", choices=[name for name, each in SOURCES.items() if each.package])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    device = SimulatedDevice(DEFAULT_TARGET, MULTIPROCESSORS)
    launches = Launches(messages=io.StringIO(), device=device)
    with door(launches):
        from peers.calls import CALLS, WITHOUT_INITIALISER, without_initialiser

        if given.source in WITHOUT_INITIALISER:
            without_initialiser(*WITHOUT_INITIALISER[given.source])
        importlib.import_module(f"peers.calls.{given.source}")

        version = SOURCES[given.source].version()
        chosen = [name for name in CALLS if not given.names or name in given.names]
        keys = {name: call_key(CALLS[name], version, given.seeds) for name in chosen}
        if given.resume:
            kept = {name: read(given.out / f"{name}.outcome", keys[name]) for name in keys}
            keys = {name: key for name, key in keys.items() if kept[name] is None}
        for name in keys:
            (given.out / f"{name}.outcome").unlink(missing_ok=True)
        (given.out / "calls.txt").write_text("\n".join(CALLS))
        for name in [*keys][:1]:  # processes inherit what the first call loads and compiles
            run_once(CALLS[name], launches, None)
        run_all(given.source, keys, launches, given)
        return 0


if __name__ == "__main__":
    sys.exit(main())

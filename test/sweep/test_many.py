"""Sweeps of hundreds of combinations: here, on a cluster, with dying workers; what they cost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tcir import workers
from tcir.sweep import table
from tcir.sweep.cluster import DaskCluster
from tcir.sweep.engine import Sweep, Tell
from tcir.sweep.executor import JobExecutor
from tcir.sweep.local import LocalProcesses
from tcir.sweep.results import Results
from tcir.sweep.space import combinations

from .programs import GEMM, PROGRAM

OVER = "n-tile=16..256:8 stages=1..7"
COUNT = 217
"""Combinations of `OVER`: 105 of them are no multiple of 16, 7 need too much shared memory."""
GROWING = {
    50: "stages=1..5 n-tile=16,20,32,36,48,52,64,68,80,84",
    200: "store=direct,tma swap=auto,never",
    800: "persistent=false,true cluster=1x1,1x2",
}
"""By combinations, with those above: what is swept."""


def nothing(done: int, total: int, row: object) -> None:
    """Tells nobody."""


def table_of(executor: JobExecutor, tell: Tell = nothing, over: str = OVER) -> bytes:
    sweep = Sweep(PROGRAM, combinations("gemm", over), executor)
    return table.as_csv(sweep.run(Results(), tell))


@cache
def expected() -> bytes:
    """The table of two processes of this machine."""
    return table_of(LocalProcesses(2))


class Killer:
    """Kills a worker when so many jobs are done."""

    def __init__(self, after: int, pid: Callable[[], int]) -> None:
        self.after, self.pid, self.killed = after, pid, 0

    def __call__(self, done: int, total: int, row: object) -> None:
        if done == self.after:
            self.killed = self.pid()
            os.kill(self.killed, signal.SIGKILL)


@pytest.mark.timeout(3000)
def test_two_processes_one_of_which_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    start = workers._start

    def noted(work: Callable, forks: dict) -> None:
        start(work, forks)
        begun.append(list(forks.values())[-1].pid)

    first = expected()
    lines = first.decode().splitlines()
    statuses = [line.partition("},")[2].partition(",")[0] for line in lines if "gemm{" in line]
    assert (len(statuses), statuses.count("failed")) == (COUNT, 0)
    assert 90 < statuses.count("ok") < 112
    monkeypatch.setattr(workers, "_start", noted)
    killer = Killer(COUNT // 2, lambda: begun[0])
    assert table_of(LocalProcesses(2), killer) == first
    assert killer.killed == begun[0] and len(begun) == 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    with distributed.LocalCluster(
        n_workers=4, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    ) as started:
        yield started


@pytest.mark.timeout(3000)
def test_a_cluster_of_four(cluster: object) -> None:
    assert table_of(DaskCluster(cluster.scheduler_address)) == expected()  # type: ignore[attr-defined]


@pytest.mark.timeout(3000)
def test_a_cluster_one_of_whose_workers_is_killed(cluster: object) -> None:
    killer = Killer(COUNT // 2, lambda: cluster.workers[1].pid)  # type: ignore[attr-defined]
    found = table_of(DaskCluster(cluster.scheduler_address), killer)  # type: ignore[attr-defined]
    assert killer.killed and found == expected()


def cost(folder: Path, count: int) -> tuple[float, float]:
    """CPU seconds of a sweep, and the MB of its largest process."""
    over = " ".join(text for size, text in GROWING.items() if size <= count)
    words = ["sweep", "product.mlir", "--pipeline=gemm", "--jobs=2", "--csv=rows.csv"]
    begun = subprocess.Popen(
        [sys.executable, "-m", "tcir.tools.tc_bench", *words, "--over", over],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(begun.pid, 0)
    begun.returncode = os.waitstatus_to_exitcode(status)
    assert begun.returncode == 0
    assert (folder / "rows.csv").read_text().count("\ngemm{") == count
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


@pytest.mark.timeout(3000)
def test_time_grows_with_the_combinations_and_memory_does_not(tmp_path: Path) -> None:
    (tmp_path / "product.mlir").write_text(GEMM)
    found = {count: cost(tmp_path, count) for count in GROWING}
    print(found)
    seconds = {count: used[0] / count for count, used in found.items()}
    assert seconds[800] < 1.5 * seconds[200] < 1.5 * 1.5 * seconds[50]
    assert found[800][1] < 1.25 * found[200][1]

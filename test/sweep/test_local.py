"""Forks that do jobs: whatever happens to one of them, each job has one row."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tcir import workers
from tcir.sweep import local
from tcir.sweep.local import LocalProcesses
from tcir.sweep.work import Job, SweepProgram, SweepRow

from .programs import PROGRAM, jobs

Work = Callable[[SweepProgram, Job], SweepRow]


def rows_of(
    monkeypatch: pytest.MonkeyPatch, work: Work, count: int, processes: int
) -> list[SweepRow]:
    monkeypatch.setattr(local, "work", work)
    asked = jobs(count)
    found = list(LocalProcesses(processes).run([PROGRAM], asked))
    assert sorted(job.key for job, _ in found) == sorted(job.key for job in asked)
    by_job = dict(found)
    return [by_job[job] for job in asked]


def done(program: SweepProgram, job: Job) -> SweepRow:
    return SweepRow(str(job.combination), bytes=int(job.key[3:]))


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_each_job_has_its_row(monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    rows = rows_of(monkeypatch, done, 7, processes)
    assert [row.bytes for row in rows] == list(range(7))


def test_work_of_a_worker_that_dies_is_done_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def dies_once(program: SweepProgram, job: Job) -> SweepRow:
        mark = tmp_path / job.key
        if int(job.key[3:]) % 3 == 0 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return done(program, job)

    rows = rows_of(monkeypatch, dies_once, 8, 2)
    assert len(list(tmp_path.iterdir())) == 3
    assert [row.bytes for row in rows] == list(range(8))


def test_a_job_that_kills_workers_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def kills(program: SweepProgram, job: Job) -> SweepRow:
        if job.key == "key2":
            os.kill(os.getpid(), signal.SIGKILL)
        return done(program, job)

    rows = rows_of(monkeypatch, kills, 5, 2)
    assert rows[2].status == "failed"
    assert "3 workers died on this job (SIGKILL)" in rows[2].message
    assert [row.status for row in rows].count("ok") == 4


def test_workers_are_replaced_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(workers, "JOBS_OF_A_WORKER", 2)

    def noted(program: SweepProgram, job: Job) -> SweepRow:
        (tmp_path / str(os.getpid())).touch()
        return done(program, job)

    rows_of(monkeypatch, noted, 6, 1)
    assert len(list(tmp_path.iterdir())) == 3


def test_workers_end_with_who_stops_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(program: SweepProgram, job: Job) -> SweepRow:
        if job.key != "key0":
            time.sleep(3600)  # to the end of the test, were it not ended
        return SweepRow("a", registers=os.getpid())

    monkeypatch.setattr(local, "work", slow)
    running = LocalProcesses(2).run([PROGRAM], jobs(4))
    _, row = next(running)
    running.close()  # type: ignore[attr-defined]
    assert row.registers is not None
    with pytest.raises(ProcessLookupError):
        os.kill(row.registers, 0)

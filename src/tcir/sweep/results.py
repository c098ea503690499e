"""Stores the results of a sweep in a file: one line of JSON for each job, identified by the job's
key.

Lines are only appended, and each line is written as a whole: signals that end the process take
effect after it. If a crash of the system leaves an incomplete last line, this line is dropped when
the file is opened again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tcir.cache import NO_STORE, Store, digest
from tcir.errors import InputError
from tcir.files import check_writable, read_bytes, signals_wait
from tcir.sweep.work import Job, SweepRow

SCHEMA = "tcir.sweep/1"


class Results:
    """Result rows, by job; `keep` adds a row.

    handle: handle of an open file; without one, rows are kept in memory and in `store`
    """

    def __init__(self, handle: int | None = None, store: Store = NO_STORE) -> None:
        self._handle, self._store = handle, store
        self._rows: dict[tuple[str, str], SweepRow] = {}

    def find(self, job: Job) -> SweepRow | None:
        """Returns the row of a job that was completed before; None if the job failed, because
        failed jobs are repeated.
        """
        row = self._rows.get((job.key, job.kind))
        if row is None and (kept := self._store.get(_entry(job))) is not None:
            row = SweepRow(**json.loads(kept))
            self.keep(job, row)
        return None if row is not None and row.status == "failed" else row

    def keep(self, job: Job, row: SweepRow) -> None:
        """Adds the row of a job."""
        self._rows[job.key, job.kind] = row
        if self._handle is not None:
            line = {"schema": SCHEMA, "key": job.key, "kind": job.kind, "row": row.as_dict()}
            _append(self._handle, (json.dumps(line) + "\n").encode())
        if row.status != "failed":
            self._store.put(_entry(job), json.dumps(row.as_dict()).encode())

    def read(self, lines: list[bytes], name: str) -> None:
        """Reads the rows of a file. InputError for a line that is not a row."""
        for number, line in enumerate(lines, 1):
            try:
                found = json.loads(line)
                if found["schema"] != SCHEMA:
                    raise ValueError(found["schema"])
                self._rows[found["key"], found["kind"]] = SweepRow(**found["row"])
            except (ValueError, KeyError, TypeError):
                raise InputError(
                    f"{name}:{number}: expected a line of {SCHEMA} as tc-bench writes it, got "
                    f"{line[:60]!r}; name another file"
                ) from None


def _entry(job: Job) -> str:
    return digest("row", job.key, job.kind)


@contextmanager
def results_in(path: str | Path | None, store: Store = NO_STORE) -> Iterator[Results]:
    """Context manager that opens the results in a file, which need not exist. InputError if another
    process has it open.
    """
    if path is None:
        yield Results(store=store)
        return
    check_writable(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"cannot write '{path}': expected a file that lines can be appended to")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error
    try:
        _lock(handle, path)
        results = Results(handle, store)
        data = read_bytes(path)
        whole = data.rfind(b"\n") + 1
        results.read(data[:whole].splitlines(), str(path))
        if whole < len(data):
            os.ftruncate(handle, whole)
        yield results
    finally:
        os.close(handle)


def _lock(handle: int, path: str | Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{path}: another tc-bench is writing these results; wait for it, or name another file"
        ) from None
    except OSError:  # a file system without locks
        return


def _append(handle: int, line: bytes) -> None:
    with signals_wait():
        start = os.fstat(handle).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(handle, rest) :]
        except OSError as error:  # the disk is full
            os.ftruncate(handle, start)
            raise InputError(
                f"cannot write the results: {error.strerror or error}; earlier lines are complete"
            ) from error

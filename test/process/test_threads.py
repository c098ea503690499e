"""Threads and forks that compile: no crash, no hang, the same bytes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tcir import threads

BENCH = Path(__file__).parents[2] / "bench" / "threads.py"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "faulthandler", str(BENCH), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900)


def test_threads_compile_the_same_bytes_and_forks_beside_them_compile_too() -> None:
    """The first compilations of a process, which import, with threads that change often."""
    ended = bench("--compiles=6", "--threads=6", "--forks", "--often")
    assert ended.returncode == 0, ended.stderr
    digests = ended.stdout.split()
    assert len(digests) == 6 == len(set(digests))  # one of each program, and all differ


@pytest.mark.parametrize("parts", [["--forks"], ["--processes=8"]])
def test_many_compilations(parts: list[str]) -> None:
    ended = bench("--compiles=200", "--threads=8", "--often", *parts)
    assert ended.returncode == 0, ended.stderr


def test_a_thread_that_compiles_and_validates_imports_nothing_by_itself() -> None:
    """What it imports on the way would be half there for a child that another thread forks."""
    script = """
        import sys, threading
        from pathlib import Path
        import tcir
        stop = threading.Event()
        threading.Thread(target=stop.wait).start()
        tcir.compile(Path(sys.argv[1]), "gemm", cache=False)
        before = set(sys.modules)
        tcir.validate(Path(sys.argv[1]), "gemm", orders=2)
        print(*sorted(set(sys.modules) - before))
        stop.set()
    """
    program = BENCH.parents[1] / "examples" / "tf32_one_tile.mlir"
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    late = [name for name in found.stdout.split() if not name.startswith(("numba", "llvmlite"))]
    assert late == []


def test_a_fork_waits_for_the_thread_that_holds_the_lock() -> None:
    import os

    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with threads.LOCK:
            held.set()
            let_go.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    threading.Timer(0.2, let_go.set).start()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if let_go.is_set() and threads.LOCK.acquire(blocking=False) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    holder.join()


def test_a_property_is_computed_once_and_has_no_lock() -> None:
    computed = []

    class Some:
        @threads.cached_property
        def value(self) -> int:
            computed.append(self)
            return len(computed)

    one, two = Some(), Some()
    assert (one.value, one.value, two.value) == (1, 1, 2)
    assert not hasattr(vars(Some)["value"], "lock")

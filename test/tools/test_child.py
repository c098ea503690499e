"""A command in a child process is ended by a signal, whatever becomes of the signal in it."""

import signal
import subprocess
import sys

import pytest

DEAF = """
import contextlib, signal, sys, time
from tcir import child
child._PATIENCE = 0.3

def wait():
    while True:
        print("ready", flush=True)
        time.sleep(0.01)

def work():
    for _ in range({lost}):
        with contextlib.suppress(KeyboardInterrupt):  # as Python does in a finaliser
            wait()
    wait()

sys.exit(child.run_in_child(lambda: work))
"""


@pytest.mark.parametrize(
    ("lost", "said"), [(0, "interrupted"), (1, "interrupted"), (2, "ended by SIGINT")]
)
def test_a_lost_interrupt_comes_again(lost: int, said: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DEAF.format(lost=lost)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, err) == (130, f"error: {said}\n")


LOST = """
import os, sys
from tcir import child

def again(work):
    raise MemoryError  # as in what tells the first

child.exit_status = {tells}
sys.exit(child.run_in_child(lambda: lambda: os._exit(127)))
"""


@pytest.mark.parametrize(
    ("tells", "status", "said"),
    [
        ("child.exit_status", 4, "error: ended by exit(127) in native code\n"),
        ("again", 3, "error: out of memory\n"),
    ],
    ids=["no memory for thread-local data", "no memory for the message"],
)
def test_an_end_without_memory_is_told(tells: str, status: int, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOST.format(tells=tells)], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (status, said)

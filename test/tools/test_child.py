"""A command in a child process is ended by a signal, whatever becomes of the signal in it."""

import signal
import subprocess
import sys

import pytest

DEAF = """
import contextlib, signal, sys, time
from tcir import child
child._PATIENCE = 0.3

def work():
    print("ready", flush=True)
    for _ in range({lost}):
        with contextlib.suppress(KeyboardInterrupt):  # as Python does in a finaliser
            while True:
                time.sleep(0.01)
    while True:
        time.sleep(0.01)

sys.exit(child.run_in_child(lambda: work))
"""


@pytest.mark.parametrize(
    ("lost", "said"), [(0, "interrupted"), (1, "interrupted"), (2, "ended by SIGINT")]
)
def test_a_lost_interrupt_comes_again(lost: int, said: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DEAF.format(lost=lost)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, err) == (130, f"error: {said}\n")

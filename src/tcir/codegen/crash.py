"""The error for a native tool that crashed: it names the signal, the file that was saved, and ways
out.
"""

from __future__ import annotations

import signal
import tempfile

from tcir.errors import NativeCrashError

_MEANING = {
    signal.SIGKILL: "it was killed from outside, as the system does when memory runs out",
    signal.SIGXCPU: "its CPU time limit was reached (ulimit -t)",
    signal.SIGXFSZ: "its file was too long (ulimit -f)",
    signal.SIGTERM: "it was asked to terminate",
}
"""Signals whose cause is not the program."""


def signal_name(number: int) -> str:
    """Name of a signal: ``SIGSEGV`` for 11; ``signal 70`` for a signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def crashed(
    step: str, status: int, said: str, text: str, suffix: str, way_out: str
) -> NativeCrashError:
    """The error for a tool that ended with `status` (negative after a signal) on the input `text`,
    which is saved in a file whose name ends in `suffix`.

    step:    beginning of the message
    said:    the tool's output on stderr
    way_out: what the user can do
    """
    with tempfile.NamedTemporaryFile(
        "w", prefix="tcir-crash-", suffix=suffix, delete=False
    ) as file:
        file.write(text)
    how = signal_name(-status) if status < 0 else f"exit status {status}"
    first = next((line for line in said.splitlines() if "ERROR" in line or "error" in line), "")
    meaning = next((words for number, words in _MEANING.items() if number == -status), None)
    return NativeCrashError(
        f"{step}: the native library died ({how})"
        + (f": {first.strip()}" if first else "")
        + f"; the program that caused it is in {file.name} ({meaning or way_out})"
    )

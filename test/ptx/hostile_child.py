"""Runs kernels nobody vouches for in a process with bounded memory; one JSON line for each.

Standard input: a JSON list of objects with "ptx" and the keywords of `run_ptx`, whose "args" are
words: "u32:512" is an array of zeros, "i32=5" a scalar, "bytes:16" a parameter by value.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
from typing import Any

import numpy as np

from tcir.run import LaunchError, PtxSyntaxError, run_ptx

SECONDS = 20.0
"""Limit of processor seconds for one kernel: a guard against hangs, a hundred times the usual."""
MEMORY = 1 << 30
"""Limit of address space for all kernels together, in addition to that of the imports."""


class Hang(BaseException):
    """Out of time."""


def _expired(signum: int, frame: Any) -> None:
    raise Hang


def _argument(word: str) -> Any:
    kind, sign, value = word.partition(":" if ":" in word else "=")
    if kind == "bytes":
        return bytes(int(value))
    return np.zeros(int(value), kind) if sign == ":" else np.dtype(kind).type(int(value))


def verdict(case: dict[str, Any]) -> dict[str, Any]:
    """Outcome of a kernel: kind "syntax", "launch", "error", "incomplete", "hazard", "ok"."""
    case["args"] = [_argument(word) for word in case.get("args", ())]
    try:
        report = run_ptx(**case)
    except PtxSyntaxError as error:
        return {"kind": "syntax", "text": str(error), "line": error.line, "column": error.column}
    except LaunchError as error:
        return {"kind": "launch", "text": str(error)}
    except Hang:
        return {"kind": "HANG", "text": f"more than {SECONDS} s"}
    except BaseException as error:
        return {"kind": "CRASH", "text": f"{type(error).__name__}: {error}"[:500]}
    if report.errors:
        return {"kind": "error", "text": str(report.errors[0])}
    if report.incomplete:
        return {"kind": "incomplete", "text": str(report.incomplete[0])}
    if not report.ok:
        return {"kind": "hazard", "text": str(report.findings[0])}
    return {"kind": "ok", "text": str(report)}


def main() -> None:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGPROF, _expired)
    for case in json.load(sys.stdin):
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = verdict(case)
        except Hang:
            found = {"kind": "HANG", "text": f"more than {SECONDS} s"}
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps({**found, "seconds": time.process_time() - started}), flush=True)


if __name__ == "__main__":
    main()

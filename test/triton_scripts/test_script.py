"""Integers of a script that are others; it needs no Triton."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = """
import sys
from pathlib import Path
from tcir.doors.script import run_script
run_script(Path(sys.argv[1]), ["--n"], {8192: 96, 17: 5})
"""
SCRIPT = """\
import atexit
import sys

import mine


def jit(function):
    return function


@jit
def kernel(BLOCK=8192):
    return 8192, 17


class triton:
    jit = staticmethod(lambda **_: jit)


@triton.jit(do_not_specialize=[17])
def other():
    return 8192


def host(n=8192, *, true=True, ratio=8192.0, word="8192"):
    return n, 17 + 1, true, ratio, word


assert kernel() == (8191 + 1, 16 + 1) and other() == 8191 + 1
print(host(), -8192, sys.argv[1:], mine.size, __name__, sys.modules["__main__"].host is host)
atexit.register(lambda: print(host()[0]))
"""


def test_integers_of_the_host_s_part(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text(SCRIPT)
    (tmp_path / "mine.py").write_text("size = 8192\n")
    ended = subprocess.run(
        [sys.executable, "-c", RUN, script], capture_output=True, text=True, check=False
    )
    assert ended.stderr == ""
    assert ended.stdout == ("(96, 6, True, 8192.0, '8192') -96 ['--n'] 8192 __main__ True\n96\n")

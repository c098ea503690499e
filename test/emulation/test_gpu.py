"""The command of recorded launches, as far as it needs no GPU."""

from __future__ import annotations

import subprocess
import sys

PRINTING = """
import os
from tcir.testing.gpu import own_output
answers = own_output()
os.write(1, b"a kernel prints")
print("and so does Python")
print("answer", file=answers, flush=True)
"""


def test_what_kernels_print_is_no_answer() -> None:
    done = subprocess.run([sys.executable, "-c", PRINTING], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("answer\n", 0), done.stderr

"""Writes the corpus's wrong programs and their twins as launches for a GPU:

    python -m corpus.silicon FOLDER    # in test/
    python -m tcir.testing.gpu FOLDER --fuzz 100 --each 60

Expected are the bytes that the twin leaves on the simulated machine; buffers whose values are open
are not compared. Left out: programs for sm_90a, those of several launches, and twins that are not
clean (gaps.txt).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from corpus.program import NAMES, Program, programs
from tcir.testing.record import ArgumentTable, record
from tcir.testing.recorded import ANY, RecordedLaunch


def open_buffers(program: Program) -> list[int]:
    """The numbers of buffers whose values are open."""
    scope, known = dict(NAMES), ArgumentTable()
    found = []
    for name, expression in program.args.items():
        value = eval(expression, scope)
        array = getattr(value, "array", value)
        scope[name] = array
        if name not in program.buffers:
            parts = value if isinstance(value, list | tuple) else (value,)
            for part in parts:
                known.part(part)
        if program.expect.get(name) == "any" and isinstance(array, np.ndarray):
            found.append(known.place(array)["buffer"])
    return found


def write(program: Program, folder: Path) -> bool:
    """The program and its twin as files; False: it is left out."""
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        record(Path(made), lambda: program.name, patch.setattr)
        program.run(program.twin, None)
        files = list(Path(made).iterdir())
        if len(files) != 1 or "again" in program.fields["launch"]:
            return False
        twin = RecordedLaunch.read(files[0])
    for number in open_buffers(program):
        twin.after[number] = ANY
    for kind, text in (("wrong", program.text), ("twin", program.twin)):
        about = twin.about | {"test": f"{kind}/{program.name}"}
        path = RecordedLaunch(text, about, twin.before, twin.after).write(folder)
        path.rename(folder / f"{kind}-{program.name}.npz")
    return True


def main(folder: str) -> None:
    """The command."""
    left = [each.name for each in programs("wrong") if not write(each, Path(folder))]
    print(f"left out: {', '.join(left)}")


if __name__ == "__main__":
    main(sys.argv[1])

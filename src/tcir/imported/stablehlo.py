"""Converts StableHLO to `linalg` with the command `torch-mlir-opt`, which is part of the wheel of
the MLIR bindings.

The bindings themselves cannot parse StableHLO. The command runs in a process of its own; if a
program crashes it, this process raises an error.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from tcir._mlir import import_bindings
from tcir.errors import InputError, InternalError, MissingDependencyError
from tcir.session.apart import PATIENCE, kept

PASSES = (
    "builtin.module(inline,symbol-dce,canonicalize,stablehlo-convert-to-signless,"
    "func.func(stablehlo-aggressive-simplification),stablehlo-legalize-to-linalg,canonicalize,cse)"
)

WAYS_OUT = {
    "stablehlo.while": " (a loop whose end depends on numbers, or a long one); call the compiled "
    "body from a loop in Python",
}
"""Ways out for ops that have no linalg form."""
_PLACE = re.compile(r'loc\("([^"]+)":(\d+):(\d+)\)$')
_LEFT = re.compile(r'\s*(?:%[^=]*= )?"?((?:stablehlo|chlo|shape)\.\w+)')


def linalg(stablehlo: str) -> str:
    """The `linalg` program of a StableHLO module, with its source lines.

    Raises InputError for ops that are not lowered to linalg, with the location of the first, and
    `InternalError` if the command crashes or takes more than `PATIENCE` seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "program.mlir", Path(folder) / "linalg.mlir"
        source.write_text(stablehlo)
        words = [str(_command()), str(source), f"--pass-pipeline={PASSES}",
                 "--mlir-print-debuginfo",
                 "--mlir-print-local-scope", "-o", str(result)]  # fmt: skip
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired as error:
            said = f"torch-mlir-opt took more than {PATIENCE:.0f} s"
            raise InternalError(f"{said}; {kept(stablehlo, said)}") from error
        said = done.stderr.decode(errors="replace").replace(str(source), "<stablehlo>")
        if done.returncode < 0:
            crash = f"torch-mlir-opt was killed by {signal.Signals(-done.returncode).name}"
            raise InternalError(f"{crash}; {kept(stablehlo, said)}")
        if done.returncode != 0:
            raise InputError(_first(said))
        return _checked(result.read_text())


def _checked(text: str) -> str:
    """Returns the program. InputError, with the location, if it still contains an op of
    StableHLO."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = _LEFT.match(line)
        if found:
            end = f"{line[: len(line) - len(line.lstrip())]}}}"  # of an op with regions
            ends = (each for each in lines[number:] if each.startswith(end))
            last = next((each for each in ends if _PLACE.search(each)), "")
            place = _PLACE.search(line) or _PLACE.search(last)
            where = ":".join(place.groups()) + ": " if place else ""
            raise InputError(where + _has_none(found[1]))
    return text


def _has_none(op: str) -> str:
    return f"{op} is not lowered to linalg{WAYS_OUT.get(op, '')}"


def _command() -> Path:
    """Path of the wheel's executable. MissingDependencyError if the bindings come without it."""
    folder = Path(str(import_bindings("_mlir_libs").__file__)).parent
    found = folder / "torch-mlir-opt"
    if not os.access(found, os.X_OK):
        raise MissingDependencyError(
            f"StableHLO is lowered by torch-mlir-opt, which is not in {folder}: "
            "pip install torch-mlir"
        )
    return found


def _first(said: str) -> str:
    """The first error of the command, reworded if an op is not lowered to linalg."""
    lines = [line for line in said.splitlines() if "error: " in line]
    line = lines[0] if lines else said.strip() or "torch-mlir-opt failed without a message"
    place, _, message = line.partition("error: ")
    illegal = re.search(r"failed to legalize operation '([\w.]+)'", message)
    if illegal:
        message = _has_none(illegal[1])
    place = re.sub(r"^<stablehlo>:\d+:\d+: |^loc\(.*\): ", "", place)
    return f"{place}{message[:300]}"

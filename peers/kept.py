"""Outcomes kept beside the PTX, so that a long run can be taken up again.

One counts as long as the PTX, the launch, the case's oracle, the machine and the runner are the
same, byte for byte.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType

import tcir
from peers.case import Case
from peers.outcome import Outcome, Run
from tcir.cache.data import from_bytes, to_bytes

PACKAGE = Path(tcir.__file__).parent
HERE = Path(__file__).parent


@functools.cache
def _code() -> bytes:
    """Of what executes and judges."""
    files = [*PACKAGE.glob("machine/**/*.py"), *PACKAGE.glob("interp/ptx/**/*.py")]
    files += [*PACKAGE.glob("doors/*.py"), *PACKAGE.glob("triton/*.py")]
    files += [
        *PACKAGE.glob("formats/**/*.py"),
        HERE / "outcome.py",
        HERE / "recorded.py",
        HERE / "case.py",
    ]
    digest = hashlib.sha256()
    for file in sorted(f for f in files if f.is_file()):
        digest.update(file.read_bytes())
    return digest.digest()


def key(case: Case, folder: Path, seeds: int) -> str:
    digest = hashlib.sha256(_code())
    digest.update(str(seeds).encode())
    digest.update(inspect.getsource(inspect.getmodule(case.build) or case.build).encode())
    for suffix in (".ptx", ".json"):
        path = folder / case.compiler / f"{case.name}{suffix}"
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def call_key(compute: Callable[..., object], version: str, seeds: int) -> str:
    """Of a library's call: what executes and judges, the call, the library's version."""
    digest = hashlib.sha256(_code())
    digest.update(f"{version} {seeds} {_spelled(compute, set())}".encode())
    digest.update((HERE / "calls" / "compare.py").read_bytes())
    return digest.hexdigest()


def _spelled(value: object, met: set[object]) -> str:
    """A function's instructions and constants, with what it closes over, its defaults, and the
    functions of `peers` that it names; any other value by its representation."""
    if isinstance(value, CodeType):
        parts = [_spelled(each, met) for each in value.co_consts]
        return f"{value.co_code.hex()} {value.co_names} {parts}"
    if not isinstance(value, FunctionType) or not value.__module__.startswith("peers."):
        return re.sub(r" at 0x\w+", "", repr(value))
    if value in met:
        return value.__name__
    met.add(value)
    named = (value.__globals__.get(name) for name in value.__code__.co_names)
    closed = (cell.cell_contents for cell in value.__closure__ or ())
    functions = (each for each in named if isinstance(each, FunctionType))
    parts = [*(value.__defaults__ or ()), *closed, *functions]
    return f"{_spelled(value.__code__, met)} {[_spelled(each, met) for each in parts]}"


def read(path: Path, key: str = "") -> Outcome | None:
    """The outcome in a file, if there is one with this key; without a key, any."""
    if not path.exists():
        return None
    try:
        found, outcome = from_bytes(path.read_bytes(), (Outcome, Run))
    except ValueError:
        return None
    return outcome if found == key or not key else None


def write(path: Path, key: str, outcome: Outcome) -> None:
    path.write_bytes(to_bytes((key, outcome)))


def _path(case: Case, folder: Path) -> Path:
    return folder / case.compiler / f"{case.name}.outcome"


def load(case: Case, folder: Path, seeds: int) -> Outcome | None:
    return read(_path(case, folder), key(case, folder, seeds))


def save(case: Case, folder: Path, seeds: int, outcome: Outcome) -> None:
    write(_path(case, folder), key(case, folder, seeds), outcome)

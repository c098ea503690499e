"""Outcomes kept beside the PTX, so that a long run can be taken up again.

One counts as long as the PTX, the launch, the case's oracle, the machine and the runner are the
same, byte for byte.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from pathlib import Path

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


def _path(case: Case, folder: Path) -> Path:
    return folder / case.compiler / f"{case.name}.outcome"


def load(case: Case, folder: Path, seeds: int) -> Outcome | None:
    path = _path(case, folder)
    if not path.exists():
        return None
    try:
        found, outcome = from_bytes(path.read_bytes(), (Outcome, Run))
    except ValueError:
        return None
    return outcome if found == key(case, folder, seeds) else None


def save(case: Case, folder: Path, seeds: int, outcome: Outcome) -> None:
    _path(case, folder).write_bytes(to_bytes((key(case, folder, seeds), outcome)))

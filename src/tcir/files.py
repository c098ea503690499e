"""Files that commands write: whole or not at all, in places that were looked at before the work."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tcir.errors import InputError

if TYPE_CHECKING:
    import numpy as np

MOST = 1 << 30
"""Bytes of a text that is read: /dev/zero has no end."""


def check_writable(path: str | Path) -> None:
    """InputError for a path that cannot be written."""
    target = Path(path)
    why = refusal(target)
    if why:
        raise InputError(f"cannot write '{path}': {why}")


def refusal(target: Path) -> str:
    """Why a file cannot be written; "" if it can."""
    try:
        if target.is_dir():
            return "it is a directory"
        if not target.parent.is_dir():
            return f"there is no directory '{target.parent}'"
        place = target if target.exists() else target.parent
        return "" if os.access(place, os.W_OK) else "permission denied"
    except OSError as error:  # a name that is too long
        return error.strerror or str(error)
    except ValueError as error:  # a name with a zero byte
        return str(error)


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file; InputError for one that cannot be read or does not end."""
    if not isinstance(path, str | bytes | os.PathLike):  # a number is an open file's
        raise InputError(f"expected the path of a file, got {type(path).__name__}")
    try:
        with open(path, "rb") as file:
            return read_all(file, str(path))
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from error
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"cannot read '{path}': {error}") from error


def read_text(path: str | Path) -> str:
    """The text of a file in UTF-8; InputError for anything else."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: expected text in UTF-8, got byte {error.object[error.start]:#04x} at offset "
            f"{error.start}"
        ) from None


def read_all(file: IO[bytes], name: str) -> bytes:
    """What is left of a file; InputError for more than `MOST`."""
    data = file.read(MOST + 1)
    if len(data) > MOST:
        raise InputError(f"cannot read '{name}': expected at most {MOST >> 20} MiB, got more")
    return data


def load_array(path: str | Path) -> np.ndarray:
    """The array of a ``.npy`` file; InputError for anything else."""
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from error
    except MemoryError:
        raise
    except Exception:  # numpy's parser of headers raises whatever Python's does
        raise InputError(f"{path}: expected a .npy file of numbers, got another file") from None
    if not isinstance(found, np.ndarray):
        names = ", ".join(found.files)
        raise InputError(f"{path}: expected one array (.npy), got an archive of {names}")
    return found


def write_json(path: str | Path, data: object) -> None:
    """Writes a JSON file atomically."""
    write_atomic(path, (json.dumps(data, indent=2) + "\n").encode())


def write_atomic(path: str | Path, data: bytes) -> None:
    """Writes a file atomically: to a temporary name in the same folder, then renamed."""
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # /dev/null, a pipe: nothing to rename over
            target.write_bytes(data)
            return
        with signals_wait():
            _replace(target, data)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error


def _replace(target: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def signals_wait() -> Iterator[None]:
    """What asks this process to end waits, for a file: nobody else removes a temporary one."""
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

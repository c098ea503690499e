"""Reads and writes the files of commands. A file is written completely or not at all. Paths are
checked before the work begins.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import signal
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tcir.errors import InputError

if TYPE_CHECKING:
    import numpy as np

MOST = 1 << 30
"""Maximum size in bytes of a file that is read, since /dev/zero has no end."""


def check_writable(path: str | Path) -> None:
    """Raises InputError for a path that cannot be written. If the path is a link, its target is
    checked.
    """
    try:
        named = Path(path)
        why = refusal(Path(os.path.realpath(path)) if named.is_symlink() else named)
    except ValueError as error:  # a name with a zero byte
        why = str(error)
    if why:
        raise InputError(f"cannot write '{path}': {why}")


def refusal(target: Path) -> str:
    """Reason why a file cannot be written; "" if it can."""
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


def read_bytes(path: str | Path, *, pipes: bool = False) -> bytes:
    """The bytes of a file. Raises InputError for a file that cannot be read or does not end.

    pipes: whether the file may be something other than a regular file. This is allowed for a
        program, which may come from ``<(command)`` or a terminal, as from standard input. It is not
        allowed for other files that belong to the program, so that the command never waits for them
    """
    if not isinstance(path, str | bytes | os.PathLike):  # a number is an open file's
        raise InputError(f"expected the path of a file, got {type(path).__name__}")
    try:
        with open(path, "rb") if pipes else open_regular(path) as file:
            return read_all(file, str(path))
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from error
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"cannot read '{path}': {error}") from error


def open_regular(path: str | Path) -> IO[bytes]:
    """Opens a regular file. Raises OSError for a FIFO, a device or a folder, without blocking."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        what = next((word for is_one, word in _KINDS if is_one(mode)), "a device")
        raise OSError(errno.EINVAL, f"expected a regular file, got {what}", str(path))
    return os.fdopen(handle, "rb")


_KINDS = ((stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"))


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file. Raises InputError for other contents."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: expected text in UTF-8, got byte {error.object[error.start]:#04x} at offset "
            f"{error.start}"
        ) from None


def read_all(file: IO[bytes], name: str) -> bytes:
    """The remaining bytes of a file. Raises InputError if there are more than `MOST`."""
    data = file.read(MOST + 1)
    if len(data) > MOST:
        raise InputError(f"cannot read '{name}': expected at most {MOST >> 20} MiB, got more")
    return data


def load_array(path: str | Path) -> np.ndarray:
    """The array of a ``.npy`` file. Raises InputError for other files."""
    import numpy as np

    try:
        with open_regular(path) as file:
            found = np.load(file, allow_pickle=False)
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
    """Writes a file atomically: writes it under a temporary name in the same folder, then renames
    it.

    If the path is a link, the link is kept and its target is written.
    """
    write_together({path: data})


def write_together(contents: Mapping[str | Path, bytes]) -> None:
    """Writes files that are useful only together: all are written under temporary names before the
    first is renamed."""
    path: str | Path = ""
    drafts: list[tuple[Path, Path]] = []
    with signals_wait():
        try:
            for path, data in contents.items():
                target = Path(os.path.realpath(path))
                if target.exists() and not target.is_file():  # /dev/null, a pipe: no renaming
                    target.write_bytes(data)
                else:
                    drafts.append((_draft(target), target))
                    drafts[-1][0].write_bytes(data)
            for draft, target in drafts:
                os.replace(draft, target)
        except OSError as error:
            raise InputError(f"cannot write '{path}': {error.strerror or error}") from error
        finally:
            for draft, _ in drafts:
                draft.unlink(missing_ok=True)


def _draft(target: Path) -> Path:
    """Creates an empty file next to the target, with the permissions of any new file; returns its
    path."""
    draft = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))
    return draft


@contextmanager
def signals_wait() -> Iterator[None]:
    """Context that delays signals that would end this process, so that it can first remove its
    temporary files.
    """
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)

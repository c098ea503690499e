"""A folder of entries that any number of processes share.

An entry appears as a whole (it is renamed), is read without a lock, and carries a checksum. What
is damaged, what another user wrote, what cannot be read or written: a miss, never an error. The
entries that were not used for longest make room.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "TCIR_CACHE_DIR"
MOST = 1 << 30
"""Bytes of all entries."""
_HEAD = b"tcir cache 1\n"
_PART = ".part"
"""How the name of an entry ends that is being written."""
_ABANDONED = 3600
"""Seconds after which nobody writes it any more."""


@dataclass(frozen=True)
class Store:
    """Entries in `folder`, together at most `most` bytes; None: nothing is kept."""

    folder: Path | None
    most: int = MOST

    def get(self, key: str) -> bytes | None:
        """What was put under this key; None if nothing was, or it was lost."""
        if self.folder is None:
            return None
        path = self._path(self.folder, key)
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_uid != os.getuid():
                    return None
                found = file.read()
        except (OSError, ValueError):
            return None
        start = len(_HEAD) + hashlib.sha256().digest_size
        data = found[start:]
        if found[:start] != _HEAD + hashlib.sha256(data).digest():
            return None
        with contextlib.suppress(OSError):  # it was just evicted, or the folder is read-only
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keeps `data` if that is possible."""
        size = len(_HEAD) + hashlib.sha256().digest_size + len(data)
        if self.folder is None or size > self.most:
            return
        path = self._path(self.folder, key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(suffix=_PART, dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_HEAD + hashlib.sha256(data).digest() + data)
                os.replace(part, path)
            except BaseException:
                os.unlink(part)
                raise
            self._make_room(self.folder)

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / key[:2] / key[2:]

    def _make_room(self, folder: Path) -> None:
        """Removes entries, those first that were not used for longest."""
        entries: list[tuple[float, int, str]] = []
        now = time.time()
        for part in os.scandir(folder):
            for entry in os.scandir(part.path) if part.is_dir() else ():
                with contextlib.suppress(OSError):  # another process removed it
                    info = entry.stat()
                    if not entry.name.endswith(_PART):
                        entries.append((info.st_mtime_ns, info.st_size, entry.path))
                    elif now - info.st_mtime > _ABANDONED:
                        os.unlink(entry.path)
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.most:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size


NO_STORE = Store(None)
"""Keeps nothing."""


def user_store() -> Store:
    """In ``TCIR_CACHE_DIR``, else in the user's cache directory; none if the variable is empty."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Store(Path(named)) if named else NO_STORE
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Store(Path(user, "tcir", "kernels"))

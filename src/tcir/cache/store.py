"""A folder of entries that any number of processes share, and to which no other user can write.

An entry is created atomically (by renaming), is read without a lock, and contains a checksum of its
key and its contents. Because entries become code that is executed, the folder and the entry are
checked after they were opened: they must belong to the user, and neither the group nor others may
have permission to write them. An entry that is damaged, misplaced, another user's, not a file, or
cannot be read or written counts as a cache miss and not as an error. The least recently used
entries are evicted.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pwd
import re
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

VARIABLE = "TCIR_CACHE_DIR"
MOST = 1 << 30
"""Maximum size of all entries together, in bytes."""
_HEAD = b"tcir cache 2\n"
_PART = ".part"
"""Suffix of an entry that is being written."""
_ABANDONED = 3600
"""Age in seconds after which an unfinished file counts as abandoned."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ENTRY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags that open an entry: a link is not an entry, and a FIFO would block until it is written."""
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_PARTS = re.compile(r"[0-9a-f]{2}")
_ENTRIES = re.compile(rf"[0-9a-f]+(\.[0-9a-f]+{re.escape(_PART)})?")
"""Names of entries; a folder may also contain other files."""


@dataclass(frozen=True)
class Store:
    """The entries in a folder.

    folder: path of the folder; None: nothing is stored
    most:   maximum size of all entries together, in bytes
    owners: ids of other users whose entries are accepted, such as users who may change tcir's
        source
    """

    folder: Path | None
    most: int = MOST
    owners: frozenset[int] = field(default=frozenset())

    def get(self, key: str) -> bytes | None:
        """The data stored under a key, which consists of hexadecimal digits; None if nothing is
        stored, or if the entry is unusable."""
        try:
            with self._open(key) as part:
                return self._read(part, key)
        except (OSError, ValueError):
            return None

    def _read(self, part: int, key: str) -> bytes | None:
        with os.fdopen(os.open(key[2:], _ENTRY, dir_fd=part), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or not self._ours(found):
                return None
            if found.st_size > self.most:
                return None
            whole = file.read(found.st_size)
            start = len(_HEAD) + hashlib.sha256().digest_size
            data = whole[start:]
            if whole[:start] != _HEAD + _checksum(key, data):
                return None
            with contextlib.suppress(OSError):  # the folder is read-only
                os.utime(file.fileno())
        return data

    def put(self, key: str, data: bytes) -> None:
        """Stores `data` under a key if that is possible."""
        size = len(_HEAD) + hashlib.sha256().digest_size + len(data)
        if self.folder is None or not self.folder.is_absolute() or size > self.most:
            return
        with contextlib.suppress(OSError, ValueError):
            _make(self.folder)
            _make(self.folder / key[:2])
            with self._open(key) as part:
                _write(part, key[2:], _HEAD + _checksum(key, data) + data)
            self._make_room(self.folder)

    @contextlib.contextmanager
    def _open(self, key: str) -> Iterator[int]:
        """Context with the open folder of an entry. OSError unless it exists and only this user can
        write it."""
        if self.folder is None or not self.folder.is_absolute():
            raise FileNotFoundError
        with _opened(self.folder) as top:
            self._check(top, self.folder)
            with _opened(key[:2], os.O_NOFOLLOW, top) as part:
                self._check(part, self.folder / key[:2])
                yield part

    def _check(self, opened: int, folder: Path) -> None:
        found = os.fstat(opened)
        if not self._ours(found):
            _warn(folder, found.st_uid, stat.S_IMODE(found.st_mode))
            raise PermissionError

    def _ours(self, found: os.stat_result) -> bool:
        own = found.st_uid == os.geteuid() or found.st_uid in self.owners
        return own and not found.st_mode & _OTHERS

    def _make_room(self, folder: Path) -> None:
        """Removes entries, the least recently used first, until the size limit is met."""
        entries: list[tuple[float, int, str]] = []
        now = time.time()
        for entry in _entries(folder):
            with contextlib.suppress(OSError):  # another process removed it
                info = entry.stat(follow_symlinks=False)
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
"""A store that keeps nothing."""


def user_store() -> Store:
    """The store in the folder ``TCIR_CACHE_DIR`` or, if that variable is not set, in the user's
    cache directory. If the variable is empty, the store stores nothing.
    """
    named = os.environ.get(VARIABLE)
    if named is None:
        return cache_store("kernels")
    if named and not Path(named).is_absolute():
        _say(f"{VARIABLE}: expected an absolute path, got '{named}'; nothing is kept")
        return NO_STORE
    return Store(Path(named)) if named else NO_STORE


def cache_store(name: str) -> Store:
    """The store in a folder of the user's cache directory; for a user without a home directory, a
    store that stores nothing.

    The cache directory is ``XDG_CACHE_HOME`` if that is an absolute path, otherwise ``~/.cache``.
    (The XDG Base Directory Specification requires that relative paths be ignored, because they
    depend on the working directory.)
    """
    user = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not user.is_absolute():
        home = _home()
        if home is None:
            return NO_STORE
        user = home / ".cache"
    return Store(user / "tcir" / name)


def _home() -> Path | None:
    home = Path(os.environ.get("HOME", ""))
    if not home.is_absolute():
        try:
            home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
        except KeyError:
            return None
    return home if home.is_absolute() else None


def _checksum(key: str, data: bytes) -> bytes:
    whole = hashlib.sha256(key.encode() + b"\0")
    whole.update(data)
    return whole.digest()


@contextlib.contextmanager
def _opened(path: str | Path, flags: int = 0, within: int | None = None) -> Iterator[int]:
    opened = os.open(path, _FOLDER | flags, dir_fd=within)
    try:
        yield opened
    finally:
        os.close(opened)


def _make(folder: Path) -> None:
    """Creates a folder, and missing ones above it, with access only for this user."""
    if not folder.is_dir():
        if folder != folder.parent:
            _make(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def _write(part: int, name: str, data: bytes) -> None:
    draft = f"{name}.{secrets.token_hex(8)}{_PART}"
    with os.fdopen(os.open(draft, _DRAFT, 0o600, dir_fd=part), "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.replace(draft, name, src_dir_fd=part, dst_dir_fd=part)
        except BaseException:
            os.unlink(draft, dir_fd=part)
            raise


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    for part in os.scandir(folder):
        if _PARTS.fullmatch(part.name) and part.is_dir(follow_symlinks=False):
            for entry in os.scandir(part.path):
                if _ENTRIES.fullmatch(entry.name):
                    yield entry


def _warn(folder: Path, owner: int, mode: int) -> None:
    _say(
        f"cache {folder}: expected a folder that user {os.geteuid()} owns and no other user may "
        f"write, got owner {owner}, mode {mode:04o}; nothing is stored or read there "
        f"(chmod go-w, or another {VARIABLE})"
    )


@cache
def _say(text: str) -> None:
    """Logs a warning, once per text."""
    logging.getLogger("tcir").warning("%s", text)

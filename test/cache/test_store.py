"""The folder of entries: shared, bounded, and never an error."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tcir.cache import NO_STORE, Store, digest, user_store
from tcir.cache.store import _HEAD

KEYS = [digest("key", number) for number in range(20)]
OVERHEAD = len(_HEAD) + 32


def entry(folder: Path, key: str) -> Path:
    return folder / key[:2] / key[2:]


def content(key: str, size: int = 5000) -> bytes:
    return (key.encode() * (size // len(key) + 1))[:size]


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder")
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], b"first")
    store.put(KEYS[1], b"")
    store.put(KEYS[0], b"again")
    assert [store.get(key) for key in KEYS[:3]] == [b"again", b"", None]
    assert stat.S_IMODE(entry(store.folder or tmp_path, KEYS[0]).stat().st_mode) == 0o600


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "head only": lambda path: path.write_bytes(path.read_bytes()[:OVERHEAD]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "a bit": lambda path: path.write_bytes(path.read_bytes()[:-3] + b"\x00ab"),
    "another's": lambda path: path.write_bytes(os.urandom(5000)),
    "gone": Path.unlink,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a dead link": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_entry_is_a_miss(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    store = Store(tmp_path)
    store.put(KEYS[0], content(KEYS[0]))
    damage(entry(tmp_path, KEYS[0]))
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], b"mended")
    assert store.get(KEYS[0]) in (b"mended", None)


def test_the_entry_that_was_not_used_for_longest_makes_room(tmp_path: Path) -> None:
    store = Store(tmp_path, most=3 * (1000 + OVERHEAD))
    for age, key in enumerate(KEYS[:3]):
        store.put(key, content(key, 1000))
        os.utime(entry(tmp_path, key), (age + 1000, age + 1000))
    assert store.get(KEYS[0]) == content(KEYS[0], 1000)  # used, so the second is the oldest
    store.put(KEYS[3], content(KEYS[3], 1000))
    assert [store.get(key) is not None for key in KEYS[:4]] == [True, False, True, True]
    store.put(KEYS[4], content(KEYS[4], store.most))
    assert [store.get(key) is not None for key in KEYS[:5]] == [True, False, True, True, False]


def test_parts_of_dead_processes_are_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEYS[0], b"first")
    old, new = (entry(tmp_path, KEYS[0]).with_name(f"{name}.part") for name in ("old", "new"))
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    store.put(KEYS[1], b"second")
    assert (old.exists(), new.exists()) == (False, True)


def in_child(work: Callable[[], bool]) -> int:
    """The number of a fork that ends with 0 if `work` held."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return child


def ended(children: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def test_many_processes_share_a_folder(tmp_path: Path) -> None:
    """While all write and evict the same entries, each finds nothing or what belongs to the key."""
    store = Store(tmp_path, most=12 * (5000 + OVERHEAD))

    def work(number: int) -> bool:
        hits = 0
        for turn in range(150):
            key = KEYS[(turn * 7 + number * 3) % len(KEYS)]
            found = store.get(key)
            if found not in (None, content(key)):
                return False
            hits += found is not None
            store.put(key, content(key))
        return hits > 0

    children = [in_child(lambda number=number: work(number)) for number in range(8)]  # type: ignore[misc]
    assert ended(children) == [0] * 8
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix == ".part"]
    assert 0 < sum(path.stat().st_size for path in files) <= store.most


def test_a_folder_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    Store(folder).put(KEYS[0], b"first")
    user = 65534 if os.getuid() == 0 else os.getuid()
    for path in [*folder.rglob("*"), folder]:
        os.chown(path, user, -1)
        path.chmod(0o400 if path.is_file() else 0o500)
    for above in (tmp_path, *tmp_path.parents[:3]):
        if above.stat().st_uid == os.getuid():
            above.chmod(above.stat().st_mode | 0o055)

    def work() -> bool:
        if os.getuid() == 0:
            os.setuid(user)
        store = Store(folder)
        store.put(KEYS[1], b"second")
        return (store.get(KEYS[0]), store.get(KEYS[1])) == (b"first", None)

    try:
        assert ended([in_child(work)]) == [0]
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o700)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_what_another_user_wrote_is_a_miss(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEYS[0], b"first")
    os.chown(entry(tmp_path, KEYS[0]), 65534, -1)
    assert store.get(KEYS[0]) is None


@pytest.mark.parametrize("place", ["/dev/null/cache", "/proc/none/cache", "/" + "x" * 300])
def test_a_place_for_no_folder_keeps_nothing(place: str) -> None:
    store = Store(Path(place))
    store.put(KEYS[0], b"first")
    assert store.get(KEYS[0]) is None


def test_where_the_users_store_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TCIR_CACHE_DIR", str(tmp_path / "named"))
    assert user_store().folder == tmp_path / "named"
    monkeypatch.setenv("TCIR_CACHE_DIR", "")
    assert user_store() == NO_STORE
    monkeypatch.delenv("TCIR_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_store().folder == tmp_path / "tcir" / "kernels"

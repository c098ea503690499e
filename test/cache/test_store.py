"""The folder of entries: shared, bounded, and never an error."""

from __future__ import annotations

import logging
import os
import pwd
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tcir.cache import NO_STORE, Store, digest, user_store
from tcir.cache.store import _HEAD, cache_store

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
    old, new = (entry(tmp_path, KEYS[0]).with_name(f"{name}.0.part") for name in ("0a", "0b"))
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


def to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def linked(path: Path, to: Path) -> None:
    path.unlink()
    path.symlink_to(to)


def swapped(path: Path) -> None:
    other = entry(path.parents[1], KEYS[1])
    path.write_bytes(other.read_bytes())


def moved_and_linked(path: Path) -> None:
    path.rename(path.parents[1] / "sound")
    path.symlink_to(path.parents[1] / "sound")


HOSTILE: dict[str, Callable[[Path], object]] = {
    "another entry in its place": swapped,
    "a FIFO": to_fifo,
    "a file without an end": lambda path: linked(path, Path("/dev/zero")),
    "a terminal": lambda path: linked(path, Path("/dev/tty")),
    "a link to a sound entry": moved_and_linked,
    "others may write it": lambda path: path.chmod(0o602),
    "its group may write it": lambda path: path.chmod(0o620),
    "others may write its folder": lambda path: path.parent.chmod(0o707),
    "others may write the cache": lambda path: path.parents[1].chmod(0o707),
    "its group may write the cache": lambda path: path.parents[1].chmod(0o770),
    "longer than all entries may be": lambda path: os.truncate(path, 1 << 33),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_what_others_may_have_written_is_a_miss(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    store = Store(tmp_path / "cache")
    for key in KEYS[:2]:
        store.put(key, content(key))
    assert store.get(KEYS[0]) == content(KEYS[0])
    change(entry(tmp_path / "cache", KEYS[0]))
    signal.alarm(20)  # nothing waits for a writer, or reads for ever
    assert store.get(KEYS[0]) is None
    signal.alarm(0)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("level", [0, 1, 2], ids=["entry", "part", "cache"])
def test_what_another_user_owns_is_a_miss_but_for_an_owner_that_counts(
    tmp_path: Path, level: int
) -> None:
    store = Store(tmp_path / "cache")
    store.put(KEYS[0], b"first")
    path = entry(tmp_path / "cache", KEYS[0])
    os.chown([path, *path.parents][level], 65534, -1)
    assert store.get(KEYS[0]) is None
    assert Store(tmp_path / "cache", owners=frozenset({65534})).get(KEYS[0]) == b"first"


def test_a_folder_that_others_may_write_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    store = Store(tmp_path / "cache")
    with caplog.at_level(logging.WARNING, "tcir"):
        for key in KEYS[:3]:
            store.put(key, b"first")
            assert store.get(key) is None
    (record,) = caplog.records
    assert f"cache {tmp_path / 'cache'}: expected a folder that user" in record.message
    assert "mode 0777; nothing is stored or read there (chmod go-w" in record.message


def test_folders_are_made_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Store(tmp_path / "a" / "b").put(KEYS[0], b"first")
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / KEYS[0][:2]]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * 3


def test_what_is_no_entry_stays(tmp_path: Path) -> None:
    """A folder that has other things, too: only entries make room."""
    store = Store(tmp_path, most=2 * (1000 + OVERHEAD))
    others = [tmp_path / "ab" / "letter.txt", tmp_path / "papers" / "ab", tmp_path / "cd" / "ef"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cd").symlink_to(tmp_path / "elsewhere")
    for other in others:
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(b"x" * 3000)
        os.utime(other, (1000, 1000))
    for key in KEYS[:4]:
        store.put(key, content(key, 1000))
    assert all(other.exists() for other in others)


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


@pytest.mark.parametrize("place", ["cache", "~/cache", "./cache"])
def test_a_relative_place_keeps_nothing(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TCIR_CACHE_DIR", place)
    with caplog.at_level(logging.WARNING, "tcir"):
        assert user_store() == NO_STORE
    assert f"TCIR_CACHE_DIR: expected an absolute path, got '{place}'" in caplog.text
    Store(Path(place)).put(KEYS[0], b"first")
    assert Store(Path(place)).get(KEYS[0]) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("home", [None, "", "home", "~"])
@pytest.mark.parametrize("cache", [None, "", "cache", "./cache"])
def test_a_relative_home_is_none(
    home: str | None, cache: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths are below the folder that a command is started in, which may be anybody's."""
    monkeypatch.delenv("TCIR_CACHE_DIR")
    for name, value in (("HOME", home), ("XDG_CACHE_HOME", cache)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    passwd = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    assert user_store().folder == passwd / ".cache" / "tcir" / "kernels"

    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert user_store() == NO_STORE == cache_store("native")

"""What commands write: whole or not at all, through links, over nobody else's file."""

from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from tcir import files
from tcir.errors import InputError
from tcir.program.launch_file import check_place

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import UNREAD, Ended, Setting, limit, run

MODULE = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n"
OLD = b"what was there\n"


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def limited(work: object, most: int) -> int:
    """The status of a fork that may write files of at most so many bytes: 3 for an InputError."""
    child = os.fork()
    if child == 0:
        status = 9
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            limit({resource.RLIMIT_FSIZE: most})
            work()  # type: ignore[operator]
            status = 0
        except InputError:
            status = 3
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_write_that_ends_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "k.ptx"
    target.write_bytes(OLD)
    assert limited(lambda: files.write_atomic(target, b"x" * 5000), 1000) == 3
    assert target.read_bytes() == OLD and listing(tmp_path) == ["k.ptx"]
    assert limited(lambda: files.write_atomic(target, b"x" * 500), 1000) == 0
    assert target.read_bytes() == b"x" * 500 and listing(tmp_path) == ["k.ptx"]


def test_files_of_use_together_are_written_together(tmp_path: Path) -> None:
    one, two = tmp_path / "k.ptx", tmp_path / "k.json"
    for path in (one, two):
        path.write_bytes(OLD)
    both = {one: b"x" * 500, two: b"x" * 5000}
    assert limited(lambda: files.write_together(both), 1000) == 3
    assert [one.read_bytes(), two.read_bytes()] == [OLD, OLD]
    assert listing(tmp_path) == ["k.json", "k.ptx"]
    files.write_together(both)
    assert [len(one.read_bytes()), len(two.read_bytes())] == [500, 5000]


def test_files_that_are_cut_off_are_no_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "long.py").write_text("text = " + repr("x" * 5000))

    def imported() -> None:
        sys.path.insert(0, str(tmp_path))
        importlib.import_module("long")

    assert limited(imported, 1000) == 0
    assert listing(tmp_path) == ["long.py"]


def test_a_write_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    target, link = tmp_path / "build" / "k.ptx", tmp_path / "k.ptx"
    link.symlink_to("build/k.ptx")
    for content in (b"first", b"second"):  # it names nothing yet, then a file
        files.check_writable(link)
        files.write_atomic(link, content)
        assert link.is_symlink() and target.read_bytes() == content
    assert listing(tmp_path / "build") == ["k.ptx"]
    link.unlink()
    link.symlink_to("nowhere/k.ptx")
    with pytest.raises(InputError, match=r"cannot write .*there is no directory '.*nowhere'"):
        files.check_writable(link)


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_of_any(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        files.write_atomic(tmp_path / "k", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("kind", ["a FIFO", "a device"])
def test_what_lies_beside_a_program_is_a_regular_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.npy"
    if kind == "a FIFO":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    signal.alarm(20)
    for read in (files.read_bytes, files.load_array):
        with pytest.raises(InputError, match=f"expected a regular file, got {kind}"):
            read(path)
    signal.alarm(0)


def test_a_program_may_come_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    child = os.fork()
    if child == 0:
        (tmp_path / "f").write_text(MODULE)
        os._exit(0)
    assert files.read_bytes(tmp_path / "f", pipes=True).decode() == MODULE
    os.waitpid(child, 0)


OURS = '{\n "format": "tcir launch",\n "version": 1\n}\n'


@pytest.mark.parametrize("text", ['{"mine": 1}', "", '{"version": 1, "format": "tcir launch"}'])
def test_a_foreign_launch_file_is_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "k.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"the launch file next to the PTX: another file has"):
        check_place(path)
    path.write_text(OURS)
    check_place(path)
    check_place(tmp_path / "none.json")


def tc_opt(folder: Path, *words: str, setting: Setting | None = None) -> Ended:
    (folder / "f.mlir").write_text(MODULE)
    return run(["tc-opt", "f.mlir", *words], folder, setting)


def test_tc_opt_refuses_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "k.json").write_text('{"mine": 1}')
    ended = tc_opt(tmp_path, "--pipeline=gemm", "--emit=ptx", "-o", "k.ptx")
    assert ended.status == 3
    assert "error: cannot write 'k.json', the launch file next to the PTX" in ended.err
    assert "give the PTX another name, or move that file away" in ended.err
    assert (tmp_path / "k.json").read_text() == '{"mine": 1}'
    assert listing(tmp_path) == ["f.mlir", "k.json"]


def test_tc_opt_writes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.mlir").symlink_to("out.mlir")
    assert tc_opt(tmp_path, "--canonicalize", "-o", "link.mlir").status == 0
    assert (tmp_path / "link.mlir").is_symlink()
    assert "return %arg0" in (tmp_path / "out.mlir").read_text()


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    """The reader has gone before the first byte, so that the pipe holds none of it."""
    ended = tc_opt(tmp_path, "--canonicalize", setting=Setting(stdout=UNREAD))
    assert (ended.status, ended.err) == (0, "")


def test_nesting_is_named(tmp_path: Path) -> None:
    (tmp_path / "deep.mlir").write_text("module {" * 20000 + "}" * 20000)
    ended = run(["tc-opt", "deep.mlir"], tmp_path)
    assert ended.status == 3
    assert (
        "deep.mlir: error: ended by SIGSEGV before the first pass: brackets are nested 20000 "
        "deep" in ended.err
    )


@pytest.mark.parametrize(
    "kind", ["tensor<1099511627776x1099511627776xf32>", "memref<9223372036854775807x2xi8>"]
)
def test_sizes_beyond_64_bits_are_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "large.mlir").write_text(f"func.func private @f({kind})\n")
    ended = run(["tc-opt", "large.mlir"], tmp_path)
    assert ended.status == 3
    assert "large.mlir:1:28: error: expected types of at most 2^58 elements" in ended.err
    fits = kind.replace("1099511627776x1099511627776", "1099511627776").replace("807x2", "80")
    fits = fits.replace("92233720368547758", "922337203685")
    (tmp_path / "large.mlir").write_text(f"func.func private @f({fits})\n")
    assert run(["tc-opt", "large.mlir"], tmp_path).status == 0

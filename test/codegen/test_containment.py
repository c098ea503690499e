"""Native libraries that die: noticed, reported, the program saved, and what follows unharmed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tcir import codegen
from tcir.codegen.worker import WORKER, Worker
from tcir.errors import Error, NativeCrashError

EMPTY = "define ptx_kernel void @f() { ret void }"

# MLIR's translation has no rule for it and ends the process.
UNTRANSLATABLE = """llvm.func @f() attributes {nvvm.kernel} {
  nvvm.inline_ptx "nop;"
  llvm.return
}"""

# An instruction selector of an older target has no pattern for it and aborts.
UNSELECTABLE = """
declare void @llvm.nvvm.tcgen05.fence.after.thread.sync()
define ptx_kernel void @f() {
  call void @llvm.nvvm.tcgen05.fence.after.thread.sync()
  ret void
}
"""


def _saved(error: NativeCrashError) -> Path:
    found = re.search(r"the program that caused it is in (\S+)", str(error))
    assert found is not None
    return Path(found[1])


def test_a_crash_of_the_translation_is_an_error_with_the_program_saved() -> None:
    with pytest.raises(NativeCrashError, match=r"translate: the native library died \(") as caught:
        WORKER.call("translate", UNTRANSLATABLE, ".mlir")
    path = _saved(caught.value)
    assert path.suffix == ".mlir" and path.read_text() == UNTRANSLATABLE
    path.unlink()
    assert "ret;" in codegen.emit_ptx(EMPTY)


def test_an_abort_of_the_back_end_is_an_error_with_llvm_s_words() -> None:
    with pytest.raises(NativeCrashError, match="Cannot select") as caught:
        WORKER.call("emit_ptx", UNSELECTABLE, ".ll", cpu="sm_90", features="+ptx80")
    path = _saved(caught.value)
    assert path.suffix == ".ll" and path.read_text() == UNSELECTABLE
    path.unlink()
    assert "tcgen05.fence::after_thread_sync" in codegen.emit_ptx(UNSELECTABLE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_gets_a_child_of_its_own() -> None:
    assert codegen.emit_ptx(EMPTY)
    mine = WORKER._process
    pid = os.fork()
    if pid == 0:
        try:
            apart = WORKER._process is None
            os._exit(0 if apart and "ret;" in codegen.emit_ptx(EMPTY) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert "ret;" in codegen.emit_ptx(EMPTY)
    assert WORKER._process is mine


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_started_by_forking_answers() -> None:
    script = """
from tcir.codegen import emit_ptx, start
from tcir.codegen.worker import WORKER

start(fork=True)
forked = WORKER._process
assert "ret;" in emit_ptx("define ptx_kernel void @f() { ret void }")
assert WORKER._process is forked
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_refusal_is_no_crash_and_keeps_the_child() -> None:
    worker = Worker()
    with pytest.raises(Error, match="translate"):
        worker.call("translate", "llvm.func @", ".mlir")
    first = worker._process
    assert worker.call("translate", "llvm.func @f()", ".mlir").count("@f") == 1
    assert worker._process is first
    worker.stop()
    assert first is not None and first.poll() is not None


def test_a_child_ends_after_its_parent_whatever_it_computes() -> None:
    watched = "worker.GRACE = 0.1; worker.end_with(sys.stdin.buffer)"
    busy = f"import sys; from tcir.codegen import worker; {watched}\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE)
    try:
        assert child.stdin is not None
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(3)
        child.stdin.close()
        assert child.wait(60) == 1
    finally:
        child.kill()

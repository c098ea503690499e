"""Long runs: progress by CTAs, memory by CTAs in flight, and a clean end on Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

from tcir.interp.ptx.lockstep.launch import WIDEST
from tcir.run import run_ptx

from .conftest import HEADER

ENDLESS = (
    HEADER
    + """
.visible .entry k(.param .u64 out)
{
 .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
 mov.u32 %r1, 0; ld.param.u64 %rd1, [out]; st.global.b32 [%rd1], %r1;
LOOP: add.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;
 ret;
}
"""
)
TILES = (
    HEADER
    + """
.visible .entry k(.param .u64 out)
{
 .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
 .shared .align 16 .b8 tile[32768];
 mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2;
 st.shared.b32 [%r3], %r1; bar.sync 0; ld.shared.b32 %r4, [%r3];
 mov.u32 %r5, %ctaid.x; mad.lo.u32 %r5, %r5, 32, %r1; ld.param.u64 %rd1, [out];
 mul.wide.u32 %rd2, %r5, 4; add.s64 %rd1, %rd1, %rd2; st.global.b32 [%rd1], %r4;
 ret;
}
"""
)


def test_control_c_ends_tc_run(tmp_path: Path) -> None:
    """One line, the exit status of an interrupt, no stack trace, no half-written result."""
    path, saved = tmp_path / "endless.ptx", tmp_path / "out.npy"
    path.write_text(ENDLESS)
    command = [
        sys.executable, "-m", "tcir.tools.tc_run", str(path), "--grid", "1", "--block", "32",
        "--arg", "zeros=u32,32", "--save", f"0={saved}",
    ]  # fmt: skip
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
        preexec_fn=_hear_control_c,
    ) as child:
        try:
            for _ in range(200):  # until it is in the middle of the run
                time.sleep(0.1)
                if child.poll() is not None or _cpu_seconds(child.pid) > 3:
                    break
            assert child.poll() is None, child.communicate()
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130, err
    assert err.strip() == "tc-run: interrupted" and "Traceback" not in out + err
    assert not saved.exists()


def _hear_control_c() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(ctas: int) -> tuple[int, list[tuple[int, int]]]:
    """Bytes that a launch takes at most beside its result; what was said of its progress."""
    out = np.zeros(32 * ctas, np.uint32)
    seen: list[tuple[int, int]] = []
    run_ptx(TILES, grid=1, block=32, args=[out])  # parsed and decoded once
    tracemalloc.start()
    report = run_ptx(
        TILES,
        grid=ctas,
        block=32,
        args=[out],
        progress=lambda done, all_: seen.append((done, all_)),
    )
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.ok and not report.findings
    assert (out.reshape(ctas, 32) == np.arange(32)).all()
    return most, seen


def test_memory_grows_with_the_ctas_in_flight_not_with_the_grid() -> None:
    """What grows is the record of global memory: some bytes for each element of the result."""
    peak(20)  # numba's code is loaded once
    few, _ = peak(WIDEST + 100)
    many, seen = peak(2 * WIDEST + 200)
    shadow = (WIDEST + 100) * 32 * 200  # writer, reader and the accesses that they name
    assert many < few + shadow < 1.5 * few, (few, many)
    assert seen == [(n + 1, 2 * WIDEST + 200) for n in range(2 * WIDEST + 200)]

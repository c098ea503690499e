"""Stopping a kernel: at a line, a hazard, a wrong element; and what is shown there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir import debug
from tcir.ptxrun.command import main
from tcir.run import LaunchError, Uninitialized

from .conftest import HEADER
from .test_execution import PIPE, REDUCE, SAXPY
from .test_tcgen05 import WAIT_FULL, gemm, operands


def line_of(text: str, words: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if words in line)


def mnemonic(stop: debug.Stop) -> str:
    instruction = stop.instruction()
    return "" if instruction is None else instruction.mnemonic


def gemm_launch() -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    a, b, maps, out = operands(64, exact=True)
    want = a.astype(np.float32) @ b.astype(np.float32).T
    keywords = {"grid": 1, "block": 128, "dynamic_smem": 24576, "args": [*maps, Uninitialized(out)]}
    return keywords, want, out


def saxpy(n: int = 60) -> dict[str, Any]:
    x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    return {"grid": 2, "block": 32, "args": [x, y, np.float32(2), np.uint32(n)]}


def test_a_line_shows_registers_before_it_executes() -> None:
    text = HEADER + SAXPY
    keywords = saxpy()
    stop = debug.run(text, break_at=line_of(text, "fma.rn.f32"), **keywords)
    assert stop.reason.startswith("breakpoint at line")
    assert stop.cta.index == (0, 0, 0) and stop.warp and stop.warp.index == 0
    (x,), (y,) = stop.registers(["%f2"]), stop.registers(["%f3"])
    assert (x.values == np.arange(32)).all() and (y.values == 1).all() and not x.undefined
    assert stop.registers(["%f4"])[0].undefined == 0xFFFFFFFF
    assert [r.name for r in stop.registers()] == ["%f4", "%f1", "%f2", "%f3"]
    assert (keywords["args"][1] == 1).all()  # the store has not been reached
    text_ = str(stop)
    assert "%f1" in text_ and "2 in all lanes" in text_ and "never written" in text_
    assert "%f2" in {r.name for r in stop.all_registers()}


def test_hits_warps_and_ctas() -> None:
    text = HEADER + SAXPY
    line = line_of(text, "fma.rn.f32")
    second = debug.run(text, break_at=debug.Breakpoint(line, hit=2), **saxpy())
    there = debug.run(text, break_at=debug.Breakpoint(line, cta=(1, 0, 0)), **saxpy())
    for stop in (second, there):
        assert stop.cta.index == (1, 0, 0)
        assert stop.registers(["%r5"])[0].values[0] == 32
        (group, *_) = stop.positions()[0][1]
        assert group.lanes == (1 << 28) - 1  # lanes 28.. have left at the bound n = 60
    never = debug.run(text, break_at=debug.Breakpoint(line, hit=3), **saxpy())
    assert never.reason.startswith("the end") and never.report.ok
    for wrong in ({"warp": 1}, {"hit": 0}, {"cta": (2, 0, 0)}):
        with pytest.raises(LaunchError, match=f"expected.*{next(iter(wrong))}|CTA"):
            debug.run(text, break_at=debug.Breakpoint(line, **wrong), **saxpy())
    with pytest.raises(LaunchError, match=r"expected a line of 1\.\.\d+, got 999"):
        debug.run(text, break_at=999, **saxpy())
    pipe = {"grid": 1, "block": 64, "args": [np.zeros(160, np.uint32), np.zeros(160, np.uint32)]}
    at = debug.Breakpoint(line_of(HEADER + PIPE, "CWAIT:"), warp=1)
    stop = debug.run(HEADER + PIPE, break_at=at, **pipe)
    assert stop.warp and stop.warp.index == 1 and len(stop.mbarriers()) == 4


def test_a_guard_that_nobody_passes_is_no_hit() -> None:
    text = HEADER + REDUCE
    line = line_of(text, "bra SKIP")
    keywords = {"grid": 1, "block": 32, "args": [np.ones(32, np.uint32), np.zeros(1, np.uint32)]}
    stop = debug.run(text, break_at=line, **keywords)
    assert stop.reason.startswith("breakpoint") and stop.registers(["%p3"])[0].values.sum() == 1
    never = text.replace("elect.sync %r6|%p3, -1;", "setp.eq.u32 %p3, 1, 1;")
    assert debug.run(never, break_at=line, **keywords).reason.startswith("the end")


def test_memories_at_a_line() -> None:
    text = gemm()
    keywords, want, _ = gemm_launch()
    stop = debug.run(text, break_at=line_of(text, "st.global.v4.b32 [%rd20+0]"), **keywords)
    words, defined = stop.tensor_memory((0, 128), (0, 65))
    assert (words[:, :64].view(np.float32) == want).all()
    assert defined[:, :64].all() and not defined[:, 64].any()
    rows, written = stop.shared(0x800, 128)
    a = operands(64, exact=True)[0]
    assert (rows.view(np.float16) == a[0]).all() and written.all()
    assert [b.phase for b in stop.mbarriers()] == [1, 1]
    assert "lane" in stop.dump(["tmem=4:6,0:4"]) and "0x000400" in stop.dump(["smem=0x400:0x410"])
    assert f"{want[4, 0]:g}" in stop.dump(["tmem=4:6,0:4"])
    assert "registers of warp 2" in stop.dump(["registers@2=%r1"])
    assert "64 + 1 * lane" in stop.dump(["registers@2=%r1"])
    for bad in ("smem=0:999999", "tmem=0:200,0:1", "registers=%nobody", "registers@9=%r1", "stack"):
        with pytest.raises(LaunchError, match=r"expected|occur"):
            stop.dump([bad])


@pytest.mark.parametrize("seed", [None, 3])
def test_the_first_hazard(seed: int | None) -> None:
    keywords, _, _ = gemm_launch()
    broken = gemm().replace(WAIT_FULL, "")
    stop = debug.run(broken, break_at="first-hazard", order_seed=seed, **keywords)
    assert stop.reason.startswith("first hazard: operand-race") and len(stop.report.findings) >= 1
    assert mnemonic(stop).startswith("tcgen05.mma")
    assert stop.warp is not None and stop.warp and stop.warp.index == 0
    sound = debug.run(gemm(), break_at="first-hazard", order_seed=seed, **keywords)
    assert sound.reason == "the end; no hazard" and sound.report.ok


def test_deadlocks_and_illegal_acts_stop_in_any_case() -> None:
    keywords, _, _ = gemm_launch()
    stuck = gemm().replace("[%r5], 24576;", "[%r5], 24592;")
    stop = debug.run(stuck, break_at="first-hazard", **keywords)
    assert "deadlock" in stop.reason and stop.warp is None
    masks = [g.lanes for _, groups in stop.positions() for g in groups]
    assert len(masks) == 5 and sum(masks) == 4 * 0xFFFFFFFF  # every lane once, and each waits
    assert "tx-count 16" in str(stop) and "waits for parity 0" in str(stop)
    wild = (HEADER + SAXPY).replace("add.s64 %rd4, %rd1, %rd3;", "mov.b64 %rd4, 64;")
    stop = debug.run(wild, break_at=line_of(wild, "ret;"), **saxpy())
    assert "out-of-bounds" in stop.reason and mnemonic(stop).startswith("ld.global")
    assert stop.registers(["%rd4"])[0].values[0] == 64


@pytest.mark.parametrize("seed", [None, 1, 4])
def test_the_first_difference_names_the_store(seed: int | None) -> None:
    keywords, want, out = gemm_launch()
    expected = want.copy()
    expected[70, 9] += 1
    expected[71, 3] += 1
    text = gemm()
    stop = debug.run(text, break_at=debug.FirstDifference(expected), order_seed=seed, **keywords)
    line = line_of(text, "st.global.v4.b32 [%rd20+32]")
    assert "argument 2 at [70, 9]" in stop.reason and f"line {line}:" in stop.reason
    assert "warp 2" in stop.reason and stop.reason.endswith("lane 6")
    assert stop.registers(["%d9"])[0].values[6] == want[70, 9].view(np.uint32)
    assert out[70, 9] == want[70, 9] and mnemonic(stop) == "st.global.v4.b32"
    right = debug.run(text, break_at=debug.FirstDifference(want), order_seed=seed, **keywords)
    assert right.reason.startswith("the end") and right.report.ok
    near = debug.FirstDifference(expected, within=1.0)
    assert debug.run(text, break_at=near, **keywords).reason.startswith("the end")


def test_each_run_starts_from_the_same_arguments() -> None:
    keywords = saxpy(64)
    want = np.arange(64, dtype=np.float32) * 2 + 1
    want[40] = 0
    text = HEADER + SAXPY
    stop = debug.run(text, break_at=debug.FirstDifference(want, 1), **keywords)
    assert "[40]: expected 0.0, got 81.0" in stop.reason
    assert stop.registers(["%f3"])[0].values[8] == 1 and keywords["args"][1][40] == 81


LATER = """
.visible .entry later(.param .u64 y)
{
 .reg .b32 %r<4>; .reg .b64 %rd<4>;
 ld.param.b64 %rd1, [y]; mov.u32 %r1, 0;
LOOP:
 st.global.b32 [%rd1], %r1;
 add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 5;
 @%p bra LOOP;
 ret;
}
""".replace(".reg .b32", ".reg .pred %p; .reg .b32")


def test_of_several_writes_the_last_counts() -> None:
    y = np.zeros(2, np.uint32)
    keywords = {"grid": 1, "block": 1, "args": [Uninitialized(y)]}
    wanted = debug.FirstDifference(np.array([7, 0], np.uint32))
    stop = debug.run(HEADER + LATER, break_at=wanted, **keywords)
    assert stop.registers(["%r1"])[0].values[0] == 4 and y[0] == 4
    nobody = debug.FirstDifference(np.array([4, 9], np.uint32))
    stop = debug.run(HEADER + LATER, break_at=nobody, **keywords)
    assert "at [1]" in stop.reason and stop.reason.endswith("nothing wrote it")


TWO_STORES = """
.visible .entry two(.param .u64 y)
{
 .reg .b32 %r<4>; .reg .b16 %h<4>; .reg .b64 %rd<4>;
 ld.param.b64 %rd1, [y]; mov.u32 %r1, %tid.x;
 mul.wide.u32 %rd2, %r1, PITCH; add.s64 %rd1, %rd1, %rd2;
 mov.b16 %h1, 5; mov.b32 %r2, 5;
 st.global.STORED [%rd1], VALUE;
 st.global.STORED [%rd1+OFFSET], VALUE;
 ret;
}
"""


@pytest.mark.parametrize(
    "dtype,words,element,lane",
    [
        (np.uint16, {"PITCH": "4", "STORED": "b16", "OFFSET": "2", "VALUE": "%h1"}, 5, 2),
        (np.uint64, {"PITCH": "8", "STORED": "b32", "OFFSET": "4", "VALUE": "%r2"}, 3, 3),
    ],
)
def test_elements_that_are_not_32_bits(
    dtype: Any, words: dict[str, str], element: int, lane: int
) -> None:
    """Neighbours in one word are told apart; of two stores to one element the last counts."""
    text = HEADER + TWO_STORES
    for old, new in words.items():
        text = text.replace(old, new)
    y = np.zeros(8, dtype)
    keywords = {"grid": 1, "block": 4, "args": [Uninitialized(y)]}
    assert debug.run(text, break_at="first-hazard", **keywords).report.ok
    want = y.copy()
    want[element] = 1
    stop = debug.run(text, break_at=debug.FirstDifference(want), **keywords)
    assert f"written at line {line_of(text, '[%rd1+')}: " in stop.reason, stop.reason
    assert stop.reason.endswith(f"lane {lane}"), stop.reason


def test_refused_requests() -> None:
    keywords = saxpy()
    for bad, words in (
        ("somewhere", "expected a line"),
        (debug.FirstDifference(np.zeros(3)), "got 0"),
        (debug.FirstDifference(np.zeros(64, np.float32)), "got 2; name its number"),
        (debug.FirstDifference(np.zeros(64, np.float32), 2), "is not an array"),
    ):
        with pytest.raises(LaunchError, match=words):
            debug.run(HEADER + SAXPY, break_at=bad, **keywords)
    for bad in ("first-hazard", debug.FirstDifference(np.zeros(64, np.float32), 1)):
        with pytest.raises(LaunchError, match="hazards='report'"):
            debug.run(HEADER + SAXPY, break_at=bad, hazards="off", **keywords)


def test_the_command_line(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "saxpy.ptx").write_text(HEADER + SAXPY)
    np.save(tmp_path / "x.npy", np.arange(64, dtype=np.float32))
    want = np.arange(64, dtype=np.float32) * np.float32(2.5)
    want[33] = 1
    np.save(tmp_path / "want.npy", want)
    words = [str(tmp_path / "saxpy.ptx"), "--grid", "2", "--block", "32",
             "--arg", str(tmp_path / "x.npy"), "--arg", "zeros=f32,64",
             "--arg", "f32=2.5", "--arg", "u32=64"]  # fmt: skip
    line = line_of(HEADER + SAXPY, "st.global")
    assert main([*words, "--break-at", f"{line},hit=2", "--dump", "registers=%f4"]) == 2
    shown = capsys.readouterr().out
    assert f"breakpoint at line {line}, hit 2" in shown and "registers of warp 0" in shown
    assert main([*words, "--break-at", f"first-difference=1={tmp_path / 'want.npy'}"]) == 1
    shown = capsys.readouterr().out
    assert "argument 1 at [33]: expected 1.0, got 82.5" in shown and "lane 1" in shown
    assert f"line {line}: st.global.f32" in shown
    assert main([*words, "--break-at", "first-hazard"]) == 0
    assert "no hazard" in capsys.readouterr().out
    for bad in ("0", "x", "3,foo=1", "3,hit", "first-difference=nowhere.npy", "3,cta=a"):
        assert main([*words, "--break-at", bad]) == 3
        assert "break" in capsys.readouterr().err

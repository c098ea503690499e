"""Stops at source lines, labels and watched writes; commands of `interact`; what counts as ok."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir import debug
from tcir.debug.command import break_at
from tcir.machine.counters import COUNTED, Counters
from tcir.program.launch_file import LaunchFile
from tcir.ptxrun.command import main
from tcir.ptxrun.program import calls
from tcir.run import LaunchError, run_ptx

from .conftest import HEADER
from .test_debug import line_of

ROOT = Path(__file__).resolve().parents[2]
LOOP = (
    HEADER
    + """
.visible .entry loop(.param .u64 out, .param .u32 n, .param .f32 step) .reqntid 32
{
 .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>; .reg .pred %p<2>;
 .loc 1 3 1
 mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.f32 %f1, [step]; mov.f32 %f2, 0f00000000;
 mul.wide.u32 %rd2, %r1, 4; ld.param.u64 %rd1, [out]; add.s64 %rd1, %rd1, %rd2;
 // a comment
 .loc 1 5 1
AGAIN:
 add.f32 %f2, %f2, %f1;
 st.global.f32 [%rd1], %f2;
 .loc 1 6 1
 sub.u32 %r2, %r2, 1;
 setp.ne.u32 %p1, %r2, 0;
 @%p1 bra AGAIN;
 ret;
}
.file 1 "/somewhere/loop.cu"
"""
)


def launch(n: int = 3, **more: Any) -> dict[str, Any]:
    return {"grid": 1, "args": [np.zeros((4, 8), np.float32), n, 1.5], **more}


def here(stop: debug.Stop) -> str:
    instruction = stop.instruction()
    return "" if instruction is None else instruction.mnemonic


@pytest.mark.parametrize(
    ("place", "mnemonic"),
    [
        ("loop.cu:5", "add.f32"),
        ("loop.cu:4", "add.f32"),  # nothing is of line 4: the next one
        ("loop.cu:6", "sub.u32"),
        ("AGAIN", "add.f32"),
        (line_of(LOOP, "// a comment"), "add.f32"),
        (line_of(LOOP, "mul.wide"), "mul.wide.u32"),
    ],
)
def test_places(place: int | str, mnemonic: str) -> None:
    stop = debug.run(LOOP, break_at=place, **launch())
    assert stop.reason.startswith("breakpoint at") and here(stop) == mnemonic, str(stop)
    assert not stop.report.ok and stop.report.exit_code == 2
    assert str(stop.report).startswith("stopped: ") and stop.report.as_dict()["stopped"]


def test_the_third_time_at_a_label() -> None:
    stop = debug.run(LOOP, break_at=debug.Breakpoint("AGAIN", hit=3), **launch())
    assert stop.registers(["%f2"])[0].values[7] == 3.0
    never = debug.run(LOOP, break_at=debug.Breakpoint("AGAIN", hit=4), **launch())
    assert never.reason.startswith("the end") and never.report.ok


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("loop.cu:7", "no instruction comes from loop.cu, line 7 or later"),
        ("lop.cu:5", "did you mean 'loop.cu'"),
        ("AGAN", "did you mean 'AGAIN'"),
        (10_000, "expected a line of 1.."),
        (debug.Watch(0, (4, 0)), "expected an index of argument 0, which is float32[4, 8]"),
        (debug.Watch(1, ()), "argument 1 is not an array"),
        (debug.Watch(address=64), "no buffer holds the address 0x40"),
    ],
)
def test_places_that_are_none(place: Any, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        debug.run(LOOP, break_at=place, **launch())
    assert words in str(caught.value)


def test_a_watched_element_stops_after_the_write() -> None:
    watched = debug.Watch(0, (2, 5))
    stop = debug.run(LOOP, break_at=watched, **launch())
    assert stop.reason.startswith("watch of argument 0 at [2, 5]: 0.0 became 1.5; written at line ")
    assert "st.global.f32" in stop.reason and "by warp 0 of CTA (0, 0, 0)" in stop.reason
    second = debug.run(LOOP, break_at=debug.Watch(0, (2, 5), hit=2), **launch())
    assert "1.5 became 3.0" in second.reason
    address = 0x7000_0000_0000 + 4 * 21
    at = debug.run(LOOP, break_at=debug.Watch(address=address), **launch())
    assert f"watch of address {address:#x}: 0x00000000 became 0x3fc00000" in at.reason
    never = debug.run(LOOP, break_at=debug.Watch(0, (2, 5), hit=4), **launch())
    assert never.reason == "the end; fewer than 4 write(s) to argument 0 at [2, 5]"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("12", debug.Breakpoint(12)),
        ("loop.cu:5,hit=2,warp=1,cta=3", debug.Breakpoint("loop.cu:5", 2, 1, (3, 0, 0))),
        ("$L__BB0_2", debug.Breakpoint("$L__BB0_2")),
        ("watch=1[3, 17],hit=2", debug.Watch(1, (3, 17), hit=2)),
        ("watch=0x700000000010", debug.Watch(address=0x7000_0000_0010)),
        ("watch=smem[0x80],cta=1.2", debug.SharedWatch(0x80, cta=(1, 2, 0))),
        ("watch=smem:f16[128],cta=3,hit=2", debug.SharedWatch(128, "f16", (3, 0, 0), 2)),
        # Row 1 of 128 bytes: its chunks of 16 are exchanged with their neighbours.
        ("watch=smem:f16@0x400,64,128B[1,3]", debug.SharedWatch(0x400 + 128 + 16 + 6, "f16")),
        ("watch=smem:f16@0x400,64,NONE[1,3]", debug.SharedWatch(0x400 + 128 + 6, "f16")),
        ("watch=smem:f32@0x200,16,64B[2,5]", debug.SharedWatch(0x200 + 128 + (20 ^ 16), "f32")),
        ("watch=tmem[3, 17],hit=4", debug.TensorWatch(3, 17, hit=4)),
    ],
)
def test_the_words_of_break_at(text: str, meant: Any) -> None:
    assert break_at(text) == meant


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("smem", "expected N[I,J] of argument N, an address 0x"),
        ("1[2],cta=0", "expected N[I,J] of argument N"),
        ("smem[0x10],cta=x", "expected N[I,J] of argument N"),
        ("smem[0x10],cta=1.2.3.4", "expected hit=N and cta=X.Y.Z"),
        ("smem:f16@0x0,64,99B[1,3]", "expected a swizzle of NONE, 32B, 64B, 128B"),
        ("smem:f16@0x0,64,128B[1,64]", "expected a column of 0..63, got 64"),
        ("smem:e2m1[0x10]", "expected a type of u8"),
    ],
)
def test_words_of_a_watch_that_are_none(text: str, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        break_at(f"watch={text}")
        debug.run(SHARED, break_at=break_at(f"watch={text}"), **shared())
    assert words in str(caught.value)


SHARED = (
    HEADER
    + """
.visible .entry neighbours(.param .u64 out)
{
  .shared .align 8 .b8 half[64];
  .shared .align 8 .b8 full[128];
  .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .b16 %h<2>; .reg .f32 %f<2>; .reg .pred %p;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 100, %r1;
  cvt.rn.f32.u32 %f1, %r3;
  cvt.rn.f16.f32 %h1, %f1;
  mov.u32 %r4, half;
  mad.lo.u32 %r4, %r1, 2, %r4;
  st.shared.b16 [%r4], %h1;
  mov.u32 %r5, full;
  mad.lo.u32 %r5, %r1, 4, %r5;
  setp.lt.u32 %p, %r1, 16;
  @%p st.shared.f32 [%r5], %f1;
  @!%p st.shared.u32 [%r5], 7;
  bar.sync 0;
  @%p st.shared.u32 [%r5], 9;
  ret;
}
"""
)


def shared() -> dict[str, Any]:
    return {"grid": 2, "block": 32, "args": [np.zeros(4, np.float32)]}


@pytest.mark.parametrize(
    ("watched", "words"),
    [
        # Halves of one word, 5 and 6, are told apart; so are CTAs.
        (
            debug.SharedWatch(0x40A, "f16"),
            "f16 at 0x40a of shared memory of CTA (0, 0, 0): poison became 5; written at line",
        ),
        (debug.SharedWatch(0x40C, "f16", (1, 0, 0)), "CTA (1, 0, 0): poison became 106; written"),
        (
            debug.SharedWatch(0x440 + 12, "f32"),
            "f32 at 0x44c of shared memory of CTA (0, 0, 0): poison became 3; written at line",
        ),
        (debug.SharedWatch(0x440 + 12, "u32", hit=2), "became 9; written at line"),
        (debug.SharedWatch(0x440 + 80), "became 7; written at line"),
        (debug.SharedWatch(0x440 + 80, hit=2), "the end; fewer than 2 write(s) to u32 at 0x490"),
    ],
)
def test_watched_shared_memory(watched: debug.SharedWatch, words: str) -> None:
    stop = debug.run(SHARED, break_at=watched, **shared())
    assert words in stop.reason, stop.reason
    if "written" in words:
        assert f"by warp 0 of CTA {watched.cta}" in stop.reason
        assert stop.cta.index == watched.cta


@pytest.mark.parametrize(
    ("watched", "words"),
    [
        (debug.SharedWatch(3, "f16"), "expected an address of shared memory that is a multiple of"),
        (debug.SharedWatch(0x800), "shared memory, 0x400 to 0x4bf, got 0x800"),
        (debug.SharedWatch(0), "shared memory, 0x400 to 0x4bf, got 0x0"),
        (debug.SharedWatch(0x400, cta=(2, 0, 0)), "expected a CTA of 0.0.0 to 1.0.0, got 2.0.0"),
        (debug.SharedWatch(0x400, hit=0), "expected hit=1 or more"),
        (debug.TensorWatch(128, 0), "expected a lane of 0..127"),
        (debug.TensorWatch(0, 0, cta=(0, 1, 0)), "expected a CTA of 0.0.0 to 1.0.0"),
    ],
)
def test_watched_places_that_are_none(watched: Any, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        debug.run(SHARED, break_at=watched, **shared())
    assert words in str(caught.value)


def test_a_watched_tile_and_tensor_memory() -> None:
    """Of the GEMM of docs/tutorials/debugging.md: TMA swizzles A; four mma add to an element of
    D."""
    path = ROOT / "examples" / "debugging" / "hang.ptx"
    file = LaunchFile.read(path.with_suffix(".json"))
    rng = np.random.default_rng(2)
    a = rng.integers(-8, 9, (128, 256)).astype(np.float16)
    b = rng.integers(-8, 9, (64, 256)).astype(np.float16)
    (call,), _ = calls(file, [a, b, np.zeros((128, 64), np.float32)])
    launch, args = call
    sizes = {"grid": launch.grid, "block": launch.block, "dynamic_smem": launch.dynamic_smem}

    def watch(text: str) -> str:
        return debug.run(path, break_at=break_at(f"watch={text}"), args=args, **sizes).reason

    said = watch("smem:f16@0x4400,64,128B[37,5]")  # slot 1: k from 64 on
    assert f"poison became {a[37, 69]:g}; written at line" in said and said.endswith(
        "by TMA of CTA (0, 0, 0)"
    )
    sums = np.cumsum(a[37].astype(np.float64) * b[21])
    said = watch("tmem[37, 21],hit=3")
    assert f": {sums[31]:g} became {sums[47]:g}; written at line" in said
    assert "tcgen05.mma" in said and said.endswith("by warp 5 of CTA (0, 0, 0)")


def talk(*commands: str) -> tuple[debug.Stop, str]:
    lines: list[str] = []
    left = iter(commands)

    def read(prompt: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    write: Callable[[str], None] = lines.append
    return debug.interact(LOOP, read=read, write=write, **launch()), "\n".join(lines)


def test_a_conversation() -> None:
    stop, said = talk("s 2", "", "break AGAIN", "c", "watch 0[1, 1]", "c", "print f32=%f2",
                      "print %nobody", "delete", "dump smem=0:8", "dump mbarriers", "nonsense",
                      "continue")  # fmt: skip
    assert stop.reason == "the end" and stop.report.ok
    places = [line for line in said.splitlines() if line.startswith("->")]
    assert ["mov.u32" in places[0], "ld.param.f32" in places[1], "mul.wide" in places[2]] == [
        True
    ] * 3
    assert "stopped: breakpoint at AGAIN, line" in said
    assert "stopped: watch of argument 0 at [1, 1]: 1.5 now" in said
    assert "1.5 in all lanes" in said and "%nobody does not occur" in said
    assert "no mbarrier is alive" in said and "expected bytes in [0x400, 0x400)" in said
    assert "a command may be shortened" in said.lower()


def test_several_registers_as_another_type() -> None:
    """After the second add %f2 is 3; half the warp has left, and never wrote %f3."""
    commands = [
        "print f32=%f1..%f3", "print f16x2=%f1 %f2", "print f16x2=all", "print f32", "print",
        "print %f0..%f1", "print f64=all", "print s32=%r1..%r0", "print s32=%r9", "print %q1",
    ]  # fmt: skip
    text = LOOP.replace("AGAIN:\n", "AGAIN:\n setp.gt.u32 %p1, %r1, 19; @%p1 ret;\n")
    text = text.replace(" .loc 1 6 1", " mov.f32 %f3, %f2;\n .loc 1 6 1")
    line = line_of(text, "mov.f32 %f3, %f2;")
    said: dict[str, str] = {}
    at: list[str] = []
    left = iter([f"break {line}", "c", "c", *commands])

    def read(prompt: str) -> str:
        at.append(next(left, "quit"))
        return at[-1]

    def write(text: str) -> None:
        said[at[-1] if at else ""] = text

    debug.interact(text, read=read, write=write, **launch())
    first = [" ".join(line.split()) for line in said["print f32=%f1..%f3"].splitlines()]
    assert first[1] == "%f1 .f32 1.5 in all lanes"
    assert first[-1] == "%f3 .f32 1.5 in lanes 0 to 19; poison in lanes 20 to 31"
    assert " ".join(first[2:-1]).split() == ["%f2", ".f32", *["3"] * 20, *["0"] * 12]
    halves = np.array([1.5, 3], np.float32).view(np.float16).reshape(2, 2)
    assert f"{halves[0, 0]:g}:{halves[0, 1]:.9g} in all lanes" in said["print f16x2=%f1 %f2"]
    every = said["print f16x2=all"]
    assert "%f1" in every and "%r2" in every and "%rd1" not in every and "%p1" not in every
    assert "poison in lanes 20 to 31" in every
    assert said["print f32"].count(".f32") == 2 and "%f3" in said["print"]
    assert "%f1" in said["print %f0..%f1"] and "%f2" not in said["print %f0..%f1"]
    assert said["print f64=all"].count(".f64") == 2
    assert "expected a range such as" in said["print s32=%r1..%r0"]
    assert "%r9 does not occur; %r1 to %r2 do" in said["print s32=%r9"]
    assert "%q1 does not occur" in said["print %q1"]


def test_a_conversation_that_ends_early() -> None:
    for commands in (("break AGAIN", "c", "quit"), ("break AGAIN", "c")):
        stop, _ = talk(*commands)
        assert stop.reason == "quit" and stop.report.exit_code == 2


def test_interactive_from_the_shell(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "loop.ptx"
    path.write_text(LOOP)
    run = [str(path), "--grid", "1", "--arg", "zeros=f32,4x8", "--arg", "u32=2", "--arg", "f32=1"]
    commands = iter(["b loop.cu:6", "c", "c", "c"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(commands))
    monkeypatch.setattr(
        "tcir.debug.console.interact.__kwdefaults__",
        {"args": (), "read": input, "write": print},
        raising=False,
    )
    assert main([*run, "--interactive"]) == 0
    said = capsys.readouterr().out
    assert said.count("stopped: breakpoint at loop.cu:6") == 2 and "ok: " in said
    assert main([*run, "--break-at", "loop.cu:6"]) == 2
    assert main([*run, "--interactive", "--counters"]) == 3
    assert "expected one of --interactive and --counters" in capsys.readouterr().err


def test_paths_block_and_numbers_from_python(tmp_path: Path) -> None:
    path = tmp_path / "loop.ptx"
    path.write_text(LOOP)
    for source in (path, str(path), LOOP):
        out = np.zeros(32, np.float32)
        assert run_ptx(source, grid=1, args=[out, 4, 0.5]).ok and (out == 2).all()
    assert debug.run(path, break_at="AGAIN", **launch()).report.stopped
    with pytest.raises(tcir.Error, match="expected PTX text or the path of a file"):
        run_ptx(tmp_path / "absent.ptx", grid=1)
    with pytest.raises(tcir.Error, match=r"block: expected a size, since loop has no \.reqntid"):
        run_ptx(LOOP.replace(".reqntid 32", ""), grid=1)
    for wrong in ([1.5, 0.5], [-1, 0.5], [1 << 32, 0.5]):
        with pytest.raises(tcir.Error, match="argument 1"):
            run_ptx(LOOP, grid=1, args=[np.zeros(32, np.float32), *wrong])


def test_a_wrong_result_is_status_1(tmp_path: Path) -> None:
    want = np.full((4, 8), 4.5, np.float32)
    want[3, 2] = 4
    stop = debug.run(LOOP, break_at=debug.FirstDifference(want), **launch())
    assert "argument 0 at [3, 2]: expected 4.0, got 4.5" in stop.reason
    assert stop.report.exit_code == 1 and str(stop.report).startswith("failed: ")


def test_every_counter_has_a_unit_and_is_documented(tmp_path: Path, capsys: Any) -> None:
    named = {name for rows in COUNTED.values() for name in rows}
    own = set(Counters().as_dict()) | {"instructions", "bank_accesses", "bank_conflicts"}
    assert named == own
    page = (Path(__file__).parents[2] / "docs/reference/tc-run.md").read_text()
    for rows in COUNTED.values():
        for name, (unit, meaning) in rows.items():
            assert f"| `{name}` | {unit} | {meaning} |" in page, name
    strided = (
        HEADER
        + """
.visible .entry k() .reqntid 32
{
 .reg .b32 %r<4>; .shared .align 16 .b8 tile[4096];
 mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 128; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
 st.shared.b32 [%r3], %r1;
 ret;
}
"""
    )
    path = tmp_path / "k.ptx"
    path.write_text(strided)
    assert main([str(path), "--grid", "2", "--counters"]) == 0
    said = capsys.readouterr().out
    assert "bank_conflicts" in said and "62\n" in said  # 31 passes too many in each CTA
    assert "62 extra passes in 2 accesses at line" in said

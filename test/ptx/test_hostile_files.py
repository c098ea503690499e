"""Files and launches that are wrong on purpose: each gets a clear answer, soon, in bounded memory.

They run in a child process with 1 GB to itself and twenty seconds of processor time for each (a
tenth of one is usual), so that a crash, a hang or an explosion of memory is a failed test and not
the end of the tests.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.run import LaunchError, run_ptx

from .conftest import HEADER
from .test_execution import COLLATZ, PIPE, REDUCE, SAXPY, TRANSPOSE, VARIABLES
from .test_tcgen05 import gemm

CHILD = Path(__file__).with_name("hostile_child.py")
SOURCES = {
    "saxpy": HEADER + SAXPY,
    "reduce": HEADER + REDUCE,
    "collatz": HEADER + COLLATZ,
    "transpose": HEADER + TRANSPOSE,
    "pipe": HEADER + PIPE,
    "variables": HEADER + VARIABLES,
    "gemm": gemm(),
}
BLOCKS = {"transpose": 256, "pipe": 64, "gemm": 128}

Case = dict[str, Any]
Answer = dict[str, Any]


def ask(cases: list[Case]) -> list[Answer]:
    """What the child says of each case; a child that dies says nothing of the rest."""
    done = subprocess.run(
        [sys.executable, CHILD],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(answers) == len(cases), (
        f"the child ended with {done.returncode} at case {len(answers)}: {done.stderr[-2000:]}"
    )
    return answers


def launch(name: str, ptx: str, **more: Any) -> Case:
    """A launch that fits the sound kernel of that name."""
    args = ["u4:512"] * ptx.count(".param .u64")
    if name == "saxpy":
        args += ["f4=1", "u4=100"]
    if name == "variables":
        args.insert(0, "bytes:16")
    return {
        "ptx": ptx, "grid": 1, "block": BLOCKS.get(name, 32), "dynamic_smem": 1024, "args": args,
        "max_instructions": 3000, **more,
    }  # fmt: skip


def check(cases: list[Case], answers: list[Answer]) -> Counter[str]:
    """Clear: a message, and a place in the text where there is one. Returns the kinds."""
    for case, answer in zip(cases, answers, strict=True):
        about = f"{answer}\n{case['ptx'][:3000]!r}"
        assert answer["kind"] not in ("HANG", "CRASH"), about
        assert answer["seconds"] < 20, about
        assert len(answer["text"]) > 10, about
        if answer["kind"] == "syntax":
            lines = case["ptx"].count("\n") + 1
            assert 1 <= answer["line"] <= lines and answer["column"] >= 1, about
            assert answer["text"].startswith(f"{answer['line']}:{answer['column']}: "), about
        if answer["kind"] in ("error", "incomplete") and "deadlock" not in answer["text"]:
            assert re.search(r"line \d+|warp \d+|unknown", answer["text"]), about
    kinds = Counter(answer["kind"] for answer in answers)
    print(dict(kinds))
    return kinds


# 200 damaged files --------------------------------------------------------------------------------


def truncated() -> list[Case]:
    """Every source cut off at ten places, in and between tokens."""
    cuts = [
        (name, text, len(text) * k // 11) for name, text in SOURCES.items() for k in range(1, 11)
    ]
    return [launch(name, text[:at]) for name, text, at in cuts]


def flipped(count: int) -> list[Case]:
    """One to four bytes replaced, also by what is no text."""
    rng = random.Random(11)
    out = []
    for _ in range(count):
        name, text = rng.choice([*SOURCES.items()])
        letters = [*text]
        for _ in range(rng.randint(1, 4)):
            letters[rng.randrange(len(letters))] = chr(rng.choice([rng.randrange(256), 0, 0x2028]))
        out.append(launch(name, "".join(letters)))
    return out


def shuffled(count: int) -> list[Case]:
    """Tokens deleted, doubled, exchanged."""
    rng = random.Random(12)
    out = []
    for _ in range(count):
        name, text = rng.choice([*SOURCES.items()])
        parts = re.findall(r"\s+|[%\w.:]+|\S", text)
        for _ in range(rng.randint(1, 3)):
            at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
            what = rng.randrange(3)
            if what == 0:
                del parts[at]
            elif what == 1:
                parts.insert(at, parts[at])
            else:
                parts[at], parts[min(other, len(parts) - 1)] = (
                    parts[min(other, len(parts) - 1)],
                    parts[at],
                )
        out.append(launch(name, "".join(parts)))
    return out


def test_damaged_files() -> None:
    cases = [*truncated(), *flipped(70), *shuffled(70)]
    assert len(cases) >= 200
    kinds = check(cases, ask(cases))
    assert kinds["syntax"] > 120 and len(kinds) >= 4


# Absurd, but well meant ---------------------------------------------------------------------------


def body(text: str, registers: str = "") -> str:
    return (
        f"{HEADER}.visible .entry k(.param .u64 x)\n{{\n.reg .pred %p<4>; .reg .b32 %r<8>; "
        f".reg .b64 %rd<8>; .reg .f32 %f<4>;\n{registers}\n"
        f"ld.param.b64 %rd1, [x];\n{text}\nret;\n}}\n"
    )


def functions(count: int, calls: int) -> str:
    """f0 calls f1 `calls` times, f1 calls f2 …: calls ** count of them in all."""
    call = "call.uni f{};\n"
    text = "".join(
        f".func f{n}()\n{{\n{call.format(n + 1) * calls}ret;\n}}\n" for n in reversed(range(count))
    )
    declared = "".join(f".func f{n}();\n" for n in range(count))
    return (
        f"{HEADER}{declared}.func f{count}()\n{{\nret;\n}}\n{text}"
        ".visible .entry k(.param .u64 x)\n{\ncall.uni f0;\nret;\n}\n"
    )


MANY = 200_000
ABSURD: dict[str, tuple[str, str]] = {
    "empty": ("", "launch|syntax"),
    "only a header": (HEADER, "launch"),
    "not a kernel": (f"{HEADER}.func f()\n{{ ret; }}\n", "launch"),
    "NUL bytes": ("\0" * 1000, "syntax"),
    "a byte order mark": ("\ufeff" + HEADER + SAXPY, "syntax"),
    "binary": ("\x7fELF\x02\x01\x01" + "\x00\xff\xfe" * 99, "syntax"),
    "an unclosed comment": (HEADER + SAXPY + "/* " + "x" * MANY, "syntax"),
    "an unclosed string": (HEADER + '.file 1 "abc\n', "syntax"),
    "an endless word": (HEADER + ".visible .entry " + "k" * 1_000_000, "syntax"),
    "a number of a million digits": (body(f"mov.b32 %r1, {'9' * 1_000_000};"), "syntax"),
    "a hexadecimal of a million digits": (body(f"mov.b32 %r1, 0x{'f' * 1_000_000};"), "syntax"),
    "a float of a million digits": (body(f"mov.f32 %f1, 1.{'3' * 1_000_000};"), "syntax|ok"),
    "an exponent of nines": (body("mov.f32 %f1, 1e999999999;"), "syntax|ok"),
    "an octal with a nine": (body("mov.b32 %r1, 0779;"), "syntax"),
    "70 bits": (body("mov.b64 %rd1, 0xfffffffffffffffffff;"), "syntax"),
    "blocks in blocks": (body("{" * MANY), "syntax"),
    "blocks in blocks, closed": (body("{" * MANY + "}" * MANY), "syntax|ok"),
    "closing braces": (HEADER + "}" * MANY, "syntax"),
    "parentheses": (body("call (" + "(" * MANY), "syntax"),
    "brackets": (body("mov.b32 %r1, " + "[" * MANY), "syntax"),
    "signs": (body("mov.b32 %r1, " + "-" * MANY + "1;"), "syntax"),
    "a long sum": (body("mov.b32 %r1, 1" + "+1" * MANY + ";"), "syntax|ok"),
    "a long address": (body("ld.global.b32 %r1, [%rd1" + "+0" * MANY + "];"), "syntax|ok"),
    "a vector of many": (body("mov.b64 %rd2, {" + "%r1," * MANY + "%r1};"), "syntax"),
    "many operands": (body("add.u32 " + "%r1, " * MANY + "%r1;"), "syntax"),
    "many modifiers": (body("add" + ".u32" * MANY + " %r1, %r1, %r1;"), "syntax|incomplete"),
    "nested initialisers": (f"{HEADER}.global .b32 g[4] = {'{' * MANY}", "syntax"),
    "too many initial values": (
        f"{HEADER}.global .b32 g[2] = {{{'1,' * 99}1}};\n" + SAXPY, "launch|syntax",
    ),
    "more registers than there are": (body("", ".reg .b32 %q<99999999999>;"), "syntax"),
    "many registers": (body("mov.b32 %q16000000, 1;", ".reg .b32 %q<16000001>;"), "ok"),
    "many declarations": (body("", ".reg .b32 %q0;" * 10_000), "syntax|ok"),
    "a register that is none": (body("mov.b32 %r99, 1;"), "syntax"),
    "shared memory beyond the chip": (body("mov.u64 %rd2, s;", ".shared .b8 s[232449];"), "launch"),
    "an array of arrays": (
        body("mov.u64 %rd2, s;", ".shared .b8 s" + "[4]" * MANY + ";"), "syntax|launch",
    ),
    "a negative size": (body("", ".shared .b8 s[-4];"), "syntax"),
    "an alignment of 3": (body("", ".shared .align 3 .b8 s[4];"), "syntax"),
    "parameters beyond the limit": (
        f"{HEADER}.visible .entry k(.param .b8 x[99999])\n{{ ret; }}\n", "launch",
    ),
    "a huge block asked for": (
        f"{HEADER}.visible .entry k(.param .u64 x)\n.reqntid 99999999999, 1, 1\n{{ ret; }}\n",
        "launch",
    ),
    "two entries": (
        body("") + body("").replace(HEADER, "").replace("entry k", "entry l"), "launch",
    ),
    "the same entry twice": (body("") + body("").replace(HEADER, ""), "syntax"),
    "the same label twice": (body("A: A: bra A;"), "syntax"),
    "no such label": (body("bra NOWHERE;"), "syntax"),
    "a label of another block": (body("{ A: } bra A;"), "syntax"),
    "targets that name themselves": (
        body("T: .branchtargets T, T;\nmov.b32 %r1, 0;\nbrx.idx %r1, T;"), "syntax",
    ),
    "an index beyond the targets": (
        body("T: .branchtargets A;\nmov.b32 %r1, 7;\nbrx.idx %r1, T;\nA:"), "error",
    ),
    "a function that calls itself": (
        f"{HEADER}.func f()\n{{\ncall.uni f;\nret;\n}}\n" + body("call.uni f;").replace(HEADER, ""),
        "syntax|incomplete|launch|error",
    ),
    "functions that call each other": (
        f"{HEADER}.func g();\n.func f()\n{{\ncall.uni g;\nret;\n}}\n"
        ".func g()\n{\ncall.uni f;\nret;\n}\n" + body("call.uni f;").replace(HEADER, ""),
        "syntax|incomplete|launch|error",
    ),
    "2 ** 40 calls": (functions(40, 2), "syntax|incomplete|launch|error"),
    "a chain of 3000 calls": (functions(3000, 1), "syntax|incomplete|launch|error|ok"),
    "100,000 labels": (body("\n".join(f"L{n}:" for n in range(100_000))), "ok"),
    "20,000 instructions": (body("add.u32 %r1, 1, 1;\n" * 20_000), "error|ok"),
    "old PTX": (body("").replace(".version 8.8", ".version 0.0"), "syntax|ok"),
    "no such target": (body("").replace("sm_100a", "sm_pony"), "syntax|ok|launch"),
    "no such instruction": (body("frobnicate.b32 %r1;"), "incomplete"),
    "no such type": (body("add.u33 %r1, %r1, %r1;"), "syntax|incomplete"),
}  # fmt: skip

ENDLESS: dict[str, str] = {
    "itself": "A: bra A;",
    "a circle": "A: bra B;\nB: bra C;\nC: bra A;",
    "counting": "mov.b32 %r1, 0;\nA: add.u32 %r1, %r1, 1;\nbra.uni A;",
    "divergent": "mov.u32 %r1, %tid.x;\nA: and.b32 %r2, %r1, 1;\nsetp.eq.u32 %p1, %r2, 0;\n"
    "@%p1 bra B;\nadd.u32 %r1, %r1, 2;\nbra A;\nB: add.u32 %r1, %r1, 2;\nbra A;",
    "indexed": "mov.b32 %r1, 0;\nT: .branchtargets A;\nA: brx.idx %r1, T;",
    "sleeping": "A: nanosleep.u32 4000000000;\nbra A;",
    "looking at memory": "A: ld.global.b32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra A;",
    "a lock nobody opens": "A: atom.global.cas.b32 %r1, [%rd1], 1, 0;\nsetp.eq.u32 %p1, %r1, 0;\n"
    "@%p1 bra A;",
    "one thread of many": "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 5;\n@%p1 bra E;\n"
    "A: bra A;\nE:",
}
SHARED = ".shared .align 8 .b64 m; .shared .align 8 .b64 n;"
STUCK: dict[str, str] = {
    "a barrier that half reaches": "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n"
    "@%p1 bar.sync 1, 64;",
    "two barriers crosswise": "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bra A;\n"
    "bar.sync 1, 64;\nbar.sync 2, 64;\nbra E;\nA:\nbar.sync 2, 64;\nbar.sync 1, 64;\nE:",
    "an mbarrier nobody arrives at": "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n"
    "@%p1 mbarrier.init.shared.b64 [m], 64;\nbar.sync 0;\n"
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [m], 0;\n@!%p1 bra W;",
    "bytes that never come": "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra E;\n"
    "mbarrier.init.shared.b64 [m], 1;\nmbarrier.arrive.expect_tx.shared.b64 _, [m], 64;\n"
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [m], 0;\n@!%p1 bra W;\nE:",
    "tensor memory twice": "mov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 32;\n@%p1 bra E;\n"
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [m], 512;\n"
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [n], 512;\nE:",
}
WILD: dict[str, tuple[str, str]] = {
    "null": ("ld.global.b32 %r1, [0];", "out-of-bounds"),
    "minus one": ("mov.b64 %rd2, -4;\nld.global.b32 %r1, [%rd2];", "out-of-bounds"),
    "2 ** 63": ("mov.b64 %rd2, 0x8000000000000000;\nst.global.b32 [%rd2], 1;", "out-of-bounds"),
    "behind the end": ("st.global.b32 [%rd1+2048], 1;", "out-of-bounds"),
    "before the start": ("st.global.b32 [%rd1-4], 1;", "out-of-bounds"),
    "over the end": ("st.global.v4.b32 [%rd1+2040], {%r1, %r1, %r1, %r1};", "misaligned|bounds"),
    "odd": ("ld.global.b32 %r1, [%rd1+2];", "misaligned"),
    "an odd vector": ("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1+8];", "misaligned"),
    "generic null": ("ld.b32 %r1, [0];", "out-of-bounds"),
    "shared, behind": ("ld.shared.b32 %r1, [99996];", "out-of-bounds"),
    "shared, of another CTA": ("ld.shared.b32 %r1, [99999996];", "out-of-bounds|rank"),
    "shared, negative": ("mov.b32 %r2, -4;\nld.shared.b32 %r1, [%r2];", "out-of-bounds|rank"),
    "local, behind": ("mov.b32 %r2, 99996;\nld.local.b32 %r1, [%r2];", "out-of-bounds"),
    "a parameter, behind": ("ld.param.b64 %rd2, [x+800];", "out-of-bounds"),
    "an atomic": ("atom.global.add.u32 %r1, [%rd1+4096], 1;", "out-of-bounds"),
    "tensor memory without allocation": (
        "mov.b32 %r2, 0;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];", "tensor-memory",
    ),
    "a TMA copy by no tensor map": (
        "mov.b32 %r2, 0;\nmov.u64 %rd2, m;\ncvt.u32.u64 %r3, %rd2;\n"
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
        "[%r3], [%rd1, {%r2, %r2}], [%r3];", "tensor-map|mbarrier|misaligned|issue",
    ),
    "a wait on no mbarrier": (
        "W: mbarrier.try_wait.parity.shared.b64 %p1, [m], 0;\n@!%p1 bra W;", "mbarrier",
    ),
    "an mma without descriptors": (
        "mov.b64 %rd2, 0;\nmov.b32 %r1, 0;\nsetp.eq.u32 %p1, %r1, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd2, %rd2, %r1, %p1;",
        "descriptor|shape|tensor",
    ),
    "a trap": ("trap;", "trap"),
}  # fmt: skip


def test_absurd_files() -> None:
    cases = [launch("k", text) for text, _ in ABSURD.values()]
    answers = ask(cases)
    check(cases, answers)
    for (name, (_, kinds)), answer in zip(ABSURD.items(), answers, strict=True):
        assert re.fullmatch(kinds, answer["kind"]), f"{name}: {answer}"
        assert len(answer["text"]) < 3000, f"{name}: a message of {len(answer['text'])} characters"


def test_endless_loops_and_deadlocks_end() -> None:
    cases = [launch("k", body(text), max_instructions=600) for text in ENDLESS.values()]
    cases += [launch("k", body(text, SHARED), block=64) for text in STUCK.values()]
    answers = ask(cases)
    check(cases, answers)
    for name, answer in zip([*ENDLESS, *STUCK], answers, strict=True):
        assert answer["kind"] == "error", f"{name}: {answer}"
        known = "instruction-budget|deadlock|not-converged" if name in ENDLESS else "deadlock"
        assert re.match(known, answer["text"]), f"{name}: {answer}"


def test_long_loops_of_lanes_apart_are_no_deadlock() -> None:
    text = body(
        "mov.u32 %r1, %tid.x; mov.b32 %r2, 0; and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0;\n"
        "@%p1 bra B;\n"
        "A: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 300000; @%p2 bra A;\nbra E;\n"
        "B: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 300000; @%p2 bra B;\n"
        "E: st.global.b32 [%rd1], %r2;"
    )
    out = np.zeros(1, np.uint32)
    report = run_ptx(text, grid=1, block=32, args=[out], hazards="off")
    assert report.ok and out[0] == 300000, str(report)


def test_wild_pointers() -> None:
    cases = [launch("k", body(text, SHARED)) for text, _ in WILD.values()]
    answers = ask(cases)
    check(cases, answers)
    for (name, (_, words)), answer in zip(WILD.items(), answers, strict=True):
        assert answer["kind"] == "error", f"{name}: {answer}"
        assert re.search(words, answer["text"]), f"{name}: {answer}"


SIZES: list[dict[str, Any]] = [
    {"grid": 0}, {"grid": -1}, {"grid": 1 << 31}, {"grid": 1 << 80}, {"grid": [1, 65536]},
    {"grid": [1, 1, 1, 1]}, {"grid": []}, {"grid": [65535, 65535, 65535]}, {"grid": 1.5},
    {"grid": "8"}, {"grid": None}, {"block": 0}, {"block": 1025}, {"block": [1, 1, 65]},
    {"block": [1024, 1024, 64]}, {"block": -32}, {"cluster": 17}, {"cluster": 0}, {"cluster": 2},
    {"cluster": [4, 4, 2], "grid": [4, 4, 2]}, {"dynamic_smem": 1 << 40}, {"dynamic_smem": -1},
    {"dynamic_smem": 232449}, {"dynamic_smem": 1.5}, {"max_instructions": 0},
    {"max_instructions": -5}, {"entry": "nobody"}, {"entry": 5}, {"hazards": "maybe"},
    {"numerics": "wrong"}, {"args": []}, {"args": ["u4:4"] * 9},
]  # fmt: skip


def test_absurd_launches() -> None:
    fine = launch("k", body(""))
    cases = [{**fine, **size} for size in SIZES]
    for size, answer in zip(SIZES, ask(cases), strict=True):
        assert answer["kind"] == "launch", f"{size}: {answer}"
        assert "expected" in answer["text"], f"{size}: {answer}"
    big = launch("k", body(""), grid=[4096, 4096])  # 2^24 CTAs: allowed, ended by the budget
    (answer,) = ask([{**big, "max_instructions": 100}])
    assert "instruction-budget" in answer["text"], answer


WRONG: list[Any] = [
    5.0, None, "x", [1, 2], object(), -1, 1 << 64, 1j, b"short",
    np.zeros((8, 8), np.float32)[:, ::2], np.zeros(4, np.float32).T[::2],
    np.float32(1), np.uint16(1), np.complex128(1),
    np.array([object()]), np.zeros(4, ">u4"), 5.5,
    np.zeros(4, np.dtype([("a", "u4")]))["a"][::2], np.datetime64("2020-01-01"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_arguments_of_the_wrong_kind(number: int) -> None:
    with pytest.raises(LaunchError, match=r"argument|args"):
        run_ptx(body("st.global.b32 [%rd1], 1;"), grid=1, block=1, args=[WRONG[number]])


def test_an_empty_array_holds_nothing() -> None:
    report = run_ptx(
        body("st.global.b32 [%rd1], 1;"), grid=1, block=1, args=[np.zeros(0, np.uint32)]
    )
    assert [e.code for e in report.errors] == ["out-of-bounds"]

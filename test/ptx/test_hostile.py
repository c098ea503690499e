"""Damaged kernels: a clear refusal or a report each, never another exception and never a hang."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from tcir.run import LaunchError, PtxSyntaxError, RunReport, run_ptx

from .conftest import HEADER, kernel
from .test_execution import COLLATZ, PIPE, REDUCE, SAXPY, TRANSPOSE, VARIABLES
from .test_integer import CASES

SOURCES = [SAXPY, REDUCE, COLLATZ, TRANSPOSE, PIPE, VARIABLES]
SOURCES += [kernel("k", body, types, output) for body, types, output, _ in CASES[::9]]
BLOCKS = {"transpose": 256, "pipe": 64}


def kind(token: str) -> str:
    """Tokens of one kind can often stand for each other: `%r1` and `%r7`, `4` and `31`."""
    return re.sub(r"\d+$", "", token) if token.startswith("%") else re.sub(r"^\d+$", "0", token)


def damaged(rng: random.Random) -> str:
    """A kernel with one to three tokens or modifiers replaced, deleted or inserted."""
    pool = [t for s in SOURCES for t in re.findall(r"[%\w.:]+|\S", s)]
    parts = re.findall(r"\s+|[%\w.:]+|\S", rng.choice(SOURCES))
    for _ in range(rng.randint(1, 3)):
        at, what = rng.randrange(len(parts)), rng.random()
        words = parts[at].split(".")
        alike = [t for t in parts if kind(t) == kind(parts[at])]
        if what < 0.1 and len(words) > 1:
            words[rng.randrange(1, len(words))] = rng.choice(pool).split(".")[-1]
            parts[at] = ".".join(words)
        elif what < 0.2:
            parts[at] = rng.choice(pool)
        elif what < 0.3:
            del parts[at]
        elif what < 0.8:
            parts[at] = rng.choice(alike)
        elif ";" in parts[at:]:  # the rest of an instruction goes
            end = parts.index(";", at)
            del parts[at + 1 : end + 1 if rng.random() < 0.5 else end]
    return HEADER + "".join(parts)


@pytest.mark.parametrize("seed", range(10))
def test_damaged_kernels(seed: int) -> None:
    rng = random.Random(seed)
    refused = ran = 0
    for _ in range(40):
        text = damaged(rng)
        name = next((n for n in BLOCKS if f".entry {n}" in text), "")
        args: list[object] = [np.zeros(512, np.uint32) for _ in range(text.count(".param .u64"))]
        if "saxpy" in text:
            args += [np.float32(1), np.uint32(100)]
        if "variables" in text:
            args.insert(0, bytes(16))
        try:
            report = run_ptx(
                text,
                grid=1,
                block=BLOCKS.get(name, 32),
                args=args,
                dynamic_smem=1024,
                max_instructions=3000,
            )
        except (PtxSyntaxError, LaunchError) as refusal:
            assert len(str(refusal)) > 10
            refused += 1
        else:
            assert isinstance(report, RunReport) and str(report)
            ran += 1
    assert refused > 5 and ran > 5


def test_huge_declarations_cost_nothing() -> None:
    for declaration in (
        ".shared .b8 x[999999999999];",
        ".local .b8 x[999999999999];",
        ".reg .b32 %r<16000000>;",
    ):
        body = f"{declaration} mov.u64 %u1, x;" if "x[" in declaration else declaration
        text = HEADER + kernel("k", f"{body} mov.u32 %d, 1;", [], "u32")
        if "x[" in declaration:
            with pytest.raises(LaunchError, match="expected at most"):
                run_ptx(text, grid=1, block=32, args=[np.zeros(32, np.uint32)])
        else:
            assert run_ptx(text, grid=1, block=32, args=[np.zeros(32, np.uint32)]).ok

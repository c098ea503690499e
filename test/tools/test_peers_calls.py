"""How calls of libraries are run and compared (`peers.calls`)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

missing = [name for name in ("triton", "torch") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import io
import torch, triton
import triton.language as tl
from peers.calls.__main__ import door, run_once
from tcir.doors.launches import Launches

@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

@triton.jit
def product(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N), tl.arange(0, K)
    left, right = tl.load(a + m * K + k), tl.load(b + k[:, None] * N + n)
    tl.store(out + m * N + n, tl.dot(left, right))

def multiplied():
    a, b = torch.ones(128, 16).half(), torch.ones(16, 64).half()
    out = torch.empty(128, 64)
    product[(1,)](a, b, out, 128, 64, 16)
    return [(out, a.double() @ b.double())]

def compute(factor, size=100, at=0):
    x = torch.randn(100)
    out = torch.empty(100)
    doubled[(1,)](x[at:], out, size, BLOCK=128)
    return [(out, factor * x.double())]

def library():
    raise KeyError("its own")

def nothing():
    return [(torch.ones(1), torch.ones(1))]

launches = Launches(messages=io.StringIO())
with door(launches):
    for call in (
        lambda: compute(2), lambda: compute(3), lambda: compute(2, 128), library, nothing,
    ):
        for seed in (None, 1):
            run, kernels = run_once(call, launches, seed)
            print(run.values.split(" differ")[0], run.verdict, len(kernels), sep="|")
    for profile in ("silicon", "isa"):
        run, _ = run_once(multiplied, launches, None, profile)
        print(run.values, run.verdict, *run.kinds, sep="|")
"""


def test_each_run_of_a_call_is_judged(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    *said, silicon, isa = ended.stdout.splitlines()
    assert silicon.startswith("exact|ok|") and "warning missing-fence-after" in silicon
    assert isa.startswith("exact|error: ") and "error missing-fence-after" in isa
    assert said[0::2] == said[1::2], "the same under a seed"
    assert said[0] == "exact|ok|1"
    assert said[2] == "100 of 100|ok|1"
    assert said[4].startswith("–|error: out-of-bounds|")
    assert said[6] == "–|not started|0" and said[8] == "exact|not started|0"


def test_kernels_differ_by_their_instructions() -> None:
    from peers.calls.__main__ import digest

    text = ".loc 1 2\n$L__BB0_1:\nadd.s32 %r1, %r2, 1; // x.py:3\n"
    same = ".loc 1 7\n$L__BB0_4:\nadd.s32 %r1, %r2, 1; // x.py:9\n.section .debug_info"
    assert digest(text) == digest(same) != digest(text.replace("add", "sub"))


def test_values_are_compared_by_the_type_of_the_result() -> None:
    import torch

    from peers.calls.compare import values

    want = torch.tensor([1.0, 100.0], dtype=torch.float64)
    assert values([(want.clone(), want)]) == "exact"
    assert values([(torch.tensor([1.0, 100.001]), want)]).startswith("within 0.001")
    assert values([(torch.tensor([1.0, 100.01]), want)]).startswith("1 of 2 differ, first (1,)")
    assert values([(torch.tensor([1.0, 100.2]).half(), want)]).startswith("within")
    assert values([(torch.tensor([1, 101]), want)]).startswith("1 of 2 differ")
    assert values([(torch.ones(3), want)]) == "shape (3,) for (2,)"
    unknown = torch.tensor([torch.nan, torch.inf])
    assert values([(unknown, unknown.double())]) == "exact"
    assert "differ" in values([(unknown, want)])


def test_a_call_is_run_again_if_what_it_does_changes() -> None:
    from peers import kept

    def make(factor: int) -> object:
        return lambda: factor * 2

    make.__module__ = "peers.calls.example"
    first, second = make(1), make(2)
    for each in (first, second):
        each.__module__ = "peers.calls.example"  # type: ignore[attr-defined]
    keys = [kept.call_key(each, "1.0", 5) for each in (first, first, second)]  # type: ignore[arg-type]
    assert keys[0] == keys[1] != keys[2]
    assert kept.call_key(first, "1.1", 5) != keys[0] != kept.call_key(first, "1.0", 4)  # type: ignore[arg-type]

"""Shuffles, votes and reductions across lanes, against the pseudocode of the PTX ISA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .conftest import HEADER, kernel

A = (np.arange(32, dtype=np.uint32) * 2654435761 % 1009).astype(np.uint32)


def shuffle(mode: str, value: Any, b: int, c: int) -> tuple[list[int], list[int]]:
    out, valid = [], []
    clamp, segment = c & 31, c >> 8 & 31
    for lane in range(32):
        highest = lane & segment | clamp & ~segment
        match mode:
            case "up":
                j = lane - (b & 31)
                inside = j >= highest
            case "down":
                j = lane + (b & 31)
                inside = j <= highest
            case "bfly":
                j = lane ^ (b & 31)
                inside = j <= highest
            case _:
                j = (lane & segment) | (b & 31 & ~segment)
                inside = j <= highest
        out.append(int(value[j if inside else lane]))
        valid.append(int(inside))
    return out, valid


CLAMPS = {"up": (0, 0x1800), "down": (31, 0x181F), "bfly": (31, 0x1C1F), "idx": (31, 0x101F)}
SHUFFLES = [(m, b, c) for m, cs in CLAMPS.items() for c in cs for b in (0, 1, 5, 16, 31)]


@pytest.mark.parametrize("mode,b,c", SHUFFLES)
def test_shuffle(lanes: Any, mode: str, b: int, c: int) -> None:
    want, valid = shuffle(mode, A, b, c)
    body = f"shfl.sync.{mode}.b32 %d|%p1, %a, {b}, {c}, -1;"
    assert lanes(body, [A], ["u32"], "u32").tolist() == want
    got = lanes(body + " selp.u32 %d, 1, 0, %p1;", [A], ["u32"], "u32")
    assert got.tolist() == valid


ODD = sum(1 << n for n in range(32) if A[n] & 1)
TABLE = [
    ("vote.sync.ballot.b32 %d, %p1, -1;", [ODD] * 32),
    ("vote.sync.ballot.b32 %d, !%p1, -1;", [ODD ^ 0xFFFFFFFF] * 32),
    ("vote.sync.any.pred %p2, %p1, -1; selp.u32 %d, 1, 0, %p2;", [1] * 32),
    ("vote.sync.all.pred %p2, %p1, -1; selp.u32 %d, 1, 0, %p2;", [0] * 32),
    ("vote.sync.uni.pred %p2, %p1, -1; selp.u32 %d, 1, 0, %p2;", [0] * 32),
    ("@!%p1 mov.u32 %d, 3; @%p1 activemask.b32 %d;", [ODD if a & 1 else 3 for a in A.tolist()]),
    ("redux.sync.add.u32 %d, %a, -1;", [int(A.sum())] * 32),
    ("redux.sync.min.s32 %d, %a, -1;", [int(A.min())] * 32),
    ("redux.sync.max.u32 %d, %a, -1;", [int(A.max())] * 32),
    ("redux.sync.xor.b32 %d, %a, -1;", [int(np.bitwise_xor.reduce(A))] * 32),
    ("elect.sync %d|%p2, -1;", [0] * 32),
    ("elect.sync _|%p2, -1; selp.u32 %d, 1, 0, %p2;", [1] + [0] * 31),
    (
        "and.b32 %t3, %a, 1; match.any.sync.b32 %d, %t3, -1;",
        [ODD if a & 1 else ODD ^ 0xFFFFFFFF for a in A.tolist()],
    ),
    ("match.all.sync.b32 %d|%p2, %t2, -1;", [0xFFFFFFFF] * 32),
    ("mov.u32 %d, %lanemask_lt;", [(1 << n) - 1 for n in range(32)]),
    ("mov.u32 %d, %lanemask_ge;", [0xFFFFFFFF & ~((1 << n) - 1) for n in range(32)]),
    ("mov.u32 %d, %ntid.x;", [32] * 32),
    ("mov.u32 %d, %nctaid.x;", [1] * 32),
    ("mov.u32 %d, %warpid;", [0] * 32),
    ("mov.u32 %d, WARP_SZ;", [32] * 32),
]
ODD_LANES = "and.b32 %t6, %a, 1; setp.eq.u32 %p1, %t6, 1; "


@pytest.mark.parametrize(
    "body,want", TABLE, ids=[b.split(" ")[0] + str(n) for n, (b, _) in enumerate(TABLE)]
)
def test_across_lanes(lanes: Any, body: str, want: list[int]) -> None:
    assert lanes(ODD_LANES + body, [A], ["u32"], "u32").tolist() == want


def test_every_snippet_is_legal_ptx(assemble: Any) -> None:
    bodies = [ODD_LANES + b for b, _ in TABLE]
    bodies += [f"shfl.sync.{m}.b32 %d|%p1, %a, {b}, {c}, -1;" for m, b, c in SHUFFLES[::5]]
    assemble(HEADER + "".join(kernel(f"k{n}", b, ["u32"], "u32") for n, b in enumerate(bodies)))


FLOATS = np.array([1.5, -8.0, np.nan, 3.0, -0.5, 7.0, -7.0, 2.0] * 4, np.float32)
REDUX = [("max", 7.0), ("min", -8.0), ("max.abs", 8.0), ("min.abs", 0.5), ("max.NaN", np.nan)]


@pytest.mark.parametrize("op,want", REDUX)
def test_redux_of_floats(lanes: Any, op: str, want: float) -> None:
    got = lanes(f"redux.sync.{op}.f32 %d, %a, -1;", [FLOATS], ["f32"], "u32").view(np.float32)
    assert np.array_equal(got, np.full(32, want, np.float32), equal_nan=True)


def test_redux_of_floats_is_legal_ptx(assemble: Any) -> None:
    bodies = [f"redux.sync.{op}.f32 %d, %a, -1;" for op, _ in REDUX]
    assemble(HEADER + "".join(kernel(f"k{n}", b, ["f32"], "b32") for n, b in enumerate(bodies)))

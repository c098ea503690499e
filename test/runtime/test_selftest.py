"""The micro-kernels of ``tc-run --selftest``: they assemble, and tell the alternatives apart."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.codegen import assemble
from tcir.errors import Error
from tcir.machine import REGISTRY
from tcir.ptxrun.command import main as tc_run
from tcir.run import run_ptx
from tcir.runtime import selftest
from tcir.runtime.micro_kernel import MicroKernel
from tcir.runtime.micro_kernels import NOT_ASKED, micro_kernels
from tcir.target import DEFAULT_TARGET

KERNELS = micro_kernels()


def test_every_assumption_has_a_kernel_or_a_reason() -> None:
    names = {entry.name for entry in REGISTRY}
    assert set(KERNELS) | set(NOT_ASKED) == names
    assert not set(KERNELS) & set(NOT_ASKED)


@pytest.mark.parametrize("name", KERNELS)
def test_assembles(name: str) -> None:
    assert len(assemble(KERNELS[name].ptx, target=DEFAULT_TARGET.name).data) > 1000


@pytest.mark.parametrize("name", KERNELS)
def test_tells_the_alternatives_apart(name: str) -> None:
    outcomes = selftest.expected(name, KERNELS[name])
    assert len(set(outcomes.values())) == len(outcomes)
    for alternative, data in outcomes.items():
        assert selftest.judge(outcomes, data) == str(alternative)
    flipped = bytes([next(iter(outcomes.values()))[0] ^ 1]) + b"?"
    assert selftest.judge(outcomes, flipped).startswith("neither")


@pytest.mark.parametrize("name", ["padded_bytes", "im2col_w_bytes"])
def test_bytes_that_do_not_come_are_seen(name: str) -> None:
    """A GPU gives up waiting for them and writes a 0: so does the machine, which is no fault."""
    outcomes = selftest.expected(name, KERNELS[name])
    assert {data[-4:] for data in outcomes.values()} == {bytes(4), b"\1\0\0\0"}


def test_without_a_b200_one_sentence(capsys: Any) -> None:
    if selftest._blackwell() is None:
        pytest.skip("there is a B200")
    assert tc_run(["--selftest"]) == 2
    printed = capsys.readouterr()
    assert len(printed.err.strip().splitlines()) == 1
    for entry in REGISTRY:
        said = "not asked" if entry.name in KERNELS else "cannot be tested: "
        assert f"{entry.name}: assumed {entry.default}; silicon: {said}" in printed.out


def test_sums_that_ask_are_what_they_are_said_to_be() -> None:
    """By hand, see the kernels' texts: what each alternative makes of the sums."""
    zeros = selftest.expected("zero_terms", KERNELS["zero_terms"])
    seen = {a: np.frombuffer(b, np.uint32).reshape(128, 32)[:, :3] for a, b in zeros.items()}
    for alternative, row in {"none": (0, 0, 0), "-133": (1, 0, 0), "-126": (1, 1, 0)}.items():
        assert (seen[alternative] == row).all()
    sums = selftest.expected("fp4_sums", KERNELS["fp4_sums"])
    columns = np.arange(16)
    for alternative, step in {"products": 1, "scales": 4}.items():
        d = np.frombuffer(sums[alternative], np.float32).reshape(128, 32)[:, :16]
        assert (d * 2**19 == columns // step * step).all()


def test_rows_of_k_far_apart_by_hand() -> None:
    """Ones times eight rows of K: four of 1, and four 1024 bytes on, 4, or 512 bytes on, 2."""
    outcomes = selftest.expected("atom_32b_rows", KERNELS["atom_32b_rows"])
    for alternative, sum_ in {"4": 4 * 1 + 4 * 4, "8": 4 * 1 + 4 * 2}.items():
        assert (
            np.frombuffer(outcomes[alternative], np.float32).reshape(128, 32)[:, :16] == sum_
        ).all()


def test_sparse_and_zeroed_columns_by_hand() -> None:
    def d(name: str, alternative: str, width: int) -> Any:
        data = selftest.expected(name, KERNELS[name])[alternative]
        return np.frombuffer(data, np.float32).reshape(128, width)

    # Eight groups of four of B = 1, 2, 4, 8; the third column takes the second and third.
    assert (d("sparsity_selector", "four", 32)[:, :16] == 8 * (2 + 4)).all()
    sums = 8 * np.array([1 + 2, 1 + 4, 2 + 4, 1 + 8, 2 + 8, 4 + 8])
    rows = np.arange(64)
    lanes = rows // 16 * 32 + rows % 16  # of a D of 64 rows
    of_lanes = {"d-lanes": lanes, "packed": rows}
    for alternative, where in of_lanes.items():
        found = d("half_lane_metadata", alternative, 32)[lanes, 0]
        assert (found == sums[where // 16 % 6]).all()
    columns = np.arange(64) % 8
    for alternative, zeros in {"skip-is-zero": 3, "use-is-zero": 5}.items():
        assert (d("zero_column_spans", alternative, 64) == 16 * (columns >= zeros)).all()


def test_pairs_by_hand() -> None:
    """Three kernels of two CTAs, each free of hazards."""

    def words(name: str, alternative: str) -> Any:
        data = selftest.expected(name, KERNELS[name])[alternative]
        return np.frombuffer(data, np.uint32).reshape(2, 128, 32)

    rows = np.arange(128)
    for alternative, origins in {"own": (0, 1), "issuer": (0, 0)}.items():
        copied = words("cp_pair_source", alternative)[:, :, :8].view(np.uint8)
        assert (copied == 1 + np.array(origins)[:, None, None] + rows[:, None]).all()
    lane = rows % 32
    moved = {
        ("ashift_copies", "both"): lane < 31,
        ("ashift_copies", "first"): (lane < 31) & (rows < 64),
        ("ashift_half_lanes", "lanes"): lane < 31,
        ("ashift_half_lanes", "rows"): lane < 15,
    }
    for (name, alternative), moves in moved.items():
        a = words(name, alternative)[:, :, 16:24].copy().view(np.float16)
        before = np.arange(256) if name == "ashift_half_lanes" else np.repeat([[0], [64]], 128, 1)
        before = before.reshape(2, 128) + (0 if name == "ashift_half_lanes" else rows % 64)
        assert (a == np.where(moves, np.roll(before, -1, 1), before)[..., None]).all()
    for name in ("cp_pair_source", "ashift_copies", "ashift_half_lanes"):
        arguments, _ = KERNELS[name].make()
        report = run_ptx(KERNELS[name].ptx, args=arguments, **KERNELS[name].sizes)
        assert report.ok and not report.findings, str(report)


# --- processes -----------------------------------------------------------------------------------

CHILDREN = """
import os, time
from tcir.errors import Error

def answer(cubin, sizes, made):
    args, outputs = made
    assert args[0] is outputs[0]  # pickled together
    outputs[0] += 1
    return cubin + args[0].tobytes() + bytes([sizes['block']])

def hang(*_):
    time.sleep(1000)

def die(*_):
    os._exit(3)

def refuse(*_):
    raise Error("no such thing")
"""


def test_each_launch_has_a_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "children.py").write_text(CHILDREN)
    monkeypatch.syspath_prepend(tmp_path)  # a new process takes over the path, not our modules
    children = importlib.import_module("children")
    kernel = MicroKernel("", 32, lambda: ([], []))
    data = np.zeros(2, np.uint8)
    got = selftest.in_process(children.answer, b"c", kernel, ([data], [data]))
    assert got == b"c\x01\x01\x20" and not data.any()
    with pytest.raises(Error, match="Error: no such thing"):
        selftest.in_process(children.refuse, b"", kernel, None)
    with pytest.raises(Error, match="died"):
        selftest.in_process(children.die, b"", kernel, None)
    monkeypatch.setattr(selftest, "SECONDS", 1)
    with pytest.raises(selftest.NotEndedError, match="within 1 seconds"):
        selftest.in_process(children.hang, b"", kernel, None)


_STORE_SEVEN = """.version 8.0
.target sm_90
.address_size 64
.visible .entry ask(.param .u64 out)
{
 .reg .b64 %d; .reg .b32 %r;
 ld.param.u64 %d, [out]; mov.b32 %r, 7; st.global.b32 [%d], %r;
 ret;
}
"""


@pytest.mark.gpu
def test_a_fault_does_not_spoil_the_next_launch() -> None:
    """On a Hopper GPU: a launch that faults, then one that does not."""
    from tcir.runtime import device

    try:
        if device().capability != (9, 0):
            pytest.skip(f"expected a Hopper GPU (sm_90), got {device()}")
    except Error as error:
        pytest.skip(str(error))

    def make() -> tuple[list[Any], list[Any]]:
        out = np.zeros(1, np.uint32)
        return [out], [out]

    good = MicroKernel(_STORE_SEVEN, 1, make)
    stray = _STORE_SEVEN.replace("ld.param.u64 %d, [out]", "mov.b64 %d, 8192")
    bad = MicroKernel(stray, 1, make, then=good)
    assert selftest.on_gpu(good, "sm_90") == b"\7\0\0\0"
    assert selftest.on_gpu(bad, "sm_90") == selftest.FAULT + b"\7\0\0\0"

"""`tc-viz fragment` prints what a warp printed of itself: every number."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tcir import run_ptx
from tcir.machine.numerics.warp_mma import AMPERE, warp_mma
from tcir.viz.command import main

from . import printed_tables

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mma_m16n8k16.ptx"


def numbers(table: str) -> list[list[str]]:
    return [line.split() for line in table.split("\n") if line]


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[str]]:
    """The list by threads: lines ``thread: a, b, …``, threads in order."""
    assert main(["fragment", "mma.m16n8k16", *arguments]) == 0
    found = re.findall(r"^ *(\d+): ([\d., -]+)$", capsys.readouterr().out, re.MULTILINE)
    assert [int(thread) for thread, _ in found] == list(range(32))
    return [line.split(", ") for _, line in found]


@pytest.mark.parametrize(("operand", "count"), [("A", 256), ("B", 128)])
def test_element_numbers(operand: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    expected = numbers(getattr(printed_tables, operand))
    assert sum(map(len, expected)) == count
    assert shown(capsys, "--operand", operand) == expected


def inputs() -> tuple[np.ndarray, np.ndarray]:
    a = (0.01 * np.arange(256)).astype(np.float16).reshape(16, 16)
    b = (0.01 * np.arange(128)).astype(np.float16).reshape(8, 16).T
    return a.astype(np.float64), b.astype(np.float64)


def test_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ampere sums eight products and the accumulator at once, and rounds to f16, twice."""
    a, b = inputs()
    d = (a[:, :8] @ b[:8]).astype(np.float16).astype(np.float64)
    d = (d + a[:, 8:] @ b[8:]).astype(np.float16)
    file = tmp_path / "d.npy"
    np.save(file, d.astype(np.float64))
    got = shown(capsys, "--operand", "C", "--values", str(file))
    assert got == numbers(printed_tables.D)
    assert sum(map(len, got)) == 128


@pytest.mark.parametrize(("target", "misses"), [("sm_80", 0), ("sm_90", 14), ("sm_100a", 14)])
def test_the_example_prints_them(
    target: str, misses: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """examples/mma_m16n8k16.ptx, instruction by instruction; other targets round otherwise."""
    text = EXAMPLE.read_text().replace(".target sm_80", f".target {target}")
    text = text.replace(".version 7.0", ".version 8.6")
    d = np.zeros((16, 8), np.float16)
    a, b = (matrix.astype(np.float16) for matrix in inputs())
    report = run_ptx(text, grid=1, block=32, args=[a, np.ascontiguousarray(b.T), d])
    assert report.ok and not report.findings
    np.save(tmp_path / "d.npy", d)
    got = shown(capsys, "--operand", "D", "--values", str(tmp_path / "d.npy"))
    expected = numbers(printed_tables.D)
    pairs = [(x, y) for mine, theirs in zip(got, expected) for x, y in zip(mine, theirs)]
    assert len(pairs) == 128
    assert sum(x != y for x, y in pairs) == misses


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("and.b32        %r8, %r1, 16", "and.b32        %r8, %r1, 8"),
        ("{%b0, %b1}, {%d0, %d1};", "{%b1, %b0}, {%d0, %d1};"),
        ("ldmatrix.sync.aligned.m8n8.x2.shared", "ldmatrix.sync.aligned.m8n8.x2.trans.shared"),
        ("[%rd7+128], %d1", "[%rd7+128], %d0"),
    ],
)
def test_a_wrong_address_or_register_prints_another(old: str, new: str) -> None:
    text = EXAMPLE.read_text()
    assert text.count(old) == 1
    results = []
    for source in (text, text.replace(old, new)):
        d = np.zeros((16, 8), np.float16)
        a, b = (matrix.astype(np.float16) for matrix in inputs())
        run_ptx(source, grid=1, block=32, args=[a, np.ascontiguousarray(b.T), d])
        results.append(d)
    assert (results[0] != results[1]).any()


def test_reference() -> None:
    """The printed product is numpy's, and the machine's with an f32 accumulator, to 0.005."""
    a, b = inputs()
    product = [[f"{value:.2f}" for value in row] for row in a @ b]
    assert product == numbers(printed_tables.REFERENCE)
    codes = (x.astype(np.float16).view(np.uint16) for x in (a, b.T))
    d = warp_mma(
        *codes, np.zeros((16, 8), np.uint32), a_type="f16", b_type="f16", d_type="f32", part=AMPERE
    )
    printed = np.array(numbers(printed_tables.REFERENCE), np.float64)
    assert np.abs(d.view(np.float32) - printed).max() <= 0.005 + 1e-5


def test_the_comparison_sees_one_wrong_number(tmp_path: Path, capsys) -> None:
    a, b = inputs()
    d = (a[:, :8] @ b[:8]).astype(np.float16).astype(np.float64)
    d = (d + a[:, 8:] @ b[8:]).astype(np.float16).astype(np.float64)
    d[15, 7] += 0.04
    np.save(tmp_path / "d.npy", d)
    got = shown(capsys, "--operand", "C", "--values", str(tmp_path / "d.npy"))
    differing = [
        (t, i)
        for t, (mine, theirs) in enumerate(zip(got, numbers(printed_tables.D)))
        for i, (x, y) in enumerate(zip(mine, theirs))
        if x != y
    ]
    assert differing == [(31, 3)]

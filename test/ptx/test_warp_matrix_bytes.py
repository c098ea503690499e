"""stmatrix .m16n8.b8, ldmatrix .m8n16 and movmatrix, element by element; all of them assemble."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import run_ptx

from .conftest import HEADER
from .test_warp_matrix import MOVE

RNG = np.random.default_rng(11)
REGS = ["%r4", "%r5", "%r6", "%r7"]
STORE = """
 mov.b32 %r8, 0; st.shared.v4.b32 [%r2], {{%r8, %r8, %r8, %r8}};
 bar.warp.sync -1;
 stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%r2], {{{regs}}};
 bar.warp.sync -1;
 ld.shared.v4.b32 {{%r8, %r9, %r10, %r11}}, [%r2];
"""
LOAD = """
 st.shared.v4.b32 [%r2], {{%r4, %r5, %r6, %r7}};
 bar.warp.sync -1;
 mov.b32 %r8, 0; mov.b32 %r9, 0; mov.b32 %r10, 0; mov.b32 %r11, 0;
 ldmatrix.sync.aligned.m8n16.x{count}.shared.b8x16.{form} {{{regs}}}, [%r2];
"""


def run(body: str, data: np.ndarray, assemble: Any) -> np.ndarray:
    ptx = HEADER + MOVE.format(body=body)
    out = np.zeros((32, 4), np.uint32)
    report = run_ptx(ptx, grid=1, block=32, args=[data, out])
    assert report.ok, report
    assemble(ptx)
    return out


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_of_bytes(count: int, assemble: Any) -> None:
    """The matrix lies like D of mma.sync (row g and g + 8, columns 2c and 2c + 1)."""
    data = RNG.integers(0, 256, (32, 4, 4), np.uint8)
    got = run(
        STORE.format(count=count, regs=", ".join(REGS[:count])), data.view(np.uint32), assemble
    )
    want = np.zeros((32, 16), np.uint8)
    for lane in range(32):
        for n in range(count):
            for byte in range(4):
                row, column = lane // 4 + 8 * (byte // 2), 2 * (lane % 4) + byte % 2
                want[8 * n + column, row] = data[lane, n, byte]
    assert (got.view(np.uint8) == want).all()


@pytest.mark.parametrize("form,bits", [("b6x16_p32", 6), ("b4x16_p64", 4)])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_of_narrow_elements(count: int, form: str, bits: int, assemble: Any) -> None:
    data = RNG.integers(0, 256, (32, 16), np.uint8)
    regs = ", ".join(f"%r{8 + n}" for n in range(count))
    got = run(LOAD.format(count=count, form=form, regs=regs), data.view(np.uint32), assemble)
    for lane in range(32):
        for n in range(count):
            unit = int.from_bytes(data[8 * n + lane // 4].tobytes(), "little")
            for byte in range(4):
                code = unit >> bits * (4 * (lane % 4) + byte) & (1 << bits) - 1
                assert int(got[lane, n]) >> 8 * byte & 0xFF == code


def test_movmatrix(assemble: Any) -> None:
    data = RNG.integers(0, 1 << 16, (32, 8), np.uint16)
    got = run(
        "movmatrix.sync.aligned.m8n8.trans.b16 %r8, %r4; mov.b32 %r9, 0; mov.b32 %r10, 0;"
        " mov.b32 %r11, 0;",
        data.view(np.uint32),
        assemble,
    )
    before = data[:, :2].reshape(8, 8)
    assert (np.ascontiguousarray(got[:, :1]).view(np.uint16).reshape(8, 8) == before.T).all()


SQUARE = """
 st.shared.v4.b32 [%r2], {{%r4, %r5, %r6, %r7}};
 bar.warp.sync -1;
 mov.b32 %r8, 0; mov.b32 %r9, 0; mov.b32 %r10, 0; mov.b32 %r11, 0;
 ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{form} {{{regs}}}, [%r2];
"""


@pytest.mark.parametrize("form,bits", [("b8", 8), ("b8x16.b6x16_p32", 6), ("b8x16.b4x16_p64", 4)])
@pytest.mark.parametrize("count", [1, 2])
def test_ldmatrix_of_a_square_of_bytes(count: int, form: str, bits: int, assemble: Any) -> None:
    """Four threads have four elements each of a row of the transpose, and of the row 8 below."""
    data = RNG.integers(0, 256, (32, 16), np.uint8)
    regs = ", ".join(f"%r{8 + n}" for n in range(2 * count))
    got = run(SQUARE.format(count=count, form=form, regs=regs), data.view(np.uint32), assemble)
    for lane in range(32):
        for n in range(2 * count):
            for byte in range(4):
                row, column = 16 * (n // 2) + 4 * (lane % 4) + byte, lane // 4 + 8 * (n % 2)
                unit = int.from_bytes(data[row].tobytes(), "little")
                code = unit >> bits * column & (1 << bits) - 1
                assert int(got[lane, n]) >> 8 * byte & 0xFF == code
    assert (got[:, 2 * count :] == 0).all()


def test_a_transposed_square_stored_again(assemble: Any) -> None:
    """CuTeDSL's example: ldmatrix.m16n16.trans, then stmatrix.m8n8.x2, transposes 16 x 16 bytes."""
    data = RNG.integers(0, 256, (32, 16), np.uint8)
    body = (
        SQUARE.format(count=1, form="b8", regs="%r8, %r9")
        + """
 bar.warp.sync -1;
 stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r2], {%r8, %r9};
 bar.warp.sync -1;
 ld.shared.v4.b32 {%r8, %r9, %r10, %r11}, [%r2];
"""
    )
    got = run(body, data.view(np.uint32), assemble).view(np.uint8)
    np.testing.assert_array_equal(got[:16], data[:16].T)


@pytest.mark.parametrize(
    "body",
    [
        STORE.format(count=1, regs="%r4").replace(".trans", ""),
        SQUARE.format(count=1, form="b8", regs="%r8, %r9").replace(".trans", ""),
        SQUARE.format(count=4, form="b8", regs="%r8, %r9, %r10, %r11"),
        SQUARE.format(count=1, form="b8", regs="%r8"),
        LOAD.format(count=1, form="b4x16_p64", regs="%r8").replace("b8x16.b4x16_p64", "b8"),
    ],
)
def test_what_is_malformed(body: str, assemble: Any) -> None:
    """Neither ptxas nor the machine takes them."""
    ptx = HEADER + MOVE.format(body=body)
    with pytest.raises(AssertionError, match="error"):
        assemble(ptx)
    out = np.zeros((32, 4), np.uint32)
    with pytest.raises(ValueError, match=r"ldmatrix|stmatrix"):
        run_ptx(ptx, grid=1, block=32, args=[out, out])

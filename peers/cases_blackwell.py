"""Launches and numpy oracles of the kernels in `cute_blackwell`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from peers.case import Launch, case, product, rng, small

E4M3, E2M1, E8M0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu
#: The values of e2m1 by their code.
FP4 = np.arange(16, dtype="u1").view(E2M1).astype("f4")


def columns(matrix: np.ndarray) -> bytes:
    """A K-major matrix without swizzle: 16-byte columns one after the other, rows within them.

    Rows are padded to 8, the unit of a matrix descriptor (PTX ISA 9.7.16.5.2).
    """
    data = np.ascontiguousarray(matrix).view("u1")
    padded = np.zeros((-(-data.shape[0] // 8) * 8, data.shape[1]), "u1")
    padded[: len(data)] = data
    return padded.reshape(len(padded), -1, 16).transpose(1, 0, 2).tobytes()


def scale_block(scales: np.ndarray) -> bytes:
    """Four scales of up to 128 rows as a block of 512 bytes: row r at (r % 32) 16 + (r // 32) 4."""
    block = np.zeros((128, 4), "u1")
    block[: len(scales)] = scales.view("u1")
    return block.reshape(4, 32, 4).transpose(1, 0, 2).tobytes()


def words(*parts: bytes) -> np.ndarray:
    """One CTA's image of shared memory."""
    return np.frombuffer(b"".join(parts), "i4").reshape(1, -1).copy()


def launch(want: np.ndarray, *args: np.ndarray, ctas: int = 1, **more: Any) -> Launch:
    """The kernel's last parameter is the accumulator."""
    out = np.zeros(want.shape, "f4")
    return Launch((ctas,), [*args, out], [(out, want, 0)], dynamic_smem=65536, **more)


def _taps(rows: int) -> tuple[np.ndarray, list[np.ndarray]]:
    r = rng()
    return small(r, (rows, 16), "f2"), [small(r, (16, 16), "f2") for _ in range(3)]


@case("cute")
def ashift_taps(meta: Any) -> Launch:
    """Rows move towards lane 0 after each mma; the last of every 32 lanes keeps its contents."""
    a, taps = _taps(128)
    source, want = np.arange(128), np.zeros((128, 16))
    for w in taps:
        want += product(a[source], w.T)
        source = np.where(np.arange(128) % 32 == 31, source, np.roll(source, -1))
    return launch(want, words(*map(columns, taps)), a.view("i4"))


@case("cute")
def ashift_halo(meta: Any) -> Launch:
    """A convolution along the rows: three taps over 130 rows."""
    a, taps = _taps(130)
    want = sum(product(a[s : s + 128], w.T) for s, w in enumerate(taps))
    halos = [columns(a[32 + s : 129 + s : 32]) for s in range(2)]
    assert isinstance(want, np.ndarray)
    return launch(want, words(*map(columns, taps), *halos), a[:128].view("i4"))


@case("cute")
def lane_mask(meta: Any) -> Launch:
    r = rng()
    a, b = small(r, (128, 16), "f2"), [small(r, (16, 16), "f2") for _ in range(2)]
    first, second = (product(a, w.T) for w in b)
    bits = np.array([0x0000FFFF, 0x55555555, 0, 0x80000001], "u4").view("u1")
    masked = np.unpackbits(bits, bitorder="little").astype(bool)[:, None]
    want = np.where(masked, first, first / 4 + second)
    return launch(want, words(columns(a), *map(columns, b)))


def _scaled(values: np.ndarray, scales: np.ndarray, block: int) -> np.ndarray:
    return values.astype("f8") * np.repeat(scales.astype("f8"), block, axis=1)


@case("cute")
def nvfp4(meta: Any) -> Launch:
    """Scales between 1/4 and 3.5: all products are multiples of 1/64 below 2^24 / 64, so exact."""
    r, k = rng(), 128
    codes = [r.integers(0, 16, (rows, k), "u1") for rows in (128, 64)]
    scales = [
        (r.integers(1, 15, (rows, k // 16)) / 4).astype("f4").astype(E4M3) for rows in (128, 64)
    ]
    a, b = (_scaled(FP4[c], s, 16) for c, s in zip(codes, scales, strict=True))
    packed = [c[:, ::2] | c[:, 1::2] << 4 for c in codes]
    blocks = [
        scale_block(np.ascontiguousarray(s[:, 4 * step : 4 * step + 4]))
        for step in range(2)
        for s in scales
    ]
    return launch(product(a, b.T), words(*map(columns, packed), *blocks))


@case("cute")
def mxfp8(meta: Any) -> Launch:
    """Scales 2^-2 … 2^2 and small integers: the sums are exact."""
    r, k = rng(), 128
    values = [small(r, (rows, k), "f4").astype(E4M3) for rows in (128, 64)]
    scales = [np.exp2(r.integers(-2, 3, (rows, 4))).astype("f4").astype(E8M0) for rows in (128, 64)]
    a, b = (_scaled(v, s, 32) for v, s in zip(values, scales, strict=True))
    return launch(product(a, b.T), words(*map(columns, values), *map(scale_block, scales)))


@case("cute")
def matmul_pair(meta: Any) -> Launch:
    r = rng()
    a, b = small(r, (256, 64), "f2"), small(r, (64, 64), "f2")
    image = np.concatenate(
        [words(columns(a[128 * c :][:128]), columns(b[32 * c :][:32])) for c in range(2)]
    )
    return launch(product(a, b.T), image, ctas=2, cluster=(2, 1, 1))

"""GEMVs of full size: random NVFP4 data, the kernel run from PTX, and the reference."""

from __future__ import annotations

import time
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import tcir

from . import block_scaled_exact as exact
from .block_scaled_text import BlockScaled

E2M1 = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)


@dataclass(frozen=True)
class Full:
    """A problem of `batch` vectors, and the CTAs and stages of the default schedule."""

    m: int
    k: int
    batch: int
    ctas: int
    stage: int

    @property
    def case(self) -> BlockScaled:
        """The case as text."""
        return BlockScaled(
            m=self.m,
            k=self.k,
            batch=self.batch if self.batch > 1 else None,
            out="f16",
            alpha="after",
        )

    def inputs(self) -> list[np.ndarray]:
        """Packed codes, and scales with all bits but those of NaN."""
        rng = np.random.default_rng(self.m)
        outer = [self.batch] if self.batch > 1 else []
        found = []
        for rows in ([self.m], []):
            found.append(rng.integers(0, 256, [*outer, *rows, self.k // 2]).astype(np.uint8))
            codes = rng.integers(0, 0x68, [*outer, *rows, self.k // 16]).astype(np.uint8)
            found.append(codes.view(ml_dtypes.float8_e4m3fn))
        return [*found, np.array(2.0**-9, np.float32), np.array(0.75, np.float32)]

    def wide(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Elements and scales as float64 ``[L, rows, …]``."""
        a, sa, b, sb = inputs[:4]

        def values(packed: np.ndarray) -> np.ndarray:
            pairs = np.stack([packed & 15, packed >> 4], -1)
            return E2M1[pairs.reshape(*packed.shape[:-1], -1)]

        shapes = (self.batch, self.m), (self.batch, self.m), (self.batch, 1), (self.batch, 1)
        raw = values(a), sa.astype(np.float64), values(b), sb.astype(np.float64)
        return [x.reshape(*shape, -1) for x, shape in zip(raw, shapes, strict=True)]


FULL = (
    Full(7168, 16384, 1, ctas=148, stage=256),
    Full(4096, 7168, 8, ctas=148, stage=256),
    Full(7168, 2048, 4, ctas=148, stage=128),
)


def check(full: Full, hazards: str) -> float:
    """Compiles, runs from PTX and compares; seconds of the run."""
    kernel = tcir.compile(full.case.linalg(), pipeline="gemv-padded-n")
    assert kernel.cubin[:4] == b"\x7fELF"
    inputs = full.inputs()
    out = np.zeros([full.batch, full.m] if full.batch > 1 else [full.m], np.float16)
    before = time.perf_counter()
    kernel(*inputs, out, hazards=hazards)
    seconds = time.perf_counter() - before
    alpha = inputs[4] * inputs[5]
    a, sa, b, sb = full.wide(inputs)
    want = exact.gemv(
        a, sa, b, sb, exact.Formats(), ctas=full.ctas, stage=full.stage, alpha=alpha, out="f16"
    )
    assert out.tobytes() == want.tobytes()
    products = np.einsum("lmk,lk->lm", a * sa.repeat(16, -1), (b * sb.repeat(16, -1))[:, 0])
    np.testing.assert_allclose(
        out.astype(np.float64).reshape(products.shape),
        products * float(alpha),
        rtol=1e-3,
        atol=1e-3,
    )
    return seconds

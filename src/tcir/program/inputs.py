"""Inputs by seed: arrays without zeros, different in every image, row, column and channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import ml_dtypes
import numpy as np

from tcir.errors import InputError
from tcir.interp import OutputSpec

Kind = Literal["integers", "random"]
KINDS: tuple[Kind, ...] = ("integers", "random")


def make_inputs(specs: Sequence[OutputSpec], seed: int, kind: Kind) -> list[np.ndarray[Any, Any]]:
    """One array per spec.

    integers: -3 … 3 without 0, so that products, sums (up to 2^24 / 9 of them in f32) and every
              intermediate of a tensor core are exact, and results must agree bit for bit.
    random:   standard normal values rounded to the type, magnitudes kept above 2^-6.
    """
    if kind not in KINDS:
        raise InputError(f"expected inputs of kind {' or '.join(KINDS)}, got '{kind}'")
    generator = np.random.default_rng(seed)
    return [_make(spec, generator, kind) for spec in specs]


def _make(spec: OutputSpec, generator: np.random.Generator, kind: Kind) -> np.ndarray[Any, Any]:
    if spec.dtype == ml_dtypes.float8_e8m0fnu:  # powers of two only, no sign
        return (2.0 ** generator.integers(-2, 3, spec.shape)).astype(spec.dtype)
    if kind == "integers" or spec.dtype.kind in "iub":
        magnitude = generator.integers(1, 4, spec.shape).astype(np.float64)
        signed = spec.dtype.kind not in "ub"
    else:
        magnitude = np.maximum(np.abs(generator.standard_normal(spec.shape)), 2.0**-6)
        signed = True
    signed = signed and not spec.unsigned
    sign = generator.choice([-1.0, 1.0], spec.shape) if signed else np.ones(spec.shape)
    return (sign * magnitude).astype(spec.dtype)


def poison(spec: OutputSpec) -> np.ndarray[Any, Any]:
    """An array of bytes 0xCB: what an output holds before the program writes it."""
    raw = np.full(int(np.prod(spec.shape)) * spec.dtype.itemsize, 0xCB, np.uint8)
    return raw.view(spec.dtype).reshape(spec.shape)

"""One kernel from another compiler: how to launch it and what it must compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Launch:
    """Arguments of one launch and the expected contents of the outputs afterwards.

    want: (array after the run, expected values, absolute tolerance; 0 = every value equal).
    """

    grid: tuple[int, ...]
    args: list[Any]
    want: list[tuple[np.ndarray, Any, float]]
    cluster: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] | None = None  # None: taken from the compiler's metadata
    dynamic_smem: int | None = None


@dataclass(frozen=True)
class Case:
    """`build(metadata)` makes the launch of the kernel that `compiler` compiled as `name`."""

    name: str
    compiler: str
    build: Callable[[dict[str, Any]], Launch] = field(repr=False)


CASES: list[Case] = []


def case(compiler: str, name: str = "") -> Callable[[Callable[..., Launch]], Callable[..., Launch]]:
    """Registers the launch of a kernel under the function's name."""

    def register(build: Callable[..., Launch]) -> Callable[..., Launch]:
        CASES.append(Case(name or build.__name__, compiler, build))
        return build

    return register


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def small(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Small integers: sums of their products are exact in every accumulator, whatever the order."""
    return generator.integers(-4, 5, shape).astype(dtype)


def product(a: Any, b: Any) -> np.ndarray:
    return np.asarray(a, np.float64) @ np.asarray(b, np.float64)

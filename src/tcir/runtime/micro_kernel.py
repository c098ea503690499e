"""The micro-kernels of ``tc-run --selftest``: small kernels that find out how hardware behaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcir.target import DEFAULT_TARGET

Array = np.ndarray[Any, Any]

HEADER = f".version {DEFAULT_TARGET.ptx_version}\n.target {DEFAULT_TARGET.name}\n.address_size 64\n"


@dataclass(frozen=True)
class MicroKernel:
    """One launch of a single CTA, or of a cluster of `ctas`.

    make: returns new arguments, and the arrays among them whose bytes are compared
    then: a second launch, if one launch cannot distinguish all alternatives
    """

    ptx: str
    threads: int
    make: Callable[[], tuple[list[Any], list[Array]]]
    dynamic_smem: int = 0
    then: MicroKernel | None = None
    ctas: int = 1

    @property
    def sizes(self) -> dict[str, Any]:
        """Launch sizes, as arguments of `tcir.run_ptx` and `tcir.runtime.run_cubin`."""
        return {
            "grid": self.ctas,
            "block": self.threads,
            "cluster": self.ctas,
            "dynamic_smem": self.dynamic_smem,
        }

    def launches(self) -> Iterator[MicroKernel]:
        """This launch, and the launches that follow it by `then`."""
        kernel: MicroKernel | None = self
        while kernel is not None:
            yield kernel
            kernel = kernel.then

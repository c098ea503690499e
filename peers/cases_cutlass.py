"""Values and numpy oracles of the CUTLASS examples; the launches are recorded ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from peers.case import Launch, case, product, rng, small
from peers.recorded import Recorded

F16 = np.float16


@case("cutlass", "70_fp16_gemm")
def fp16_gemm(meta: Any) -> Launch:
    """Two CTAs, 256 x 128 x 64, cluster 2 x 2; C and D are column-major."""
    r, run = rng(), Recorded(meta)
    a, b = run.fill(0, small(r, (256, 256), F16)), run.fill(1, small(r, (128, 256), F16))
    return run.launch((run.array(3, "f4", (128, 256)), product(b, a.T), 0))

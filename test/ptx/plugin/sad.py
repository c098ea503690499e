"""An instruction that PTX lacks: a plugin, outside the package."""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.values.elementwise import same_type
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES


@instruction("sad4")
def sad4(d: Decode) -> Op:
    """Four |a - b| of unsigned bytes; with .add, their sum is added to c."""
    if d.take("add") is None:
        raise d.incomplete("only with .add")
    if [kind.name for kind in d.types("u32")] != ["u32"] * 3:
        raise d.malformed("expected .u32.u32.u32")

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        x, y = (v.view(np.uint8).reshape(32, 4).astype(np.int64) for v in (a, b))
        return c + np.abs(x - y).sum(axis=1).astype(np.uint32)

    return same_type(d, run, TYPES["u32"], 3)

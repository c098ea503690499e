"""Rule of `memref.load`: one number from global memory."""

from __future__ import annotations

import numpy as np

from tcir._mlir import ir
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.values import MemRef


@execute("memref.load")
def load(compiler: Compiler, op: ir.OpView) -> Step:
    source_, *indices_ = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)

    def load(frame: Frame) -> None:
        v = frame.values
        source: MemRef = v[source_]
        at = tuple(v[i] for i in indices_)
        if any(not 0 <= i < n for i, n in zip(at, source.shape, strict=True)):
            raise frame.cta_run.error(
                "access-outside-tensor", f"expected an index in {source.shape}, got {at}", site
            )
        size = source.dtype.itemsize
        first = int(np.ravel_multi_index(at, source.shape)) if at else 0
        address = np.array([source.address + first * size], np.int64)
        raw = frame.agent.memory.load("global", address, size, site=site)
        v[result] = np.ascontiguousarray(raw).view(source.dtype).reshape(-1)[0]

    return load

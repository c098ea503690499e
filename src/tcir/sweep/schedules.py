"""The schedules that `tc-bench compare` tries."""

from __future__ import annotations

from tcir.sweep.space import Combination

_CONVOLUTIONS = (
    "conv-implicit-gemm",
    "conv-smem-offset",
    "conv-shift-reuse{tiling=rows}",
    "conv-shift-reuse{tiling=packed}",
    "conv-shift-reuse{tiling=linear}",
    "conv-shift-reuse{halo=refresh}",
)
_PRODUCTS = (
    "gemm",
    "gemm{swap=always}",
    "gemm{store=tma}",
    "gemm{persistent=true}",
    "gemm{persistent=true store=tma}",
    "gemm{persistent=true scheduler=clc}",
    "gemm{cluster=2x1}",
    "gemm{cta-group=2}",
    "gemm{cta-group=2 persistent=true store=tma}",
    "gemm{split-k=2}",
    "gemm{split-k=4}",
    "matmul-warp{copy=tma}",
    "matmul-warp{copy=cp.async}",
    "gemv-padded-n{schedule=single}",
    "gemv-padded-n{m-tile=256 pad-n=32}",
    "gemv-padded-n{schedule=split-k}",
    "gemv-padded-n{schedule=stream-k}",
    "gemv-simt",
    "simt-elementwise",
)
"""Schedules: pipelines with those options that select another program, not another size."""


def schedules() -> list[Combination]:
    """Returns all schedules. If a schedule does not accept the program, its row in the result has
    the error.
    """
    return [Combination.parse(text) for text in (*_CONVOLUTIONS, *_PRODUCTS)]

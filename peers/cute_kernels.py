"""CuTe DSL kernels: `python cute_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json."""

import json
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor

COMPILED: list[tuple[str, Callable[[], Any]]] = []


def kernel(function: Callable[[], Any]) -> Callable[[], Any]:
    """Registers a function that compiles a kernel."""
    COMPILED.append((function.__name__, function))
    return function


def tensor(dtype: Any, *shape: int) -> Any:
    """A row-major tensor of static shape: such a parameter is a bare pointer."""
    order = tuple(reversed(range(len(shape))))
    return make_fake_compact_tensor(dtype, shape, stride_order=order, assumed_align=16)


def build(function: Any, *args: Any) -> Any:
    return cute.compile(function, *args, options="--gpu-arch sm_100a --keep-ptx")


F16, F32, I32 = cutlass.Float16, cutlass.Float32, cutlass.Int32


# --- elementwise ------------------------------------------------------------------------------


@cute.kernel
def _axpy(x: cute.Tensor, y: cute.Tensor, alpha: F32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 128 + thread
    if i < cute.size(x):
        y[i] = alpha * x[i] + y[i]


@cute.jit
def _axpy_host(x: cute.Tensor, y: cute.Tensor, alpha: F32):
    _axpy(x, y, alpha).launch(grid=[8, 1, 1], block=[128, 1, 1])


@kernel
def axpy() -> Any:
    return build(_axpy_host, tensor(F32, 1000), tensor(F32, 1000), F32(2.5))


@cute.kernel
def _squash(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    tiled = cute.zipped_divide(x, (8,))
    out = cute.zipped_divide(y, (8,))
    values = tiled[(None, thread)].load().to(F32)
    out[(None, thread)].store(
        (cute.math.tanh(values) * cute.math.rsqrt(values * values + 1.0)).to(F16)
    )


@cute.jit
def _squash_host(x: cute.Tensor, y: cute.Tensor):
    _squash(x, y).launch(grid=[1, 1, 1], block=[128, 1, 1])


@kernel
def vectorised_squash() -> Any:
    return build(_squash_host, tensor(F16, 1024), tensor(F16, 1024))


# --- rows: warp and CTA reductions ------------------------------------------------------------


@cute.kernel
def _softmax(x: cute.Tensor, y: cute.Tensor):
    lane = cute.arch.lane_idx()
    row, _, _ = cute.arch.block_idx()
    values = cute.make_rmem_tensor((8,), F32)
    top = F32(-1e30)
    for n in cutlass.range_constexpr(8):
        values[n] = x[row, n * 32 + lane]
        top = cute.arch.fmax(top, values[n])
    for step in cutlass.range_constexpr(5):
        top = cute.arch.fmax(top, cute.arch.shuffle_sync_bfly(top, offset=1 << step))
    total = F32(0)
    for n in cutlass.range_constexpr(8):
        values[n] = cute.math.exp(values[n] - top)
        total += values[n]
    for step in cutlass.range_constexpr(5):
        total += cute.arch.shuffle_sync_bfly(total, offset=1 << step)
    for n in cutlass.range_constexpr(8):
        y[row, n * 32 + lane] = values[n] / total


@cute.jit
def _softmax_host(x: cute.Tensor, y: cute.Tensor):
    _softmax(x, y).launch(grid=[4, 1, 1], block=[32, 1, 1])


@kernel
def warp_softmax() -> Any:
    return build(_softmax_host, tensor(F32, 4, 256), tensor(F32, 4, 256))


@cute.kernel
def _transpose(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(F32, cute.make_layout((32, 32), stride=(33, 1)), 16)
    column, first = thread % 32, thread // 32
    for n in cutlass.range_constexpr(8):
        row = first + 4 * n
        tile[row, column] = x[by * 32 + row, bx * 32 + column]
    cute.arch.sync_threads()
    for n in cutlass.range_constexpr(8):
        row = first + 4 * n
        y[bx * 32 + row, by * 32 + column] = tile[column, row]


@cute.jit
def _transpose_host(x: cute.Tensor, y: cute.Tensor):
    _transpose(x, y).launch(grid=[3, 2, 1], block=[128, 1, 1])


@kernel
def shared_transpose() -> Any:
    return build(_transpose_host, tensor(F32, 64, 96), tensor(F32, 96, 64))


@cute.kernel
def _gemv(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    row, lane = block * 4 + thread // 32, thread % 32
    total = F32(0)
    for k in cutlass.range(8):
        total += w[row, k * 32 + lane].to(F32) * x[k * 32 + lane].to(F32)
    for step in cutlass.range_constexpr(5):
        total += cute.arch.shuffle_sync_bfly(total, offset=1 << step)
    if lane == 0:
        y[row] = total


@cute.jit
def _gemv_host(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    _gemv(w, x, y).launch(grid=[16, 1, 1], block=[128, 1, 1])


@kernel
def gemv() -> Any:
    return build(_gemv_host, tensor(F16, 64, 256), tensor(F16, 256), tensor(F32, 64))


def write(out: Path, name: str, compiled: Any) -> None:
    ptx = compiled.__ptx__
    entry = re.search(r"\.entry\s+(\w+)", ptx)
    threads = re.search(r"\.reqntid\s+(\d+)(?:,\s*(\d+),\s*(\d+))?", ptx)
    assert entry is not None and threads is not None
    block = [int(n or 1) for n in threads.groups()]
    record = {"entry": entry[1], "block": block}
    (out / f"{name}.ptx").write_text(ptx)
    (out / f"{name}.json").write_text(json.dumps(record))


def compile_all(out: Path) -> None:
    import cute_blackwell
    import cute_tensor_core
    import cute_warp

    elsewhere = [*cute_tensor_core.KERNELS, *cute_warp.KERNELS, *cute_blackwell.KERNELS]
    for name, function in [*COMPILED, *elsewhere]:
        try:
            write(out, name, function())
        except Exception as error:
            traceback.print_exc()
            (out / f"{name}.json").write_text(json.dumps({"error": f"{error!r}"[:300]}))


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]))

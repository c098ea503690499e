"""QuACK: `python quack_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json.

The CuTe DSL kernels of the package quack-kernels as shipped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cute_recording
import torch

KERNELS: dict[str, Callable[[], tuple[Any, list[Any]]]] = {}
F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32


def kernel(function: Callable[[], Any]) -> Callable[[], Any]:
    """Registers a function that gives a kernel object and its arguments, tensors among them."""
    KERNELS[function.__name__] = function
    return function


def some(*shape: int, dtype: Any = F32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


def numeric(dtype: Any) -> Any:
    import cutlass

    return {F16: cutlass.Float16, BF16: cutlass.BFloat16, F32: cutlass.Float32}[dtype]


def _softmax(rows: int, columns: int, dtype: Any, online: bool = True) -> Any:
    from quack.softmax import Softmax

    x = some(rows, columns, dtype=dtype)
    return Softmax(numeric(dtype), columns, online), [x, torch.zeros_like(x)]


@kernel
def softmax_f32() -> Any:
    return _softmax(8, 512, F32)


@kernel
def softmax_bf16() -> Any:
    """Two passes: the largest, then the sum."""
    return _softmax(4, 1000, BF16, online=False)


@kernel
def softmax_wide() -> Any:
    """Rows of two warps."""
    return _softmax(2, 4096, F16)


@kernel
def softmax_backward() -> Any:
    from quack.softmax import SoftmaxBackward

    y, dy = some(4, 512).softmax(-1), some(4, 512)
    return SoftmaxBackward(numeric(F32), 512), [dy, y, torch.zeros_like(y)]


def _norm(x: Any, w: Any, b: Any, residual: Any, **options: Any) -> Any:
    from quack.rmsnorm import RMSNorm

    rows, columns = x.shape
    layer = bool(options.get("is_layernorm"))
    total = torch.zeros_like(x) if residual is not None else None
    mean = torch.zeros(rows) if layer else None
    outputs = [torch.zeros_like(x), total, torch.zeros(rows), mean]
    import cutlass

    arguments = [x, w, b, residual, *outputs, cutlass.Float32(1e-6)]
    return RMSNorm(numeric(x.dtype), columns, **options), arguments


@kernel
def rms_norm_bf16() -> Any:
    return _norm(some(4, 768, dtype=BF16), some(768), None, None)


@kernel
def rms_norm_residual() -> Any:
    return _norm(some(4, 512), some(512), some(512), some(4, 512))


@kernel
def rms_norm_gemma() -> Any:
    return _norm(some(2, 2048, dtype=F16), some(2048), None, None, weight_offset=1.0)


@kernel
def layer_norm() -> Any:
    return _norm(some(4, 512), some(512), some(512), None, is_layernorm=True)


def _target() -> torch.Tensor:
    return torch.tensor([3, 999, -100, 500])


@kernel
def cross_entropy() -> Any:
    import cutlass
    from quack.cross_entropy import CrossEntropy

    x, target = some(4, 1000), _target()
    arguments = [x, target, None, torch.zeros(4), torch.zeros(4), None, None]
    return CrossEntropy(numeric(F32), 1000), [*arguments, cutlass.Int32(-100)]


@kernel
def cross_entropy_gradient() -> Any:
    """The loss and the gradient in one launch."""
    import cutlass
    from quack.cross_entropy import CrossEntropy

    x, target = some(4, 1000, dtype=BF16), _target()
    outputs = [torch.zeros(4), torch.zeros(4), torch.zeros_like(x)]
    arguments = [x, target, None, *outputs, None, cutlass.Int32(-100)]
    return CrossEntropy(numeric(BF16), 1000, online_softmax=False), arguments


@kernel
def top_k() -> Any:
    from quack.topk import TopK

    x, values = some(4, 256), torch.zeros(4, 16)
    return TopK(numeric(F32), 256, 16), [x, values, torch.zeros(4, 16, dtype=torch.int32)]


@kernel
def top_k_softmax() -> Any:
    from quack.topk import TopK

    x, values = some(4, 128, dtype=BF16), torch.zeros(4, 8, dtype=BF16)
    return TopK(numeric(BF16), 128, 8, softmax=True), [
        x,
        values,
        torch.zeros(4, 8, dtype=torch.int32),
    ]


def make(driver: Any, name: str) -> tuple[str, Any]:
    """Compiled for tensors of a GPU: a copy to shared memory wants a pointer to global memory."""
    from cutlass.cute.runtime import from_dlpack, make_fake_tensor

    torch.manual_seed(1)
    made, arguments = KERNELS[name]()
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    args, like = list(arguments), list(arguments)
    for place, a in enumerate(arguments):
        if isinstance(a, torch.Tensor):
            args[place] = from_dlpack(a, assumed_align=16)
            like[place] = make_fake_tensor(
                args[place].element_type, tuple(a.shape), stride=a.stride(), assumed_align=16
            )
    return cute_recording.launch(driver, made, args, tensors, like)


if __name__ == "__main__":
    cute_recording.record(sys.argv[2:] or KERNELS, make, Path(sys.argv[1]))

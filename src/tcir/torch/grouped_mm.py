"""`torch.ops.tcir.grouped_mm` multiplies each group of rows by its own matrix (mixture of experts).

In exported graphs it replaces the ops ``grouped_mm`` of PyTorch and of transformers."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch.fx.node import map_arg

from tcir.errors import InputError
from tcir.kernel import Kernel
from tcir.session.entry import compile
from tcir.torch.aten import aten
from tcir.torch.exported import BY_NAME, DECOMPOSITIONS
from tcir.torch.launching import KernelLauncher
from tcir.torch.lowering import OWN
from tcir.torch.tensors import target_of

NAME = "gemm"
"""Pipeline of the kernels."""
KINDS = {torch.float16: "f16", torch.bfloat16: "bf16"}
ALIGNED = 8
"""Elements of 16 bits in 16 bytes, of which TMA's strides are multiples."""


class _Shapes(NamedTuple):
    """What the kernel depends on; `order` is that of the matrices' dimensions in memory."""

    rows: int
    k: int
    n: int
    groups: int
    kind: torch.dtype
    order: str


@torch.library.custom_op("tcir::grouped_mm", mutates_args=(), device_types=("cpu", "cuda"))
def grouped_mm(x: torch.Tensor, weight: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Multiplies each group of rows by its own matrix, simulated or on a GPU; compiles once for
    tensors of these shapes.

    x:      [S, K] of f16 or bf16, one group after the other
    weight: [G, K, N] of the same type; either it or its transpose is contiguous
    sizes:  [G] of i32, the number of rows of each group

    Returns [S, N] of the same type, with sums in f32 that are rounded once. Rows that belong to no
    group are undefined.
    InputError for shapes or types that the kernel does not support: K and N must be multiples of 8,
    since TMA's strides are multiples of 16 bytes.
    """
    if problem := _problem(x, weight, sizes):
        raise InputError(f"tcir.grouped_mm: {problem}")
    shapes = _shapes(x, weight, sizes)
    matrices = weight.mT if shapes.order == "nk" else weight
    given = [x.contiguous(), matrices.contiguous(), sizes.contiguous()]
    (result,) = _launcher(shapes, target_of([x]))(given)
    return result


@grouped_mm.register_fake
def _(x: torch.Tensor, weight: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    return x.new_empty((x.shape[0], weight.shape[2]))


def _problem(x: torch.Tensor, weight: torch.Tensor, sizes: torch.Tensor) -> str:
    """Why the kernel does not support these tensors; "" if it does."""
    if x.ndim != 2 or weight.ndim != 3 or x.shape[1] != weight.shape[1]:
        return (
            f"expected x of [S, K] and weight of [G, K, N], got {list(x.shape)} and "
            f"{list(weight.shape)}"
        )
    if x.dtype not in KINDS or weight.dtype != x.dtype:
        return (
            "expected x and weight of float16, or both of bfloat16, the types that the tensor core "
            f"multiplies, got {str(x.dtype)[6:]} and {str(weight.dtype)[6:]}"
        )
    if sizes.shape != weight.shape[:1] or sizes.dtype != torch.int32:
        return (
            f"expected sizes of int32, [{weight.shape[0]}], one for each matrix, got "
            f"{list(sizes.shape)} of {str(sizes.dtype)[6:]}"
        )
    if not x.shape[0] or not weight.shape[0] or x.shape[1] % ALIGNED or weight.shape[2] % ALIGNED:
        return (
            f"expected rows and matrices, and K and N that are multiples of {ALIGNED}, since TMA's "
            f"strides are multiples of 16 bytes, got x of {list(x.shape)} and weight of "
            f"{list(weight.shape)}"
        )
    return ""


def _shapes(x: torch.Tensor, weight: torch.Tensor, _: torch.Tensor) -> _Shapes:
    order = "nk" if weight.mT.is_contiguous() else "kn"
    return _Shapes(len(x), x.shape[1], weight.shape[2], len(weight), x.dtype, order)


def _program(shapes: _Shapes) -> str:
    """The product as MLIR."""
    kind, inner = KINDS[shapes.kind], (shapes.n, shapes.k)
    rows, columns = inner if shapes.order == "nk" else reversed(inner)
    x = f"tensor<{shapes.rows}x{shapes.k}x{kind}>"
    weight = f"tensor<{shapes.groups}x{rows}x{columns}x{kind}>"
    sizes = f"tensor<{shapes.groups}xi32>"
    result = f"tensor<{shapes.rows}x{shapes.n}x{kind}>"
    return f"""
func.func @grouped_mm(%x: {x}, %weight: {weight}, %sizes: {sizes}) -> {result} {{
  %r = "tc.grouped_matmul"(%x, %weight, %sizes) {{a_layout = "mk", b_layout = "{shapes.order}"}}
      : ({x}, {weight}, {sizes}) -> {result}
  return %r : {result}
}}
"""


@lru_cache(maxsize=64)
def _compiled(shapes: _Shapes, target: str) -> Kernel:
    """The kernel, compiled once for arguments of these shapes and types."""
    return compile(_program(shapes), NAME, target=target)


@lru_cache(maxsize=64)
def _launcher(shapes: _Shapes, target: str) -> KernelLauncher:
    return KernelLauncher(_compiled(shapes, target))


def _lowered(node: torch.fx.Node, target: str) -> tuple[Kernel, str, str]:
    """Kernel of a call in a graph, its program and the text of its pipeline."""
    args = map_arg(node.args, lambda each: each.meta["val"])
    shapes = _shapes(*args)
    return _compiled(shapes, target), _program(shapes), NAME


OWN[torch.ops.tcir.grouped_mm.default] = _lowered


def _of_ends(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> object:
    """The product of groups that end after `ends` rows; rows of no group are 0, by ops that join
    the launch of what reads them."""
    ends = ends.to(torch.int32)
    sizes = ends - torch.nn.functional.pad(ends, (1, 0))[:-1]
    if _problem(x, weight, sizes):
        return NotImplemented
    product = torch.ops.tcir.grouped_mm(x, weight, sizes)
    within = torch.arange(len(x), device=x.device) < ends[-1]
    return torch.where(within[:, None], product, 0.0)


def _grouped_mm(
    x: torch.Tensor,
    weight: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> object:
    """PyTorch's op, of rows of a matrix by a matrix for each group."""
    if offs is None or bias is not None or out_dtype not in (None, x.dtype):
        return NotImplemented
    return _of_ends(x, weight, offs)


DECOMPOSITIONS[aten._grouped_mm.default] = _grouped_mm
BY_NAME["transformers::grouped_mm_fallback"] = _of_ends

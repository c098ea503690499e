"""Checks the import: compares a part in PyTorch with the imported `linalg` program."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map

from tcir.errors import Error
from tcir.imported import check
from tcir.imported.check import ProgramOrigin
from tcir.interp.types import Array
from tcir.torch.tensors import array_of, as_bytes, tensor_of
from tcir.validation.against_f64 import Compared, compare
from tcir.validation.report import Line

NAME = "PyTorch → linalg"
REFERENCE = "eager PyTorch"


def checked(
    part: torch.fx.GraphModule, mlir: str, seed: int = 0, known: Sequence[check.Executed] = ()
) -> Line:
    """Returns the line of a report that compares the results of `mlir` with the part in PyTorch, in
    f64.

    known: further arguments, besides the ones that are drawn, with the results that `mlir` computed
        for them

    The line is `different` if NaN and infinities are not where PyTorch has them, or if the error is
    too large. The limit is 1.5 times the error of PyTorch in the part's own types, plus one
    rounding of the largest result.
    """
    reference = _stable(part)
    wide = _wide(reference)
    places = [node for node in part.graph.nodes if node.op == "placeholder"]
    kinds = [node.meta["val"].dtype for node in places]

    def exact(given: Sequence[Array]) -> list[Array]:
        return _results(wide, map(_f64, _tensors(given, kinds)))

    def own(given: Sequence[Array]) -> list[Array]:
        return _results(reference, _tensors(given, kinds))

    return check.checked(
        ProgramOrigin(NAME, REFERENCE, exact, own, roundings={}), mlir, seed, known
    )


def compared(
    mine: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor, more: float = 0.0
) -> Compared:
    """Compares `mine` with eager PyTorch's result in the part's own types and with its result in
    f64; see `tcir.validation.against_f64.compare`.
    """
    return compare(array_of(mine), array_of(theirs), array_of(exact), REFERENCE, more)


def _tensors(given: Sequence[Array], kinds: Sequence[torch.dtype]) -> list[torch.Tensor]:
    # A copy in PyTorch's memory, to whose alignment some of its kernels trust.
    tensors = [tensor_of(np.array(each)).clone() for each in given]
    return [as_bytes(*pair) for pair in zip(tensors, kinds, strict=True)]


def _results(part: torch.fx.GraphModule, given: Iterable[object]) -> list[Array]:
    """The part's results as arrays. `Error` if PyTorch computes none, as for an op that has no
    f64 version."""
    try:
        results = part(*given)
    except (RuntimeError, NotImplementedError) as error:
        raise Error(str(error).splitlines()[0]) from error
    return arrays_of(results)


def arrays_of(results: object) -> list[Array]:
    """The tensors among nested results, as arrays."""
    leaves = tree_leaves(results)
    return [array_of(as_bytes(each)) for each in leaves if isinstance(each, torch.Tensor)]


def _stable(part: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The part with stable sorts, since PyTorch does not define the order of equal elements, and
    with views that also work on results whose strides differ in another type."""
    stable = copy.deepcopy(part)
    for node in stable.graph.nodes:
        node.target = REPLACED.get(node.target, node.target)
        if node.target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            node.target = torch.ops.aten.reshape.default
    stable.recompile()
    return stable


def _topk(
    x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = torch.sort(x, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)


def _sorted(
    x: torch.Tensor, dim: int = -1, descending: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = torch.sort(x, dim=dim, descending=descending, stable=True)
    return values, indices


REPLACED: dict[object, Callable[..., object]] = {
    torch.ops.aten.sort.default: _sorted,
    torch.ops.aten.topk.default: _topk,
}
"""Stable versions of ops whose order of equal elements PyTorch does not define."""


def _scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    *_: object,
) -> torch.Tensor:
    result = a @ b * scale_a * scale_b
    return result if bias is None else result + bias


def _int8pack_mm(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return x @ weight.to(x.dtype).t() * scales


WIDE: dict[object, Callable[..., object]] = {
    torch.ops.aten._scaled_mm.default: _scaled_mm,
    torch.ops.aten._weight_int8pack_mm.default: _int8pack_mm,
}
"""Replacements for ops that PyTorch does not have in f64."""


def _f64(value: object) -> object:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value


def wide_type(value: object) -> object:
    """Returns f64 for a tensor of another floating-point type; returns other values unchanged."""
    floating = isinstance(value, torch.dtype) and value.is_floating_point
    return torch.float64 if floating else value


def _wide(part: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The part with every floating-point type replaced by f64."""
    wide = copy.deepcopy(part).double()

    for node in wide.graph.nodes:
        node.target = WIDE.get(node.target, node.target)
        node.args = tree_map(wide_type, node.args)
        node.kwargs = tree_map(wide_type, node.kwargs)
    wide.recompile()
    return wide

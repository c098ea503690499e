"""Finds slices of an input that affect separate results, by changing one slice at a time.

In most programs each row of the first input affects one row of the result, and each column of the
last input, the weights, one column. A value placed in such a slice affects some results and no
others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import ml_dtypes
import numpy as np

from tcir._mlir import tensor
from tcir.interp import OutputSpec
from tcir.interp.types import Array, is_float
from tcir.program.access import product_of
from tcir.program.factors import inputs_of
from tcir.program.memory_image import PACKED_BITS

if TYPE_CHECKING:
    from tcir._mlir import ir

Run: TypeAlias = Callable[[list[Array]], "list[Array] | None"]
"""Function that runs the program on inputs and returns its results; None if it cannot be executed
on them."""
CHANGE = -8
"""Factor by which one slice is multiplied to find the results that depend on it."""
MOST_WORK = 1 << 28
"""Limit on products and elements of all executions that search for slices."""


@dataclass(frozen=True)
class Slices:
    """The slices of an input.

    axes:  dimensions along which each index is a slice; empty: the input is one slice
    exact: whether no result depends on two slices
    times_filling: whether the input is multiplied by values that a pad or an insertion adds
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...] = ()
    exact: bool = False
    times_filling: bool = False

    @property
    def count(self) -> int:
        """Number of slices."""
        return math.prod(self.shape[axis] for axis in self.axes)

    def places(self) -> Iterator[tuple[int | slice, ...]]:
        """Yields the index of each slice."""
        for point in np.ndindex(*(self.shape[axis] for axis in self.axes)):
            at: list[int | slice] = [slice(None)] * len(self.shape)
            for axis, index in zip(self.axes, point, strict=True):
                at[axis] = index
            yield tuple(at)


def is_drawn(spec: OutputSpec) -> bool:
    """Whether an input consists of floats with more than a few exponents. Packed floats and
    f8E8M0FNU do not count.
    """
    packed = PACKED_BITS.get(spec.dtype, 8) < 8 or spec.dtype == ml_dtypes.float8_e8m0fnu
    return is_float(spec.dtype) and not packed


def is_byte(spec: OutputSpec) -> bool:
    """Whether an input consists of bytes that may have any value, and thus are not indices or
    sizes.
    """
    return spec.dtype in (np.int8, np.uint8) and not spec.says_where


def slices_of(
    specs: Sequence[OutputSpec], inputs: list[Array], run: Run, work: int, filtered: set[int]
) -> list[Slices]:
    """Finds, for each input, its slices that affect separate results.

    inputs:   arbitrary inputs, in which all numbers differ
    work:     number of products and elements of one execution
    filtered: indices of inputs, as `times_filling` returns them
    """
    before = run(inputs)
    left = MOST_WORK // max(work, 1) if before is not None else 0
    found = []
    for number, spec in enumerate(specs):
        fractions: dict[int, float] = {}
        for axis, extent in enumerate(spec.shape):
            if extent > 1 and left > 0 and is_drawn(spec):
                left -= 1
                changed = list(inputs)
                changed[number] = array = inputs[number].copy()
                at = (slice(None),) * axis + (extent // 2,)
                array[at] = (array[at].astype(np.float64) * CHANGE).astype(spec.dtype)
                after = run(changed)
                if before is not None and after is not None:
                    fractions[axis] = max(map(_changed, before, after), default=1.0)
        exact = tuple(n for n, part in fractions.items() if part <= 1 / spec.shape[n] + 1e-9)
        fewest = min(fractions, key=lambda n: fractions[n], default=0)
        some = (fewest,) if fractions.get(fewest, 1.0) <= 1 / 2 else ()
        axes = exact or some
        found.append(Slices(tuple(spec.shape), axes, bool(exact), number in filtered))
    return found


def _changed(before: Array, after: Array) -> float:
    """Returns the fraction of elements that differ."""
    bits = f"u{before.dtype.itemsize}"
    one, other = (np.ascontiguousarray(each).view(bits) for each in (before, after))
    return float((one != other).mean()) if one.size else 0.0


def times_filling(block: ir.Block) -> set[int]:
    """Returns the indices of the inputs that are multiplied by values from a pad or an insertion.

    Whether a kernel executes these products depends on its schedule
    (docs/explanation/convolution.md, "0 · inf").
    """
    arguments, found = inputs_of(block), set[int]()
    for op in (each.operation for each in block):
        if (product := product_of(op)) is None:
            continue
        sources = [_sources(value) for value, _ in product.factors]
        for number, (_, filled) in enumerate(sources):
            if filled:
                others = [values for n, (values, _) in enumerate(sources) if n != number]
                found |= {arguments.index(v) for vs in others for v in vs if v in arguments}
    return found


def _sources(value: ir.Value) -> tuple[list[ir.Value], bool]:
    """Returns the arguments that a tensor is computed from, and whether a pad or an insertion is
    among the ops."""
    from tcir._mlir import ir

    seen, arguments, filled = [value], list[ir.Value](), False
    for each in seen:
        if isinstance(each.owner, ir.Block):
            arguments.append(each)
            continue
        op = each.owner.operation
        filled |= isinstance(op.opview, tensor.PadOp | tensor.InsertSliceOp)
        inner = [op, *(o.operation for r in op.regions for b in r for o in b)]
        seen += [v for o in inner for v in o.operands if v not in seen]
    return arguments, filled

"""`copy`, `fill` and `gemm` on tensors that have memory (an engine): their meaning, executed with
numpy.

These are CuTe's algorithms (NVIDIA/cutlass, include/cute/algorithm). If several threads execute an
instruction together, it takes the tensors of all these threads, in order of thread number. A kernel
written in this way runs all threads in lockstep, statement by statement; `Tensor.view` selects the
elements of a statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .int_tuple import LayoutError
from .layout import Layout
from .swizzle import Swizzle
from .tensor import Tensor
from .tile import product_each
from .tiled_copy import TiledCopy
from .tiled_mma import TiledMma

Array = np.ndarray[Any, Any]


def make_tensor(
    memory: Array | DTypeLike, layout: Layout | None = None, swizzle: Swizzle | None = None
) -> Tensor:
    """Returns a tensor that shares ``memory`` if it is an array, or has new memory of zeros if it
    is a type.

    Without a ``layout``, the tensor has the array's strides. Raises `LayoutError` for an array with
    gaps, or an array that is too small for the layout.
    """
    if not isinstance(memory, np.ndarray):
        if layout is None:
            raise LayoutError(f"make_tensor: expected a layout for new memory of {memory}")
        kind = np.dtype(memory)
        period = 1 << (swizzle.bits + swizzle.base + swizzle.shift) if swizzle else 1
        size = -(-layout.cosize * kind.itemsize // period) * period // kind.itemsize
        memory = np.zeros(size, kind)
    elif layout is None:
        steps = tuple(step // memory.itemsize for step in memory.strides)
        layout = Layout(memory.shape, steps)
    flat = memory.reshape(-1, order="A")
    if not np.shares_memory(flat, memory):
        raise LayoutError(
            f"make_tensor: expected an array without gaps, got strides of {memory.strides} bytes "
            f"for shape {memory.shape}: give the array it is a part of, and a layout"
        )
    tensor = Tensor(layout, 0, 8 * memory.itemsize, swizzle, engine=flat)
    _positions(tensor)
    return tensor


def fill(tensor: Tensor, value: float) -> None:
    """Sets every element of ``tensor`` to ``value``."""
    _engine(tensor)[_positions(tensor)] = value


def copy(
    source: Tensor | Sequence[Tensor],
    destination: Tensor | Sequence[Tensor],
    tiled: TiledCopy | None = None,
) -> None:
    """Does ``destination(i) = source(i)`` for every linear index, converted as in an assignment.

    With ``tiled``, the instruction of this tiled copy copies the tensors that ``partition_S`` (or
    ``retile_S``) and ``partition_D`` (or ``retile_D``) returned. They are those of one thread or,
    if the instruction is collective (``ldmatrix``), those of all threads. Instructions move bits,
    so source and destination must have the same type.
    """
    sources = [source] if isinstance(source, Tensor) else list(source)
    destinations = [destination] if isinstance(destination, Tensor) else list(destination)
    if len(sources) != len(destinations):
        raise LayoutError(
            f"copy: expected as many sources as destinations, got {len(sources)} and "
            f"{len(destinations)}"
        )
    if tiled is not None:
        _execute_copy(sources, destinations, tiled)
        return
    for one, other in zip(sources, destinations):
        if one.size != other.size:
            raise LayoutError(
                f"copy: expected tensors of equal size, got {one.layout} of {one.size} elements "
                f"and {other.layout} of {other.size}"
            )
        _write(other, _read(one), "copy")


def _execute_copy(sources: list[Tensor], destinations: list[Tensor], tiled: TiledCopy) -> None:
    atom = tiled.atom
    together = atom.operation.threads
    if len(sources) % together:
        raise LayoutError(
            f"copy: {atom.name} is executed by {together} threads: expected the tensors of all of "
            f"them, got {len(sources)}"
        )
    given, taken = _table(atom.src), _table(atom.dst)
    for first in range(0, len(sources), together):
        threads = range(first, first + together)
        read = [_read(sources[t]).reshape(-1, given.shape[1]) for t in threads]
        moved = np.zeros((len(read[0]), atom.src.cosize), read[0].dtype)
        for thread, values in enumerate(read):
            moved[:, given[thread]] = values
        for thread, values in enumerate(taken):
            target = destinations[first + thread]
            if _engine(target).dtype != moved.dtype or target.size != len(moved) * len(values):
                raise LayoutError(
                    f"copy: {atom.name} moves bits: expected {len(moved) * len(values)} elements "
                    f"of {moved.dtype}, got {target.size} of {_engine(target).dtype}; copy to "
                    "registers of the same type and convert there, by copy without an instruction"
                )
            _write(target, moved[:, values].reshape(-1), atom.name)


def gemm(
    a: Tensor | Sequence[Tensor],
    b: Tensor | Sequence[Tensor],
    c: Tensor | Sequence[Tensor],
    mma: TiledMma | None = None,
) -> None:
    """Does ``c(m, n) += sum over k of a(m, k) b(n, k)``; without k, ``c(m, n) += a(m) b(n)``.

    With ``mma``, the instruction of this tiled mma multiplies the fragments of all its threads:
    ``(MMA, MMA_M, MMA_K)`` times ``(MMA, MMA_N, MMA_K)`` to ``(MMA, MMA_M, MMA_N)``, or without
    ``MMA_K``. Each instruction sums exactly (integers in 64 bits, floats in f64) and rounds the
    result to the type of ``c``. This defines which elements are multiplied, and not how a
    generation of tensor cores rounds.
    """
    if mma is None:
        if not (isinstance(a, Tensor) and isinstance(b, Tensor) and isinstance(c, Tensor)):
            raise LayoutError("gemm: expected three tensors, or the mma of these threads")
        _multiply(a, b, c)
        return
    _execute_mma(list(_all(a)), list(_all(b)), list(_all(c)), mma)


def _multiply(a: Tensor, b: Tensor, c: Tensor) -> None:
    left, right = (_matrix(tensor, 2) for tensor in (a, b))
    total = _matrix(c, 2)
    if total.shape != (left.shape[0], right.shape[0]) or left.shape[1:] != right.shape[1:]:
        raise _misfit("(M, K) x (N, K) -> (M, N)", a, b, c)
    total = _exact(total) + _exact(left) @ _exact(right).T
    _write(c, total.reshape(-1, order="F"), "gemm")


def _execute_mma(a: list[Tensor], b: list[Tensor], c: list[Tensor], mma: TiledMma) -> None:
    numbers = sorted(mma.threads.indices())
    if not len(a) == len(b) == len(c) == len(numbers):
        raise LayoutError(
            f"gemm: {mma.atom.name} is executed by all {len(numbers)} threads of the tiled mma "
            f"together: expected a fragment of each, got {len(a)}, {len(b)} and {len(c)}"
        )
    left, right, total = (np.stack([_matrix(t, 3) for t in tensors]) for tensors in (a, b, c))
    tables = [_table(mma.atom.operand(name)[0]) for name in "ABC"]
    values = [array.shape[1] for array in (left, right, total)]
    _, rows, steps = left.shape[1:]
    columns = right.shape[2]
    if (
        values != [table.shape[1] for table in tables]
        or right.shape[3] != steps
        or total.shape[2:] != (rows, columns)
    ):
        held = ", ".join(str(table.shape[1]) for table in tables)
        raise _misfit(
            f"fragments (MMA, M, K) x (MMA, N, K) -> (MMA, M, N) with MMA of {held}",
            a[0],
            b[0],
            c[0],
        )
    m, n, k = mma.atom.shape
    for place in product(*(range(mode.size) for mode in list(mma.threads)[1:])):
        team = [numbers.index(mma.threads(v, *place)) for v in range(mma.threads[0].size)]
        for i, j, step in product(range(rows), range(columns), range(steps)):
            one = _gathered(left[team, :, i, step], tables[0], (m, k))
            other = _gathered(right[team, :, j, step], tables[1], (n, k))
            sums = (one @ other.T).reshape(-1, order="F")[tables[2]]
            total[team, :, i, j] = _exact(total[team, :, i, j]) + sums
    for tensor, result in zip(c, total):
        _write(tensor, result.reshape(-1, order="F"), "gemm")


def _gathered(values: Array, table: Array, extents: tuple[int, int]) -> Array:
    """Returns the matrix whose elements, as named by ``table``, each thread (row of `values`)
    holds."""
    flat = np.zeros(extents[0] * extents[1], values.dtype)
    flat[table] = values
    return _exact(flat).reshape(extents, order="F")


def _misfit(expected: str, a: Tensor, b: Tensor, c: Tensor) -> LayoutError:
    got = " x ".join(str(product_each(tensor.layout)) for tensor in (a, b))
    return LayoutError(f"gemm: expected {expected}, got {got} -> {product_each(c.layout)}")


def _all(tensors: Tensor | Sequence[Tensor]) -> Sequence[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else tensors


def _table(layout: Layout) -> Array:
    """Returns ``(thread, value) -> element`` as an array."""
    return np.array(layout.indices()).reshape(product_each(layout), order="F")


def _exact(values: Array) -> Array:
    return values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)


def _matrix(tensor: Tensor, rank: int) -> Array:
    """Returns the values by coordinate of the top-level modes; absent modes have extent 1."""
    extents = product_each(tensor.layout)
    if len(extents) > rank:
        raise LayoutError(f"gemm: expected at most {rank} modes, got {tensor.layout}")
    padded = (*extents, *(1,) * (rank - len(extents)))
    return _read(tensor).reshape(padded, order="F")


def _engine(tensor: Tensor) -> Array:
    if tensor.engine is None:
        raise LayoutError(
            f"expected a tensor with an engine, got the layout {tensor.layout} alone; make_tensor "
            "gives it memory"
        )
    return tensor.engine


def _positions(tensor: Tensor) -> Array:
    """Returns the positions of the elements in the engine, in domain order."""
    index = np.zeros(1, np.int64)
    for extent, step in tensor.layout.leaves:
        index = (np.arange(extent)[:, None] * step + index).reshape(-1)
    bits = 8 * tensor.start + (tensor.offset + index) * tensor.element_bits
    if tensor.swizzle:
        bits = tensor.swizzle(bits // 8) * 8 + bits % 8  # type: ignore[arg-type]
    places: Array = bits // tensor.element_bits
    outside = np.flatnonzero((places < 0) | (places >= _engine(tensor).size))
    if outside.size:
        first = int(outside[0])
        raise LayoutError(
            f"expected elements of a memory of {_engine(tensor).size}, but coordinate "
            f"{tensor.layout.coordinate(first)} of {tensor.layout} is element {places[first]}"
        )
    return places


def _read(tensor: Tensor) -> Array:
    return _engine(tensor)[_positions(tensor)]


def _write(tensor: Tensor, values: Array, use: str) -> None:
    tensor.check_injective(f"destination of {use}")
    _engine(tensor)[_positions(tensor)] = values

"""cuSPARSE, computed by numpy: products of sparse matrices and vectors; sums are f64 and are
rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcir.cuda.libraries.functions import HostCall, Objects, array, function, succeeds

NOT_SUPPORTED = 10
_FLOATS = {0: "<f4", 1: "<f8"}
"""Types by cudaDataType."""
_INDICES = {2: "<i4", 3: "<i8"}


@dataclass(frozen=True)
class Csr:
    """A matrix in compressed rows: addresses of the row starts, columns and values."""

    rows: int
    count: int
    addresses: tuple[int, int, int]
    kinds: tuple[str, str, str]
    base: int

    def times(self, x: np.ndarray) -> np.ndarray:
        """The product with a vector."""
        counts = self.rows + 1, self.count, self.count
        starts, columns, values = map(array, self.addresses, counts, self.kinds)
        products = values.astype("f8") * x[columns - self.base]
        row = np.repeat(np.arange(self.rows), np.diff(starts))
        return np.bincount(row, products, self.rows)


_KNOWN: Objects[Csr | np.ndarray | None] = Objects()


function("cusparseCreate", "cusparseCreateMatDescr", given="out:p")(
    lambda call: _KNOWN.made(call.out, None)
)
succeeds("cusparseDestroy", "cusparseDestroyMatDescr", given="handle:p")
succeeds("cusparseDestroySpMat", "cusparseDestroyDnVec", given="handle:p")
succeeds("cusparseSetMatType", "cusparseSetMatIndexBase", given="handle:p value:i")
succeeds("cusparseSetPointerMode", given="handle:p mode:i")
succeeds("cusparseSetStream", given="handle:p stream:p")


@function(
    "cusparseCreateCsr",
    given="out:p rows:l columns:l count:l starts:p indices:p values:p start_kind:i index_kind:i "
    "base:i kind:i",
)
def create_csr(call: HostCall) -> int:
    """A matrix over the caller's arrays."""
    if call.kind not in _FLOATS or not {call.start_kind, call.index_kind} <= _INDICES.keys():
        return NOT_SUPPORTED
    kinds = _INDICES[call.start_kind], _INDICES[call.index_kind], _FLOATS[call.kind]
    places = call.starts, call.indices, call.values
    return _KNOWN.made(call.out, Csr(call.rows, call.count, places, kinds, call.base))


@function("cusparseCreateDnVec", given="out:p size:l values:p kind:i")
def create_vector(call: HostCall) -> int:
    """A dense vector over the caller's array."""
    if call.kind not in _FLOATS:
        return NOT_SUPPORTED
    return _KNOWN.made(call.out, array(call.values, call.size, _FLOATS[call.kind]))


_PRODUCT = "handle:p form:i alpha:p matrix:p x:p beta:p y:p kind:i how:i {}:p"


@function("cusparseSpMV_bufferSize", given=_PRODUCT.format("out"))
def buffer_size(call: HostCall) -> int:
    """Writes the size of a buffer that is not used; programs allocate it, so it is not 0."""
    array(call.out, 1, "<u8")[0] = 256
    return 0


@function("cusparseSpMV", given=_PRODUCT.format("buffer"), waits=True)
def multiply(call: HostCall) -> int:
    """y = alpha A x + beta y."""
    matrix, x, y = (_KNOWN.get(each) for each in (call.matrix, call.x, call.y))
    if call.form or call.kind not in _FLOATS or not isinstance(matrix, Csr):
        return NOT_SUPPORTED
    assert isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    by, kept = (float(array(each, 1, _FLOATS[call.kind])[0]) for each in (call.alpha, call.beta))
    found = by * matrix.times(x.astype("f8"))
    return call.write(y, found + (kept * y.astype("f8") if kept else 0.0))

"""cuBLAS, computed by numpy: sums are f64 and are rounded once to the type of the result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcir.cuda.libraries.functions import (
    HostCall,
    Objects,
    array,
    function,
    matrix,
    strided,
    succeeds,
    text_at,
)

INVALID_VALUE = 7
_HANDLES: Objects[None] = Objects()
_REAL = {"S": "<f4", "D": "<f8"}
_NO_TRANSPOSE, _CONJUGATED = 0, 2
_GEMM = "handle:p ta:i tb:i m:{0} n:{0} k:{0} alpha:p a:p lda:{0} b:p ldb:{0} beta:p c:p ldc:{0}"
_BY_STRIDES = (
    "handle:p ta:i tb:i m:i n:i k:i alpha:p a:p lda:i da:l b:p ldb:i db:l beta:p c:p ldc:i dc:l "
    "count:i"
)

function("cublasCreate_v2", "cublasXtCreate", given="out:p")(
    lambda call: _HANDLES.made(call.out, None)
)
succeeds("cublasDestroy_v2", "cublasXtDestroy", given="handle:p")
succeeds("cublasSetStream_v2", given="handle:p stream:p")
succeeds("cublasSetPointerMode_v2", "cublasSetMathMode", given="handle:p mode:i")
succeeds("cublasSetAtomicsMode", "cublasXtSetBlockDim", given="handle:p mode:i")
succeeds("cublasXtDeviceSelect", given="handle:p count:i devices:p")
succeeds("cublasSetWorkspace_v2", given="handle:p workspace:p bytes:z")
function("cublasGetStatusString", "cublasGetStatusName", given="status:i", text=True)(
    lambda call: text_at(f"status {call.status}" if call.status else "CUBLAS_STATUS_SUCCESS")
)
function("cublasGetVersion_v2", given="handle:p out:p")(
    lambda call: call.write(array(call.out, 1, "<i4"), 130000)
)


@function("cublasSetVector", "cublasGetVector", given="n:i size:i x:p dx:i y:p dy:i", waits=True)
@function(
    "cublasSetVectorAsync",
    "cublasGetVectorAsync",
    given="n:i size:i x:p dx:i y:p dy:i stream:p",
    waits=True,
)
def copy_vector(call: HostCall) -> int:
    """y = x, in elements of `size` bytes."""
    kind = f"V{call.size}"
    source = strided(call.x, call.n, call.dx, kind)
    return call.write(strided(call.y, call.n, call.dy, kind), source)


@function(
    "cublasSetMatrix",
    "cublasGetMatrix",
    given="rows:i columns:i size:i a:p lda:i b:p ldb:i",
    waits=True,
)
@function(
    "cublasSetMatrixAsync",
    "cublasGetMatrixAsync",
    given="rows:i columns:i size:i a:p lda:i b:p ldb:i stream:p",
    waits=True,
)
def copy_matrix(call: HostCall) -> int:
    """b = a, in elements of `size` bytes."""
    kind = f"V{call.size}"
    source = matrix(call.a, call.rows, call.columns, call.lda, kind)
    return call.write(matrix(call.b, call.rows, call.columns, call.ldb, kind), source)


class Real:
    """The cuBLAS functions of one real type, "<f4" or "<f8"."""

    def __init__(self, kind: str) -> None:
        self.kind, self.size = kind, np.dtype(kind).itemsize

    def scalar(self, address: int) -> float:
        """A scalar factor (alpha or beta)."""
        return float(array(address, 1, self.kind)[0])

    def operand(self, form: int, address: int, shape: tuple[int, int], leading: int) -> np.ndarray:
        """A matrix in f64, transposed if `form` requires it; the given shape is that after the
        transposition.
        """
        if form == _NO_TRANSPOSE:
            return matrix(address, *shape, leading, self.kind).astype("f8")
        return matrix(address, *shape[::-1], leading, self.kind).astype("f8").T

    def kept(self, beta: int, out: np.ndarray) -> np.ndarray | float:
        """Returns beta times the old result. If beta is 0, the old result is not read."""
        factor = self.scalar(beta)
        return factor * out.astype("f8") if factor else 0.0

    def vector(self, address: int, n: int, step: int) -> np.ndarray:
        """A vector, f64."""
        return strided(address, n, step, self.kind).astype("f8")

    def product(self, call: HostCall, a: int, b: int, c: int) -> int:
        """c = alpha op(a) op(b) + beta c, of matrices at these addresses."""
        m, n, k = call.m, call.n, call.k
        if not 0 <= min(call.ta, call.tb) <= max(call.ta, call.tb) <= _CONJUGATED:
            return INVALID_VALUE
        x = self.operand(call.ta, a, (m, k), call.lda)
        y = self.operand(call.tb, b, (k, n), call.ldb)
        out = matrix(c, m, n, call.ldc, self.kind)
        return call.write(out, self.scalar(call.alpha) * (x @ y) + self.kept(call.beta, out))

    def gemm(self, call: HostCall) -> int:
        """One product."""
        return self.product(call, call.a, call.b, call.c)

    def batched(self, call: HostCall) -> int:
        """Computes a product for each entry of three tables of addresses."""
        tables = (array(each, call.count, "<u8").tolist() for each in (call.a, call.b, call.c))
        return max((self.product(call, *each) for each in zip(*tables, strict=True)), default=0)

    def by_strides(self, call: HostCall) -> int:
        """Computes products whose matrices are `da`, `db` and `dc` elements apart."""
        places = (
            [
                address + n * step * self.size
                for address, step in ((call.a, call.da), (call.b, call.db), (call.c, call.dc))
            ]
            for n in range(call.count)
        )
        return max((self.product(call, *each) for each in places), default=0)

    def gemv(self, call: HostCall) -> int:
        """y = alpha op(a) x + beta y."""
        if not 0 <= call.form <= _CONJUGATED:
            return INVALID_VALUE
        shape = (call.m, call.n) if call.form == _NO_TRANSPOSE else (call.n, call.m)
        found = self.operand(call.form, call.a, shape, call.lda) @ self.vector(
            call.x, shape[1], call.dx
        )
        out = strided(call.y, shape[0], call.dy, self.kind)
        return call.write(out, self.scalar(call.alpha) * found + self.kept(call.beta, out))

    def axpy(self, call: HostCall) -> int:
        """y = alpha x + y."""
        out = strided(call.y, call.n, call.dy, self.kind)
        return call.write(out, self.scalar(call.alpha) * self.vector(call.x, call.n, call.dx) + out)

    def scal(self, call: HostCall) -> int:
        """x = alpha x."""
        out = strided(call.x, call.n, call.dx, self.kind)
        return call.write(out, self.scalar(call.alpha) * out.astype("f8"))

    def copy(self, call: HostCall) -> int:
        """y = x."""
        source = strided(call.x, call.n, call.dx, self.kind)
        return call.write(strided(call.y, call.n, call.dy, self.kind), source)

    def dot(self, call: HostCall) -> int:
        """The product of two vectors."""
        x, y = self.vector(call.x, call.n, call.dx), self.vector(call.y, call.n, call.dy)
        return call.write(array(call.out, 1, self.kind), x @ y)

    def nrm2(self, call: HostCall) -> int:
        """The Euclidean norm."""
        found = np.linalg.norm(self.vector(call.x, call.n, call.dx))
        return call.write(array(call.out, 1, self.kind), float(found))

    def asum(self, call: HostCall) -> int:
        """The sum of absolute values."""
        found = np.abs(self.vector(call.x, call.n, call.dx)).sum()
        return call.write(array(call.out, 1, self.kind), found)

    def getrf(self, call: HostCall) -> int:
        """Factors matrices into L and U, in place."""
        for at, address in enumerate(array(call.a, call.count, "<u8").tolist()):
            out = matrix(address, call.n, call.n, call.lda, self.kind)
            pivots = np.zeros(call.n, "<i4") if call.pivots else None
            singular, factors = _lu(out.astype("f8"), pivots)
            call.write(out, factors)
            call.write(array(call.info + 4 * at, 1, "<i4"), singular)
            if pivots is not None:
                call.write(array(call.pivots + 4 * call.n * at, call.n, "<i4"), pivots)
        return 0


def _lu(a: np.ndarray, pivots: np.ndarray | None) -> tuple[int, np.ndarray]:
    """LU factors in place of a matrix, with rows exchanged if there are pivots; the number of the
    first pivot that is 0, or 0. pivots: receives the row exchanged with each, from 1"""
    singular = 0
    for n in range(len(a)):
        if pivots is not None:
            row = n + int(np.argmax(np.abs(a[n:, n])))
            a[[n, row]] = a[[row, n]]
            pivots[n] = row + 1
        if a[n, n] == 0:
            singular = singular or n + 1
            continue
        a[n + 1 :, n] /= a[n, n]
        a[n + 1 :, n + 1 :] -= np.outer(a[n + 1 :, n], a[n, n + 1 :])
    return singular, a


_OF_REALS: dict[str, tuple[str, Callable[[Real, HostCall], int]]] = {
    "cublas{}gemm_v2": (_GEMM.format("i"), Real.gemm),
    "cublasXt{}gemm": (_GEMM.format("z"), Real.gemm),
    "cublas{}gemmBatched": (f"{_GEMM.format('i')} count:i", Real.batched),
    "cublas{}gemmStridedBatched": (_BY_STRIDES, Real.by_strides),
    "cublas{}gemv_v2": (
        "handle:p form:i m:i n:i alpha:p a:p lda:i x:p dx:i beta:p y:p dy:i",
        Real.gemv,
    ),
    "cublas{}axpy_v2": ("handle:p n:i alpha:p x:p dx:i y:p dy:i", Real.axpy),
    "cublas{}scal_v2": ("handle:p n:i alpha:p x:p dx:i", Real.scal),
    "cublas{}copy_v2": ("handle:p n:i x:p dx:i y:p dy:i", Real.copy),
    "cublas{}dot_v2": ("handle:p n:i x:p dx:i y:p dy:i out:p", Real.dot),
    "cublas{}nrm2_v2": ("handle:p n:i x:p dx:i out:p", Real.nrm2),
    "cublas{}asum_v2": ("handle:p n:i x:p dx:i out:p", Real.asum),
    "cublas{}getrfBatched": ("handle:p n:i a:p lda:i pivots:p info:p count:i", Real.getrf),
}


def _of(real: Real, method: Callable[[Real, HostCall], int]) -> Callable[[HostCall], int]:
    return lambda call: method(real, call)


for _letter, _kind in _REAL.items():
    for _name, (_given, _method) in _OF_REALS.items():
        function(_name.format(_letter), given=_given, waits=True)(_of(Real(_kind), _method))

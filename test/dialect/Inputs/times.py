"""A plugin's product on tensors, ``demo.times``, which declares what it computes."""

from tcir.dialect.base import Dialect
from tcir.dialect.indexing import IndexedOperand, Indexing, K, M, N
from tcir.dialect.operation import Op
from tcir.interp.tensor import evaluate
from tcir.mlir import ext, ir


class Demo(Dialect, name="demo"):
    """The dialect of the tests."""


class TimesOp(Op, dialect=Demo, name="times", arithmetic="products"):
    """``out[m, n] = sum_k a[m, k] * b[n, k]`` in f32."""

    a: ext.Operand[ir.RankedTensorType]
    b: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]

    def indexing(self) -> Indexing:
        """Indexing maps: the loops of a matrix product."""
        a = IndexedOperand(self.a, ((M, 1), (K, 1)))
        b = IndexedOperand(self.b, ((N, 1), (K, 1)))
        return Indexing((a, b), frozenset((M, N)))


@evaluate(TimesOp)
def times(interpreter, op, a, b):
    """Computes the op by numpy."""
    return [(a.astype("f8") @ b.astype("f8").T).astype("f4")]

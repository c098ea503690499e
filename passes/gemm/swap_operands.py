"""swap-operands: if A has few rows, exchanges the operands, so that the columns of B fill the
tensor core's 128 rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import UNSIGNED, string, unsigned_operands
from tcir.dialect.limits import TMEM_LANES
from tcir.dialect.ops.highlevel import out_layout
from tcir.errors import InputError
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import MMA_N_STEP, round_up
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passes.kernels import legal
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS

CHOICES = ("auto", "always", "never")

GAIN = 2
"""The default swaps if that divides the products, padding included, by at least this number. Fewer
would not pay: the swapped kernel stores its result element by element."""


@register_pass
@dataclass(frozen=True)
class SwapOperands(Pass):
    """Exchanges the operands of a matrix product: the transposed result is Bᵀ Aᵀ.

    swap: ``always``, ``never`` or ``auto``. ``auto`` exchanges if `n_tile` is 0 and the exchange at
        least halves the number of rows times columns that the mma instructions multiply, padding
        included
    n_tile: columns of an output tile that the user requests; 0: none

    Before, with 8 rows (decoding)::

        %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
            : (tensor<8x7168xf16>, tensor<7168x4096xf16>) -> tensor<8x4096xf16>

    After: 4096 rows and 8 columns, stored by columns::

        %c = "tc.matmul"(%b, %a) {a_layout = "km", b_layout = "nk", out_layout = "nm"}
            : (tensor<7168x4096xf16>, tensor<8x7168xf16>) -> tensor<8x4096xf16>

    The operands of a block-scaled product are exchanged together with their scales; K is last in
    both operands. A remark states the choice. Preserves the value of every element.
    """

    name: ClassVar[str] = "swap-operands"
    swap: str = "auto"
    n_tile: int = 0

    def __post_init__(self) -> None:
        if self.swap not in CHOICES:
            raise InputError(
                f"expected swap to be one of {', '.join(CHOICES)}, got {self.swap}; leave it out"
            )

    def run(self, module: ir.Module) -> None:
        if not TARGETS[target_of(module)].tcgen05 and self.swap == "auto":
            return  # threads of wgmma have elements of several rows and columns either way
        for op in tensor_ops(module):
            if isinstance(op, tc.MatmulOp | tc.BlockScaledMatmulOp):
                self._visit(op)
            elif isinstance(op, tc.GroupedMatmulOp):
                legal.check({"swap": self.swap, "product": legal.GROUPED}, op)

    def _visit(self, op: tc.MatmulOp | tc.BlockScaledMatmulOp) -> None:
        results = legal.results_of(op.result)
        legal.check({"swap": self.swap, "results": results}, op)
        if results != legal.PLAIN:
            return
        if op.b.type.rank < op.a.type.rank:
            if self.swap == "always":
                raise match_failure(
                    op,
                    "expected a and b of the same rank with swap=always, got a b of rank "
                    f"{op.b.type.rank} (a vector, for which there is pipeline gemv-padded-n, or "
                    "one matrix for a whole batch, which collapse-batch did not change); leave "
                    "swap out",
                )
            return
        m, n = _rows_and_columns(op)
        now, swapped = _products(m, n), _products(n, m)
        wanted = self.swap == "auto" and not self.n_tile and now >= GAIN * swapped
        if self.swap != "always" and not wanted:
            return
        remark(
            op,
            f"operands exchanged, so that the {n} columns of B become rows of tiles: the {m} x "
            f"{n} result takes mma of {_sizes(m, n)} rows x columns as it is, and {_sizes(n, m)} "
            "exchanged",
        )
        _swap(op)


def _rows_and_columns(op: tc.MatmulOp | tc.BlockScaledMatmulOp) -> tuple[int, int]:
    """M and N of a product."""
    extents = dict(zip(out_layout(op), op.out.type.shape[-2:], strict=True))
    return extents["m"], extents["n"]


def _tiles(rows: int, columns: int) -> tuple[int, int]:
    return round_up(rows, TMEM_LANES), round_up(columns, MMA_N_STEP)


def _products(rows: int, columns: int) -> int:
    """Elements of the result that whole mma compute."""
    padded = _tiles(rows, columns)
    return padded[0] * padded[1]


def _sizes(rows: int, columns: int) -> str:
    return " x ".join(map(str, _tiles(rows, columns)))


def _swap(op: tc.MatmulOp | tc.BlockScaledMatmulOp) -> None:
    """Exchanges the operands of `op`; global scales multiply each other in either order."""
    scaled = isinstance(op, tc.BlockScaledMatmulOp)
    each = 2 if scaled else 1  # elements and scales
    a, b = list(op.operands)[:each], list(op.operands)[each : 2 * each]
    for place, value in enumerate(b + a):
        op.operation.operands[place] = value
    name = "scale_layout" if scaled else "layout"
    a_layout, b_layout = string(op, f"a_{name}"), string(op, f"b_{name}")
    if UNSIGNED in op.attributes:
        op.attributes[UNSIGNED] = i64s(unsigned_operands(op)[::-1])
    if not scaled:
        a_layout, b_layout = a_layout.replace("m", "n"), b_layout.replace("n", "m")
    op.attributes[f"a_{name}"] = ir.StringAttr.get(b_layout)
    op.attributes[f"b_{name}"] = ir.StringAttr.get(a_layout)
    if out_layout(op) == "nm":
        del op.attributes["out_layout"]
    else:
        op.attributes["out_layout"] = ir.StringAttr.get("nm")

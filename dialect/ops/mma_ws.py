"""Weight-stationary tensor core op."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import string
from tcir.dialect.limits import TMEM_LANES, Legal
from tcir.dialect.operation import Op
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.rules import Broken, one_of, same_rules, verify
from tcir.dialect.types import SmemType, TmemType

SHAPES = "PTX ISA 9.7.16.2, table 39"
SOURCE = "PTX ISA 9.7.16.10.9.3"
WS_M = Legal((32, 64, 128), "rows", SHAPES)
WS_N = Legal((64, 128, 256), "columns", SHAPES)
WS_BUFFERS = ("b0", "b1", "b2", "b3")
"""Collector buffers of B."""


class MmaWsOp(
    Op,
    name="mma_ws",
    issued_by="thread",
    role="mma",
    reads_shared=("a", "b"),
    completed_by="tc.commit",
):
    """``tcgen05.mma.ws``: one K step with few rows of A, ``D = A_slice * B_slice^T (+ D)``.

    The op is ``tc.mma`` with M = 32, 64 or 128 rows of A and N = 64, 128 or 256 rows of B. ``d``
    has all 128 lanes: column n of D is column ``n mod (N M / 128)``, in lanes ``M * (n / (N M /
    128))`` and up, one lane per row of A. Four collector buffers keep B: ``buffer`` is ``"b0"``
    (default) to ``"b3"``, and ``collector`` has the meaning that it has in ``tc.mma`` (PTX ISA
    9.7.16.10.9.3). One thread issues the op; it completes asynchronously. The op does not offer the
    zero-column mask, because the ISA's text and example contradict each other.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 32>, f32>
    !a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
    !b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
    func.func @example(%d: !d, %a: !a, %b: !b, %accumulate: i1) {
      "tc.mma_ws"(%d, %a, %b, %accumulate) {a_slice = 1 : i64, b_slice = 1 : i64, buffer = "b2",
          collector = "fill"} : (!d, !a, !b, i1) -> ()
      return
    }
    """
    form = "{d}, {a}[j={a_slice}], {b}[j={b_slice}] acc={accumulate}"

    d: ext.Operand[TmemType]
    a: ext.Operand[SmemType | TmemType]
    b: ext.Operand[SmemType]
    accumulate: ext.Operand[ir.IntegerType]
    a_slice: ir.IntegerAttr
    b_slice: ir.IntegerAttr


def buffer_of(op: ir.OpView) -> str:
    """``buffer``. The attribute is optional, so the class does not declare it."""
    return string(op, "buffer") if "buffer" in op.attributes else WS_BUFFERS[0]


same_rules(
    MmaWsOp,
    MmaOp,
    {
        "accumulate-type": {"i1": "i8"},
        "operand-types": {"array<i64: 128, 64>, f16": "array<i64: 128, 64>, i32"},
        "same-types": {"array<i64: 128, 64>, f16": "array<i64: 128, 64>, bf16"},
        "unsigned": {'buffer = "b2"': 'unsigned = array<i64: 1, 0>, buffer = "b2"'},
        "d-type": {"f32": "i32"},
    },
)


@verify(
    MmaWsOp,
    "m",
    SHAPES,
    "A must have {legal} rows, got {got}; fill up with zeros",
    bad={"array<i64: 32, 64>": "array<i64: 96, 64>"},
)
def _(op: MmaWsOp) -> Broken:
    got = op.a.type.shape[0]
    return None if got in WS_M else {"legal": " or ".join(map(str, WS_M.values)), "got": got}


@verify(
    MmaWsOp,
    "n-range",
    SHAPES,
    "N must be {legal}, got {got}: .ws has no other; nearest legal: {nearest}",
    bad={"array<i64: 128, 64>": "array<i64: 96, 64>"},
    good={
        "array<i64: 128, 32>": "array<i64: 128, 64>",
        "array<i64: 128, 64>": "array<i64: 256, 64>",
    },
)
def _(op: MmaWsOp) -> Broken:
    got = op.b.type.shape[0]
    return None if got in WS_N else {"legal": WS_N, "got": got, "nearest": WS_N.nearest(got)}


@verify(
    MmaWsOp,
    "d-columns",
    "PTX ISA 9.7.16.10.5",
    "D must have N * M / 128 = {want} columns for M = {m} and N = {n}, got {got}: with fewer than "
    "128 rows, parts of N lie on the lanes behind each other",
    bad={"array<i64: 128, 32>": "array<i64: 128, 128>"},
    good={"array<i64: 128, 32>": "array<i64: 128, 64>", "array<i64: 32, 64>": "array<i64: 64, 64>"},
)
def _(op: MmaWsOp) -> Broken:
    m, n, got = op.a.type.shape[0], op.b.type.shape[0], op.d.type.shape[1]
    want = n * m // TMEM_LANES
    return None if got == want else {"want": want, "m": m, "n": n, "got": got}


same_rules(
    MmaWsOp,
    MmaOp,
    {
        "a-slice": {"a_slice = 1": "a_slice = 4"},
        "b-slice": {"b_slice = 1": "b_slice = 4"},
        "collector": {'collector = "fill"': 'collector = "keep"'},
    },
)


@verify(
    MmaWsOp,
    "buffer",
    SOURCE,
    "buffer must be one of {legal}, got {got}",
    bad={'buffer = "b2"': 'buffer = "b4"'},
    good={'"b2"': '"b3"'},
)
def _(op: MmaWsOp) -> Broken:
    return one_of(op, "buffer", WS_BUFFERS)

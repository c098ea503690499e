"""Grouped GEMM: groups of rows one behind the other, and of a fixed capacity; sizes at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.errors import PassError
from tcir.program.inputs import make_inputs, poison

from .breaking import Edit, activation_first, change_operand, erase, pick, run_broken, walk
from .oracle import DTYPES, Array
from .test_matmul_warp_breaks import Break


@dataclass(frozen=True)
class Grouped:
    """`rows` in all, or of each group if `masked`; `sizes`: those that numpy's result is made with,
    besides random ones."""

    groups: int
    rows: int
    n: int
    k: int
    element: str = "f16"
    b: str = "kn"
    out: str = "f32"
    masked: bool = False
    sizes: tuple[int, ...] = ()
    options: str = ""

    def __str__(self) -> str:
        kind = "masked" if self.masked else "contiguous"
        words = [f"{self.groups}x{self.rows}x{self.n}x{self.k}", kind, self.element, self.b,
                 self.out, self.options]  # fmt: skip
        return "-".join(word for word in words if word)

    @property
    def text(self) -> str:
        """The module."""
        sizes = {"n": self.n, "k": self.k}
        lead = f"{self.groups}x{self.rows}x" if self.masked else f"{self.rows}x"
        a = f"tensor<{lead}{self.k}x{self.element}>"
        b = f"tensor<{self.groups}x{'x'.join(str(sizes[d]) for d in self.b)}x{self.element}>"
        s, out = f"tensor<{self.groups}xi32>", f"tensor<{lead}{self.n}x{self.out}>"
        return f"""
func.func @grouped(%a: {a}, %b: {b}, %sizes: {s}) -> {out} {{
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {{a_layout = "mk", b_layout = "{self.b}"}}
      : ({a}, {b}, {s}) -> {out}
  return %c : {out}
}}
"""

    @property
    def pipeline(self) -> str:
        """Its pipeline with options."""
        return f"gemm{{{self.options}}}"

    def product(self, a: Array, b: Array, sizes: Array, out: Array) -> Array:
        """numpy's; rows of no group are as in `out`."""
        wide: Any = np.int64 if self.element == "i8" else np.float64
        total: Any = np.int32 if self.element == "i8" else np.float32
        right = b.astype(wide) if self.b == "kn" else b.astype(wide).swapaxes(-1, -2)
        result, first = out.copy(), 0
        for group, size in enumerate(map(int, sizes)):
            rows = (group, slice(0, size)) if self.masked else slice(first, first + size)
            sums = (a[rows].astype(wide) @ right[group]).astype(total)
            result[rows] = sums if self.out == "i32" else sums.astype(DTYPES[self.out])
            first += size
        return result


QUICK = Grouped(3, 200, 24, 72, sizes=(130, 0, 33))
CASES = [
    Grouped(4, 300, 40, 136, "bf16", "nk", "bf16", sizes=(128, 1, 0, 171)),  # full
    Grouped(3, 150, 24, 64, sizes=(0, 0, 0)),
    Grouped(5, 140, 17, 40, "f16", "nk", sizes=(0, 100, 0, 0, 29), options="n-tile=16"),
    Grouped(2, 260, 48, 33, "i8", "nk", "i32", sizes=(256, 4)),  # repacked
    Grouped(1, 130, 24, 40, "f32", "nk", sizes=(129,)),
    Grouped(3, 130, 40, 72, masked=True, sizes=(0, 129, 130)),
    Grouped(2, 40, 200, 64, "f8E4M3FN", "nk", "f16", masked=True, sizes=(40, 3)),
    Grouped(4, 17, 24, 48, "bf16", "kn", "bf16", masked=True, sizes=(17, 0, 1, 16)),
    Grouped(9, 20, 24, 64, sizes=(3, 0, 5, 1, 0, 0, 7, 2, 2), options="stages=1"),  # all rows
]
SHARED = Grouped(
    3,
    300,
    72,
    136,
    "bf16",
    "nk",
    "bf16",
    sizes=(130, 40, 129),
    options="persistent=true ctas=2 n-tile=32 stages=2",
)
"""Fifteen tiles for two CTAs."""
CASES += [
    SHARED,
    Grouped(2, 140, 24, 256, sizes=(0, 139), options="persistent=true ctas=1 n-tile=16 stages=3"),
]


def run(case: Grouped, orders: int) -> None:
    """Every level on random sizes, and the PTX beside numpy on `sizes`."""
    kernel = tcir.compile(case.text, case.pipeline, validate=True, orders=orders, seed=3)
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}, str(
        kernel.report
    )
    assert not [finding for line in kernel.report.passes for finding in line.findings]
    a, b, drawn = make_inputs(kernel.signature.inputs, 7, "integers")
    for sizes in (drawn, np.array(case.sizes, np.int32)):
        (out,) = (poison(spec) for spec in kernel.signature.outputs)
        want = case.product(a, b, sizes, out)
        outcome = kernel(a, b, sizes, out)
        assert out.tobytes() == want.tobytes() and not outcome.findings, (sizes, str(outcome))


@pytest.mark.parametrize("case", [QUICK, *CASES], ids=str)
def test_case(case: Grouped) -> None:
    run(case, 2)


def test_floats_are_within_the_bound() -> None:
    report = tcir.validate(QUICK.text, "gemm", inputs="random", seed=4)
    assert report.ok, str(report)


def test_the_grid_has_room_for_any_sizes() -> None:
    """ceil(n / 128) of three groups of 200 rows: at most 4 tiles, as of 129, 70 and 1."""
    kernel = tcir.compile(QUICK.text, "gemm")
    assert kernel.launches.launches[0].grid == (4, 1, 1)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("options", ["", "persistent=true ctas=1"])
@pytest.mark.parametrize("masked", [False, True])
def test_rows_that_do_not_fit_are_left_out(target: str, options: str, masked: bool) -> None:
    case = Grouped(3, 150, 24, 72, masked=masked, options=options)
    kernel = tcir.compile(case.text, case.pipeline, target=target)
    a, b, _ = make_inputs(kernel.signature.inputs, 7, "integers")
    (out,) = (poison(spec) for spec in kernel.signature.outputs)
    want = case.product(a, b, np.array([130, 0, 150 if masked else 20]), out)
    kernel(a, b, np.array([130, 0, 300], np.int32), out)
    assert out.tobytes() == want.tobytes()


def _plus(amount: int) -> Callable[[Any], Any]:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _every_row(module: Any) -> None:
    """Lanes beyond the group's rows are stored, too: those of the next group."""
    store = pick(module, "tc.store_lanes")
    select = store.operands[2].owner
    store.operands[2] = select.operands[1]


def _next_group(module: Any) -> None:
    load = list(walk(module, "tc.tma_load"))[1]
    with ir.InsertionPoint(load), load.location:
        load.operands[3] = _plus(1)(load.operands[3])


def _one_row_less(module: Any) -> None:
    compare = next(
        op for op in walk(module, "arith.cmpi") if "vector<32xindex>" in str(op.operands[0].type)
    )
    spread = compare.operands[1].owner
    with ir.InsertionPoint(spread), spread.location:
        spread.operands[0] = arith.subi(spread.operands[0], arith.constant(ir.IndexType.get(), 1))


BREAKS: dict[str, Edit] = {
    "rows of the next group written": _every_row,
    "weights of the next group": _next_group,
    "last row of a group left out": _one_row_less,
}


@pytest.mark.parametrize(
    "edit",
    [pytest.param(edit, id=what) for what, edit in BREAKS.items()],
)
@pytest.mark.parametrize("at", ["tile-gemm", "assign-roles"])
def test_break(at: str, edit: Edit) -> None:
    caught = run_broken(QUICK.text, tcir.named_pipeline("gemm"), at, edit, orders=1)
    assert caught.at == at and caught.by in ("difference", "hazard: race"), caught.text


def plus(operand: int, amount: int) -> Any:
    """An operand, so much further."""

    def change(op: Any) -> None:
        with ir.InsertionPoint(op), op.location:
            op.operands[operand] = _plus(amount)(op.operands[operand])

    return change


def one_tile_less(op: Any) -> None:
    """The last tile of all groups is left out."""
    with ir.InsertionPoint.after(op), op.location:
        less = _plus(-1)(op.results[0])
    op.results[0].replace_all_uses_except(less, less.owner.operation)


TURNS = {
    "a tile less": Break("tc.count_tiles", one_tile_less),
    "a tile twice": Break("tc.find_group", plus(1, 1)),
}
"""Breaks of the loop over a CTA's tiles."""


@pytest.mark.parametrize("what", TURNS)
def test_break_of_a_persistent_kernel(what: str) -> None:
    passes = tcir.named_pipeline("gemm", persistent=True, ctas=2)
    report = tcir.validate(QUICK.text, passes.insert(TURNS[what], after="tile-gemm"), seed=3)
    failure = report.first_failure()
    assert failure is not None and failure.name == "break", str(report)


@pytest.mark.parametrize(
    ("at", "edit"),
    [
        pytest.param("place-barriers", erase("tc.mbarrier_arrive"), id="slots are not freed"),
        pytest.param(
            "place-barriers",
            erase("tc.mbarrier_wait", -1, **{"tc.for_role": '"epilogue"'}),
            id="sums are read before they are complete",
        ),
        pytest.param(
            "assign-roles",
            change_operand("tc.mbarrier_wait", 1, lambda old: arith.constant(old.type, 0), -1),
            id="every tile has the first phase",
        ),
    ],
)
def test_break_of_the_accumulators_of_a_persistent_kernel(at: str, edit: Edit) -> None:
    passes = tcir.named_pipeline("gemm", persistent=True, ctas=1)
    caught = run_broken(SHARED.text, passes, at, edit, orders=2)
    assert caught.at == at, caught.text


# --- epilogues ---------------------------------------------------------------------------------

MAPS = """
#n = affine_map<(t, n) -> (n)>
#t = affine_map<(t, n) -> (t)>
#all = affine_map<(t, n) -> (t, n)>
"""
CONTIGUOUS = (
    MAPS
    + """
func.func @f(%a: tensor<200x72xf16>, %b: tensor<3x72x24xf16>, %sizes: tensor<3xi32>,
    %bias: tensor<24xf32>, %weight: tensor<200xf32>, %r: tensor<200x24xf16>)
    -> tensor<200x24xf16> {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"}
      : (tensor<200x72xf16>, tensor<3x72x24xf16>, tensor<3xi32>) -> tensor<200x24xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %x = "tc.element"(%bias) {map = #n} : (tensor<24xf32>) -> f32
    %u = arith.addf %s, %x : f32
    %zero = arith.constant 0.0 : f32
    %v = arith.maximumf %u, %zero : f32
    %w = "tc.element"(%weight) {map = #t} : (tensor<200xf32>) -> f32
    %p = arith.mulf %v, %w : f32
    %z = "tc.element"(%r) {map = #all} : (tensor<200x24xf16>) -> f16
    %wide = arith.extf %z : f16 to f32
    %q = arith.addf %p, %wide : f32
    %o = arith.truncf %q : f32 to f16
    "tc.yield"(%o) : (f16) -> ()
  }) : (tensor<200x24xf32>) -> tensor<200x24xf16>
  return %d : tensor<200x24xf16>
}
"""
)
"""relu(sum + bias) * the row's weight + residual."""
MASKED = """
#gn = affine_map<(g, c, n) -> (g, n)>
func.func @f(%a: tensor<3x40x72xbf16>, %b: tensor<3x48x72xbf16>, %sizes: tensor<3xi32>,
    %bias: tensor<3x24xf32>) -> tensor<3x40x24xbf16> {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "nk"}
      : (tensor<3x40x72xbf16>, tensor<3x48x72xbf16>, tensor<3xi32>) -> tensor<3x40x48xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%gate: f32, %value: f32):
    %zero = arith.constant 0.0 : f32
    %v = arith.maximumf %gate, %zero : f32
    %x = "tc.element"(%bias) {map = #gn} : (tensor<3x24xf32>) -> f32
    %u = arith.addf %value, %x : f32
    %p = arith.mulf %v, %u : f32
    %o = arith.truncf %p : f32 to bf16
    "tc.yield"(%o) : (bf16) -> ()
  }) : (tensor<3x40x48xf32>) -> tensor<3x40x24xbf16>
  return %d : tensor<3x40x24xbf16>
}
"""
"""Gated, with a bias of each group."""


OF_GROUP = (
    MAPS
    + """
#none = affine_map<(t, n) -> ()>
func.func @f(%a: tensor<200x72xf8E4M3FN>, %b: tensor<3x48x72xf8E4M3FN>, %sizes: tensor<3xi32>,
    %scale: tensor<3xf32>, %bias: tensor<3x24xf32>, %weight: tensor<200xf32>)
    -> tensor<200x24xbf16> {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "nk"}
      : (tensor<200x72xf8E4M3FN>, tensor<3x48x72xf8E4M3FN>, tensor<3xi32>) -> tensor<200x48xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%gate: f32, %value: f32):
    %s = "tc.element"(%scale) {map = #none, of_group} : (tensor<3xf32>) -> f32
    %x = "tc.element"(%bias) {map = #n, of_group} : (tensor<3x24xf32>) -> f32
    %w = "tc.element"(%weight) {map = #t} : (tensor<200xf32>) -> f32
    %zero = arith.constant 0.0 : f32
    %relu = arith.maximumf %gate, %zero : f32
    %scaled = arith.mulf %value, %s : f32
    %u = arith.addf %scaled, %x : f32
    %p = arith.mulf %relu, %u : f32
    %q = arith.mulf %p, %w : f32
    %o = arith.truncf %q : f32 to bf16
    "tc.yield"(%o) : (bf16) -> ()
  }) : (tensor<200x48xf32>) -> tensor<200x24xbf16>
  return %d : tensor<200x24xbf16>
}
"""
)
"""fp8 weights with a scale and a bias of each group, gated, times the row's weight."""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CONTIGUOUS, id="contiguous"),
        pytest.param(OF_GROUP, id="scale and bias of a group"),
        pytest.param(MASKED, id="masked"),
    ],
)
def test_epilogue(text: str) -> None:
    """Rows of no group are not written, whatever the epilogue makes of nothing."""
    report = tcir.validate(text, "gemm", orders=2, seed=3)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]


@pytest.mark.parametrize(
    "text",
    [CONTIGUOUS, OF_GROUP, MASKED],
    ids=["contiguous", "scale and bias of a group", "masked"],
)
def test_an_epilogue_of_floats_is_within_the_bound(text: str) -> None:
    report = tcir.validate(text, "gemm", inputs="random", seed=4)
    assert report.ok, str(report)
    assert report["llvm-to-ptx"].verdict in ("equal", "within bound"), str(report)


def test_an_epilogue_beside_numpy() -> None:
    kernel = tcir.compile(CONTIGUOUS, "gemm")
    a, b, _, bias, weight, r = make_inputs(kernel.signature.inputs, 7, "integers")
    sizes = np.array([129, 0, 33], np.int32)
    (out,) = (poison(spec) for spec in kernel.signature.outputs)
    want, first = out.copy(), 0
    for group, size in enumerate(map(int, sizes)):
        rows = slice(first, first + size)
        sums = (a[rows].astype(np.float64) @ b[group].astype(np.float64)).astype(np.float32)
        relu = np.maximum(sums + bias, np.float32(0))
        want[rows] = (relu * weight[rows, None] + r[rows].astype(np.float32)).astype(np.float16)
        first += size
    outcome = kernel(a, b, sizes, bias, weight, r, out)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)


def test_a_scale_and_a_bias_of_each_group_beside_numpy() -> None:
    kernel = tcir.compile(OF_GROUP, "gemm")
    a, b, _, scale, bias, weight = make_inputs(kernel.signature.inputs, 7, "integers")
    sizes = np.array([129, 0, 33], np.int32)
    (out,) = (poison(spec) for spec in kernel.signature.outputs)
    want, first = out.copy(), 0
    for group, size in enumerate(map(int, sizes)):
        rows = slice(first, first + size)
        sums = (a[rows].astype(np.float64) @ b[group].T.astype(np.float64)).astype(np.float32)
        gate, value = np.maximum(sums[:, ::2], np.float32(0)), sums[:, 1::2]
        result = gate * (value * scale[group] + bias[group]) * weight[rows, None]
        want[rows] = result.astype(DTYPES["bf16"])
        first += size
    outcome = kernel(a, b, sizes, scale, bias, weight, out)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)


def test_quantised_is_refused() -> None:
    text = """
func.func @f(%a: tensor<200x72xf16>, %b: tensor<3x72x64xf16>, %sizes: tensor<3xi32>)
    -> (tensor<200x64xf4E2M1FN>, tensor<2x1x512xf8E4M3FN>) {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"}
      : (tensor<200x72xf16>, tensor<3x72x64xf16>, tensor<3xi32>) -> tensor<200x64xf32>
  %q:2 = "tc.quantise_blocks"(%c) {operandSegmentSizes = array<i32: 1, 0>}
      : (tensor<200x64xf32>) -> (tensor<200x64xf4E2M1FN>, tensor<2x1x512xf8E4M3FN>)
  return %q#0, %q#1 : tensor<200x64xf4E2M1FN>, tensor<2x1x512xf8E4M3FN>
}
"""
    with pytest.raises(PassError, match="a block of scales covers 128 rows"):
        tcir.compile(text, "gemm")


def _other_row(module: Any) -> None:
    """The residual of the row below."""
    load = list(walk(module, "tc.load_rows"))[-1]
    with ir.InsertionPoint(load), load.location:
        load.operands[1] = _plus(1)(load.operands[1])


def _bias_of_the_next_group(module: Any) -> None:
    load = pick(module, "tc.load_rows")
    with ir.InsertionPoint(load), load.location:
        load.operands[1] = _plus(1)(load.operands[1])


def _of_the_first_group(index: int) -> Edit:
    """What is of the tile's group is taken from the first one."""

    def edit(module: Any) -> None:
        load = pick(module, "tc.load_rows", index)
        with ir.InsertionPoint(load), load.location:
            load.operands[1] = arith.constant(ir.IndexType.get(), 0)

    return edit


EPILOGUE_BREAKS: dict[str, tuple[str, Edit]] = {
    "residual of the row below": (CONTIGUOUS, _other_row),
    "activation in front of the bias": (CONTIGUOUS, activation_first),
    "rows of the next group written": (CONTIGUOUS, _every_row),
    "bias of the next group": (MASKED, _bias_of_the_next_group),
    "scale of the next group": (OF_GROUP, _bias_of_the_next_group),
    "scale of the first group": (OF_GROUP, _of_the_first_group(0)),
    "bias of the first group": (OF_GROUP, _of_the_first_group(1)),
}


@pytest.mark.parametrize(
    ("text", "edit"), [pytest.param(*each, id=what) for what, each in EPILOGUE_BREAKS.items()]
)
def test_break_of_an_epilogue(text: str, edit: Edit) -> None:
    caught = run_broken(text, tcir.named_pipeline("gemm"), "tile-gemm", edit, orders=1)
    assert caught.at == "tile-gemm" and caught.by in ("difference", "hazard: race"), caught.text

"""Execution after every pass: verdicts, bounds, hazards, completion orders."""

from dataclasses import dataclass, field
from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest

import tcir
import tcir.interp as interp
from tcir._mlir import ir
from tcir.interp import Outcome, OutputSpec
from tcir.machine.errors import Deadlock, NotModelled
from tcir.machine.numerics.fused import fused_mma
from tcir.machine.numerics.types import MmaTypes
from tcir.program.inputs import make_inputs, poison
from tcir.validation import compare
from tcir.validation.bounds import encoded, fused_sum_bound

MATMUL = """
func.func @matmul(%a: tensor<8x{k}xf16>, %b: tensor<{k}x16xf16>) -> tensor<8x16x{out}> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %r = linalg.matmul ins(%a, %b : tensor<8x{k}xf16>, tensor<{k}x16xf16>)
      outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  {rest}
}}
"""
F32 = MATMUL.format(k=64, out="f32", rest="return %r : tensor<8x16xf32>")
F16 = MATMUL.format(
    k=64,
    out="f16",
    rest="""
  %o = tensor.empty() : tensor<8x16xf16>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<8x16xf32>) outs(%o : tensor<8x16xf16>) {
    ^bb0(%x: f32, %y: f16):
      %n = arith.truncf %x : f32 to f16
      linalg.yield %n : f16
  } -> tensor<8x16xf16>
  return %t : tensor<8x16xf16>""",
)


@dataclass(frozen=True)
class Mark(tcir.Pass):
    """Sets the level of the program, as a lowering would."""

    name: ClassVar[str] = "mark-tile"
    attribute: str = "tc.async"

    def run(self, module) -> None:
        function = module.body.operations[0]
        function.operation.attributes["tc.kernel"] = ir.UnitAttr.get()
        function.operation.attributes[self.attribute] = ir.UnitAttr.get()


@dataclass
class Finding:
    severity: str
    code: str = "missing-fence"
    first: str = "mma"
    second: str = "cp"
    missing: str = "a fence"
    cta: int = 3
    kind: str = ""
    place: str = ""


@dataclass
class FakeMachine:
    """An executor whose result is a matrix product, changed as a test wants."""

    change: object = None
    findings: list = field(default_factory=list)
    incomplete: list = field(default_factory=list)
    orders: list = field(default_factory=list)

    def __call__(self, module, name, inputs, outputs, options):
        self.orders.append(options.order_seed)
        a, b = inputs
        with np.errstate(invalid="ignore"):  # infinities of the special values
            result = fused_product(a, b).astype(outputs[0].dtype)
        if self.change is not None:
            self.change(result, inputs, options.order_seed)
        sites = {0: lambda index: f"lane {index[0]}"}
        return Outcome([result], "tile", self.findings, {"mma": 1}, self.incomplete, sites)


def fused_product(a, b, steps=None):
    """a @ b as a chain of fused sums of 16 in a window of 25 bits, truncating, in Python ints."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in steps if steps is not None else range(0, a.shape[1], 16):
        terms = a[:, None, k : k + 16] * b[k : k + 16].T[None]
        terms = np.concatenate([terms, total[:, :, None]], axis=2)
        exponent = np.frexp(np.abs(terms).max(axis=2))[1]
        unit = np.ldexp(1.0, exponent - 25)[:, :, None]
        total = (np.trunc(terms / unit) * unit).sum(axis=2)
        exponent = np.frexp(total)[1]
        unit = np.ldexp(1.0, exponent - 24)
        total = np.trunc(total / unit) * unit
    return total


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    fake = FakeMachine()
    monkeypatch.setitem(interp._EXECUTORS, "tile", fake)
    return fake


def run(text: str = F32, **options):
    return tcir.validate(text, ["canonicalize", Mark()], **options)


def test_equal(machine: FakeMachine) -> None:
    report = run(orders=3)
    assert [line.verdict for line in report.passes] == ["reference", "equal"]
    assert [step.name for step in report.unchanged] == ["canonicalize"]
    assert (report.verdict, report.exit_code) == ("held", 0)
    assert machine.orders == [None, 1, 2, None, None]  # the last: what 8 rows of A show alone
    assert "3 completion orders" in report["mark-tile"].compared
    assert report["mark-tile"].counters == {"mma": 1}


@pytest.mark.parametrize("text", [F32, F16])
def test_random_floats_are_within_the_bound(machine: FakeMachine, text: str) -> None:
    report = run(text, inputs="random", seed=3)
    assert report.ok, str(report)
    line = report["mark-tile"]
    if text == F32:
        assert line.verdict == "within bound"
        assert 0 < line.max_error_over_bound < 1
        assert "error <=" in line.compared


@pytest.mark.parametrize("text", [F32, F16])
def test_a_dropped_k_step_exceeds_the_bound(machine: FakeMachine, text: str) -> None:
    def drop(result, inputs, order):
        result[...] = fused_product(*inputs, steps=[0, 16, 48]).astype(result.dtype)

    machine.change = drop
    report = run(text, inputs="random")
    assert report["mark-tile"].verdict == "different"
    assert report["mark-tile"].max_error_over_bound > (1000 if text == F32 else 10)


def test_one_product_dropped_of_one_element_exceeds_the_bound(machine: FakeMachine) -> None:
    def drop(result, inputs, order):
        a, b = (x.astype(np.float64) for x in inputs)
        result[3, 5] -= a[3, 17] * b[17, 5]

    machine.change = drop
    difference = run(inputs="random")["mark-tile"].difference
    assert difference is not None
    assert (difference.index, difference.count, difference.total) == ((3, 5), 1, 128)


def test_a_different_element_is_named_with_its_site(machine: FakeMachine) -> None:
    def change(result, inputs, order):
        result[2, 7] += 1

    machine.change = change
    report = run()
    assert (report.verdict, report.exit_code) == ("different", 1)
    assert report.first_failure() is report["mark-tile"]
    assert "1 of 128 elements; first: output 0 at [2, 7] (lane 2): expected" in str(report)


def test_a_difference_under_one_order_only(machine: FakeMachine) -> None:
    def change(result, inputs, order):
        if order == 2:
            result[0, 0] += 1

    machine.change = change
    assert run(orders=2).ok
    report = run(orders=3)
    assert report.verdict == "different"
    assert "completion order 2" in report["mark-tile"].compared


def test_sequential_programs_run_under_one_order(machine: FakeMachine) -> None:
    report = tcir.validate(F32, [Mark("tc.sequential")], orders=5)
    assert report.ok
    assert machine.orders == [None, None, None]  # the last: what 8 rows of A show alone


def test_a_hazard_is_different_and_a_warning_is_told(machine: FakeMachine) -> None:
    machine.findings = [Finding("warning")]
    report = run()
    assert report.ok
    assert "warning missing-fence: mma; cp; a fence (CTA 3)" in str(report)
    machine.findings = [Finding("error")]
    report = run()
    assert (report.verdict, report["mark-tile"].verdict) == ("different", "different")
    assert "1 error(s)" in report["mark-tile"].compared


def test_incomplete_is_not_success(machine: FakeMachine) -> None:
    machine.incomplete = ["f.mlir:3:4: tc.unknown: no rule"]
    report = run()
    assert (report.verdict, report.exit_code) == ("incomplete", 2)
    assert "without a rule: f.mlir:3:4: tc.unknown" in str(report)


def test_what_the_machine_raises(machine: FakeMachine) -> None:
    def raising(error):
        def change(result, inputs, order):
            raise error

        return change

    machine.change = raising(Deadlock("deadlock", "warp 4 waits for full[0]", site="f.mlir:3:1"))
    line = run()["mark-tile"]
    assert line.verdict == "different"
    assert "illegal use of the machine: deadlock: warp 4 waits for full[0] at" in line.compared
    machine.change = raising(NotModelled("tcgen05.mma.sp", site="f.mlir:4:1"))
    line = run()["mark-tile"]
    assert (line.verdict, line.incomplete) == ("incomplete", ["tcgen05.mma.sp at f.mlir:4:1"])


def test_an_exception_of_an_execution_is_the_pass_s_verdict(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(result, inputs, order):
        raise ZeroDivisionError("a bug of ours")

    machine.change = change
    report = run()
    assert (report.verdict, report.first_failure().name) == ("different", "mark-tile")
    (finding,) = report["mark-tile"].findings
    assert finding["code"] == "interpreter-failed"
    assert "ZeroDivisionError: a bug of ours, at" in finding["text"]
    assert "test_validation.py:" in finding["text"]
    monkeypatch.setenv("TCIR_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run()


def test_no_executor_is_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(interp._EXECUTORS, "tile")
    report = run()
    assert report.verdict == "incomplete"


def test_passes_after_a_different_one_are_not_executed(machine: FakeMachine) -> None:
    def change(result, inputs, order):
        result[...] = 0

    machine.change = change
    report = tcir.validate(F32, [Mark(), "canonicalize"])
    assert [line.verdict for line in report.passes] == ["reference", "different", "not executed"]


def test_negative_zero_and_nan_are_told_apart() -> None:
    zeros, nan = np.zeros(2, np.float32), np.array([np.nan, 1], np.float32)
    assert not compare.same_bits([zeros], [-zeros])
    assert compare.same_bits([nan], [nan])
    bound = [np.full(2, 1e9)]
    assert compare.first_difference([zeros], [nan], bound) is not None
    assert compare.first_difference([zeros], [zeros + 1], bound) is None
    assert compare.largest_ratio([nan], [nan + np.float32(0.5)], [np.ones(2)]) == (0.5, 0.5)


def test_bound_grows_with_steps_and_output_rounding() -> None:
    def bound(k, dtype):
        size = np.float64(k)
        return float(fused_sum_bound(size, size, size, np.array(1, dtype)))

    assert bound(8, np.float32) < bound(16, np.float32) < bound(64, np.float32)
    assert bound(64, np.float32) < bound(64, np.float16)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_sums_of_subnormal_factors_are_within_the_bound_of_their_exponents(name) -> None:
    """A subnormal factor has the exponent of the smallest normal number, and so truncates more."""
    dtype, draw = np.dtype(getattr(ml_dtypes, name, name)), np.random.default_rng(0)
    kind = {"float16": "f16", "bfloat16": "bf16"}.get(name) or name.removeprefix("float8_")[:4]
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    k, rows = 32 // dtype.itemsize, 64
    a = (tiny * draw.integers(-3, 4, (rows, 4 * k))).astype(dtype)
    b = (draw.uniform(-1, 1, (rows, 4 * k)) * 2.0 ** draw.integers(-6, 7, (rows, 4 * k))).astype(
        dtype
    )
    d = None
    for step in range(0, 4 * k, k):
        codes = [each[:, step : step + k].view(f"u{dtype.itemsize}") for each in (a, b)]
        d = fused_mma(*codes, d, MmaTypes(kind, kind, "f32"))
    got = d.view(np.float32).astype(np.float64)
    factors = [each.astype(np.float64) for each in (a, b)]
    sizes = [np.abs(each) for each in factors]
    sums, size, largest = (
        x @ y.T for x, y in (factors, sizes, [encoded(each, dtype) for each in sizes])
    )
    count = np.full(size.shape, 4.0 * k)
    reference = sums.astype(np.float32)
    error = np.abs(got - sums)
    assert (error <= fused_sum_bound(size, largest, count, reference)).all()
    if name == "float16":  # of 10 bits that a subnormal may lack; the others have fewer
        assert (error > fused_sum_bound(size, size, count, reference)).any()


@pytest.mark.parametrize("kind", ["integers", "random"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, "bfloat16"])
def test_inputs_have_no_zeros_and_repeat_by_seed(kind, dtype) -> None:
    dtype = np.dtype(getattr(ml_dtypes, dtype) if isinstance(dtype, str) else dtype)
    spec = OutputSpec((2, 5, 7, 16), dtype)
    (a,), (b,), (c,) = (make_inputs([spec], seed, kind) for seed in (1, 1, 2))
    assert (a.dtype, a.shape) == (dtype, spec.shape)
    assert np.all(a != 0)
    assert compare.same_bits([a], [b])
    assert not compare.same_bits([a], [c])
    for axis in range(a.ndim):
        slices = np.moveaxis(a.astype(np.float64), axis, 0).reshape(a.shape[axis], -1)
        assert len(np.unique(slices, axis=0)) == a.shape[axis]


def test_poison_is_not_zero() -> None:
    assert np.all(poison(OutputSpec((3, 4), np.dtype(np.float16))) != 0)


AFTER = "linalg.{} ins({} : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>\n"
ANGLE = """linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
    ^bb0(%s: f32, %o: f32):
      %n = math.atan2 %s, %s : f32
      linalg.yield %n : f32
  } -> tensor<8x16xf32>
"""
LARGEST = """%v = linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%r : tensor<8x16xf32>) outs(%f : tensor<8x16xf32>) {
    ^bb0(%x: f32, %y: f32):
      %n = math.absf %x : f32
      %m = arith.maximumf %n, %y : f32
      linalg.yield %m : f32
  } -> tensor<8x16xf32>
"""
PRODUCT = """%w = arith.constant dense<0.5> : tensor<16x16xf32>
  %u = linalg.matmul ins(%r, %w : tensor<8x16xf32>, tensor<16x16xf32>)
    outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %v = """


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("%v = " + AFTER.format("exp", "%r"), "beyond the bound"),
        ("%v = " + ANGLE.replace("%x", "%r"), "no worst-case bound"),
        (PRODUCT + AFTER.format("exp", "%u"), "beyond the bound"),
        (PRODUCT + ANGLE.replace("%x", "%u"), "no worst-case bound"),
        (LARGEST, "beyond the bound"),
        (LARGEST.replace("math.absf %x", "math.atan2 %x, %x"), "no worst-case bound"),
    ],
    ids=[
        "a function of stated accuracy",
        "another function",
        "one behind a product of sums",
        "another one there",
        "a largest element",
        "another reduction",
    ],
)
def test_a_bound_is_refused_for_other_arithmetic(
    machine: FakeMachine, after: str, why: str
) -> None:
    text = F32.replace("return %r", f"{after}  return %v")
    machine.change = lambda result, inputs, order: None
    report = run(text, inputs="random")
    assert report.verdict in ("different", "incomplete")
    assert report.verdict == "incomplete" or why in report["mark-tile"].compared


def test_what_is_not_known_is_no_bound() -> None:
    """NaN as a bound or as an expected square: no error is within it, and none is one."""
    expected, got = [np.ones(3, np.float32)], [np.array([1, 2, 1], np.float32)]
    unknown = [np.array([0, np.nan, np.nan])]
    assert compare.first_difference(expected, got, unknown) is not None
    assert compare.mean_squares(expected, got, unknown) == [np.inf]
    assert compare.first_difference(expected, expected, unknown) is None
    assert compare.mean_squares(expected, expected, unknown) == [0]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("float16", [0, 2.0**-24, 2.0**-14, 3], [0, 2.0**-14, 2.0**-14, 3]),
        ("bfloat16", [0, 2.0**-133, 1], [0, 2.0**-126, 1]),
        ("float8_e4m3fn", [0, 2.0**-9, 2.0**-6, 448], [0, 2.0**-6, 2.0**-6, 448]),
        ("float4_e2m1fn", [0, 0.5, 1, 6], [0, 1, 1, 6]),
        ("float8_e8m0fnu", [2.0**-127, 1, 2.0**100], [2.0**-127, 1, 2.0**100]),
        ("int8", [0, 1, 100], [0, 1, 100]),
    ],
)
def test_factors_as_their_exponents_have_them(
    name: str, given: list[float], expected: list[float]
) -> None:
    """Subnormal numbers count as the smallest normal one; zeros, and scales, stay."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    found = encoded(np.array(given, np.float64).astype(dtype), dtype)
    assert found.dtype == dtype and found.astype(np.float64).tolist() == expected

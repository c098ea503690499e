# ruff: noqa: E501 (lines of IR)
"""Each rule of the naive spelling, executed against numpy; the LLVM twin of an op as well.

The same op of `llvm` also goes through LLVM's NVPTX back end: three readings of one op have to
agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from thread_kernels import DTYPES, THREADS, Array, floats, integers, kernel, run, through_llvm

from tcir.interp.tensor.arith import FLOAT
from tcir.interp.thread import spelling
from tcir.validation.compare import same_bits


def unsigned(a: Array) -> Array:
    return a.view(f"u{a.dtype.itemsize}")


def truncated(function: Callable[[int, int], int]) -> Callable[[Array, Array], Array]:
    """Division and remainder toward zero, in Python's exact integers."""

    def apply(a: Array, b: Array) -> Array:
        return np.array([function(int(x), int(y)) for x, y in zip(a, b, strict=True)]).astype(
            a.dtype
        )

    return apply


def quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def remainder(x: int, y: int) -> int:
    return x - y * quotient(x, y)


BINARY: dict[tuple[str, str], Callable[[Array, Array], Array]] = {
    ("arith.addi", "llvm.add"): lambda a, b: a + b,
    ("arith.subi", "llvm.sub"): lambda a, b: a - b,
    ("arith.muli", "llvm.mul"): lambda a, b: a * b,
    ("arith.divsi", "llvm.sdiv"): truncated(quotient),
    ("arith.remsi", "llvm.srem"): truncated(remainder),
    ("arith.divui", "llvm.udiv"): lambda a, b: (unsigned(a) // unsigned(b)).view(a.dtype),
    ("arith.remui", "llvm.urem"): lambda a, b: (unsigned(a) % unsigned(b)).view(a.dtype),
    ("arith.andi", "llvm.and"): lambda a, b: a & b,
    ("arith.ori", "llvm.or"): lambda a, b: a | b,
    ("arith.xori", "llvm.xor"): lambda a, b: a ^ b,
    ("arith.minsi", "llvm.intr.smin"): np.minimum,
    ("arith.maxsi", "llvm.intr.smax"): np.maximum,
    ("arith.minui", "llvm.intr.umin"): lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(
        a.dtype
    ),
    ("arith.maxui", "llvm.intr.umax"): lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(
        a.dtype
    ),
}
SHIFTS: dict[tuple[str, str], Callable[[Array, Array], Array]] = {
    ("arith.shli", "llvm.shl"): lambda a, b: a << b,
    ("arith.shrsi", "llvm.ashr"): lambda a, b: a >> b,
    ("arith.shrui", "llvm.lshr"): lambda a, b: (unsigned(a) >> unsigned(b)).view(a.dtype),
}
FLOATS: dict[tuple[str, str], Callable[[Array, Array], Array]] = {
    ("arith.addf", "llvm.fadd"): lambda a, b: a + b,
    ("arith.subf", "llvm.fsub"): lambda a, b: a - b,
    ("arith.mulf", "llvm.fmul"): lambda a, b: a * b,
    ("arith.divf", "llvm.fdiv"): lambda a, b: a / b,
    ("arith.maximumf", "llvm.intr.maximum"): np.maximum,
    ("arith.minimumf", "llvm.intr.minimum"): np.minimum,
    ("arith.maxnumf", "llvm.intr.maxnum"): np.fmax,
    ("arith.minnumf", "llvm.intr.minnum"): np.fmin,
}


def text_of(op: str, kind: str) -> str:
    arguments = (
        f"{op}(%a, %b) : ({kind}, {kind}) -> {kind}" if ".intr." in op else f"{op} %a, %b : {kind}"
    )
    return kernel(f"%x = {arguments}", [kind, kind], [kind])


def check(names: tuple[str, str], kind: str, a: Array, b: Array, expected: Array) -> None:
    dtype = DTYPES[kind]
    with np.errstate(all="ignore"):
        for name in names:
            (found,) = run(text_of(name, kind), [a, b], [dtype])
            np.testing.assert_array_equal(found, expected, err_msg=name)
        (found,) = through_llvm(text_of(names[1], kind), [a, b], [dtype])
        np.testing.assert_array_equal(found, expected, err_msg="through LLVM")


@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
@pytest.mark.parametrize("names", BINARY, ids=lambda names: names[0])
def test_integers(names: tuple[str, str], kind: str) -> None:
    a, b = integers(kind, 1), integers(kind, 2)
    b[1] = 3  # (least number) / -1 is undefined
    with np.errstate(all="ignore"):
        check(names, kind, a, b, BINARY[names](a, b))


@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
@pytest.mark.parametrize("names", SHIFTS, ids=lambda names: names[0])
def test_shifts(names: tuple[str, str], kind: str) -> None:
    a = integers(kind, 3)
    b = (np.arange(THREADS) % np.iinfo(DTYPES[kind]).bits).astype(DTYPES[kind])
    check(names, kind, a, b, SHIFTS[names](a, b))


@pytest.mark.parametrize("names", FLOATS, ids=lambda names: names[0])
def test_floats(names: tuple[str, str]) -> None:
    a, b = floats("f32", 4), floats("f32", 5)
    a[10], b[11], a[12] = np.nan, np.nan, 2.0**-149
    b[:2] = a[:2]  # zeros of one sign: which of two is the larger is not said
    with np.errstate(all="ignore"):
        check(names, "f32", a, b, FLOATS[names](a, b))


@pytest.mark.parametrize("names", list(FLOATS)[3:], ids=lambda names: names[0])
def test_zeros_infinities_and_nan_are_those_of_tensors(names: tuple[str, str]) -> None:
    """-0 is below +0 (arith.maximumf; PTX ISA, max); 0 / 0 is NaN, 1 / 0 an infinity."""
    ends = np.array([-0.0, 0.0, 1, -1, np.inf, -np.inf, np.nan, 2.0**-149], np.float32)
    pairs = np.array(np.meshgrid(ends, ends), np.float32).reshape(2, -1)
    a, b = (np.resize(values, THREADS) for values in pairs)
    with np.errstate(all="ignore"):
        expected = FLOAT[names[0]](a, b)
    assert set(zip(a.view(np.uint32).tolist(), b.view(np.uint32).tolist())) >= {(0, 1 << 31)}
    for name in names:
        (found,) = run(text_of(name, "f32"), [a, b], [np.float32])
        assert same_bits([expected], [found]), name
    (found,) = through_llvm(text_of(names[1], "f32"), [a, b], [np.float32])
    assert same_bits([expected], [found])


@pytest.mark.parametrize("name", ["arith.addf", "arith.subf", "arith.mulf", "arith.maximumf"])
def test_half_precision(name: str) -> None:
    """numpy rounds each f16 operation once, as PTX does."""
    a, b = floats("f16", 16), floats("f16", 17)
    function = next(f for names, f in FLOATS.items() if names[0] == name)
    (found,) = run(text_of(name, "f16"), [a, b], [np.float16])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, function(a, b))


def test_negation_keeps_zeros_apart() -> None:
    a = floats("f32", 18)
    for name in ("arith.negf", "llvm.fneg"):
        (found,) = run(kernel(f"%x = {name} %a : f32", ["f32"], ["f32"]), [a], [np.float32])
        np.testing.assert_array_equal(found.view(np.uint32), (-a).view(np.uint32))


PREDICATES = {
    "eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal,
    "sgt": np.greater, "sge": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("predicate", [*PREDICATES, "ult", "ule", "ugt", "uge"])
@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
def test_integer_comparisons(kind: str, predicate: str) -> None:
    a, b = integers(kind, 6), integers(kind, 7)
    b[::3] = a[::3]
    if predicate.startswith("u"):
        expected = PREDICATES["s" + predicate[1:]](unsigned(a), unsigned(b))
    else:
        expected = PREDICATES[predicate](a, b)
    for compare in (
        f"arith.cmpi {predicate}, %a, %b : {kind}",
        f'llvm.icmp "{predicate}" %a, %b : {kind}',
    ):
        body = f"%p = {compare}\n    %x = arith.extui %p : i1 to i32\n    %y = arith.extsi %p : i1 to i32"
        one, minus = run(kernel(body, [kind, kind], ["i32", "i32"]), [a, b], [np.int32, np.int32])
        np.testing.assert_array_equal(one, expected.astype(np.int32))
        np.testing.assert_array_equal(minus, -expected.astype(np.int32))


@pytest.mark.parametrize("predicate", ["oeq", "one", "olt", "ole", "ogt", "oge", "ord", "ueq", "une", "ult", "ule", "ugt", "uge", "uno"])  # fmt: skip
def test_float_comparisons(predicate: str) -> None:
    a, b = floats("f32", 8), floats("f32", 9)
    b[::3] = a[::3]
    a[5] = b[6] = a[7] = b[7] = np.nan
    nan = np.isnan(a) | np.isnan(b)
    if predicate in ("ord", "uno"):
        expected = nan if predicate == "uno" else ~nan
    else:
        compare = {"eq": np.equal, "ne": np.not_equal, **{k[1:]: v for k, v in PREDICATES.items()}}
        ordered = compare[predicate[1:]](a, b) & ~nan
        expected = ordered | nan if predicate[0] == "u" else ordered
    body = f"%p = arith.cmpf {predicate}, %a, %b : f32\n    %x = llvm.zext %p : i1 to i32"
    (found,) = run(kernel(body, ["f32", "f32"], ["i32"]), [a, b], [np.int32])
    np.testing.assert_array_equal(found, expected.astype(np.int32))


@pytest.mark.parametrize(
    ("op", "old", "new"),
    [("extui", "i16", "i32"), ("extsi", "i16", "i32"), ("extui", "i32", "i64"), ("extsi", "i32", "i64"),
     ("trunci", "i64", "i32"), ("trunci", "i32", "i16"), ("index_cast", "i32", "index")],
)  # fmt: skip
def test_widths(op: str, old: str, new: str) -> None:
    a = integers(old, 10)
    back = "" if new != "index" else "\n    %x = arith.index_cast %i : index to i64"
    kind = "i64" if new == "index" else new
    name = "i" if new == "index" else "x"
    text = kernel(f"%{name} = arith.{op} %a : {old} to {new}{back}", [old], [kind])
    (found,) = run(text, [a], [DTYPES[kind]])
    source = unsigned(a) if op == "extui" else a
    np.testing.assert_array_equal(found, source.astype(DTYPES[kind]))


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
def test_rounding_and_widening(narrow: str) -> None:
    a = floats("f32", 11)
    a[8:12] = 65519.99, 65520.0, 1.0 + 2**-11, 1.0 + 2**-8  # to infinity or not, ties
    for name in ("arith.truncf", "llvm.fptrunc"):
        (found,) = run(
            kernel(f"%x = {name} %a : f32 to {narrow}", ["f32"], [narrow]), [a], [DTYPES[narrow]]
        )
        with np.errstate(all="ignore"):
            expected = a.astype(DTYPES[narrow])
        np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))
    (wide,) = run(
        kernel(f"%x = arith.extf %a : {narrow} to f32", [narrow], ["f32"]), [expected], [np.float32]
    )
    np.testing.assert_array_equal(wide, expected.astype(np.float32))


def test_select_of_numbers_and_of_predicates() -> None:
    a, b = integers("i32", 12), integers("i32", 13)
    body = """%p = arith.cmpi slt, %a, %b : i32
    %zero = arith.constant 0 : i32
    %q = arith.cmpi sgt, %a, %zero : i32
    %r = arith.cmpi sgt, %b, %zero : i32
    %x = arith.select %p, %a, %b : i32
    %s = arith.select %p, %q, %r : i1
    %y = arith.extui %s : i1 to i32"""
    smaller, picked = run(
        kernel(body, ["i32", "i32"], ["i32", "i32"]), [a, b], [np.int32, np.int32]
    )
    np.testing.assert_array_equal(smaller, np.minimum(a, b))
    np.testing.assert_array_equal(picked, np.where(a < b, a > 0, b > 0).astype(np.int32))


@pytest.mark.parametrize(
    ("constant", "kind", "value"),
    [("-7 : i16", "i16", -7), ("-2147483648 : i32", "i32", -(2**31)), ("-5 : i64", "i64", -5),
     ("4611756662083026944 : i64", "i64", 4611756662083026944), ("1.5 : f32", "f32", 1.5),
     ("-0.1 : f16", "f16", -0.1), ("3.0e38 : bf16", "bf16", 3.0e38)],
)  # fmt: skip
def test_constants(constant: str, kind: str, value: float) -> None:
    for dialect in ("arith.constant", "llvm.mlir.constant"):
        written = constant if dialect.startswith("arith") else f"({constant}) : {kind}"
        (found,) = run(
            kernel(f"%x = {dialect} {written}", ["i32"], [kind]),
            [integers("i32", 1)],
            [DTYPES[kind]],
        )
        np.testing.assert_array_equal(found, np.full(THREADS, value).astype(DTYPES[kind]))


def test_user_code_adds_a_rule() -> None:
    name = "arith.mulsi_extended"
    assert name not in spelling

    @spelling(name)
    def spell(speller: Any, op: Any) -> None:
        a, b = (speller.read_one(operand) for operand in op.operands)
        speller.emit(f"mul.lo.s32 {speller.define_one(op.results[0])}, {a}, {b}")
        speller.emit(f"mul.hi.s32 {speller.define_one(op.results[1])}, {a}, {b}")

    try:
        a, b = integers("i32", 14), integers("i32", 15)
        text = kernel(f"%x, %y = {name} %a, %b : i32", ["i32", "i32"], ["i32", "i32"])
        low, high = run(text, [a, b], [np.int32, np.int32])
        product = a.astype(np.int64) * b
        np.testing.assert_array_equal(low, product.astype(np.int32))
        np.testing.assert_array_equal(high, (product >> 32).astype(np.int32))
    finally:
        del spelling._rules[name]

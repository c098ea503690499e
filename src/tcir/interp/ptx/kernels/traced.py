"""Traces the numpy function of an instruction to LLVM IR, by a call with `LaneVector` objects in
place of arrays.

The semantics of an instruction are written once, as a function of numpy arrays
(`tcir.interp.ptx.isa`). `LaneVector` implements numpy's functions, operators, `astype` and `view`
with numpy's result dtypes, and emits their computations on LLVM vectors. A function that needs
values (`if x.any():`), or that exchanges values between lanes, cannot be traced.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from tcir.machine.jit import native

LANES = 32
_BOOL = np.dtype(bool)
Function = Callable[..., Any]
"""Function of arrays or of `LaneVector` that returns one or a tuple of them."""


class Untraceable(Exception):
    """Raised for a function that only numpy can execute."""


def llvm_type(dtype: np.dtype) -> str:
    """The LLVM type of one lane."""
    if dtype.kind == "b":
        return "i1"
    if dtype.kind in "ui":
        return f"i{8 * dtype.itemsize}"
    name = {"e": "half", "f": "float", "d": "double"}.get(dtype.char)
    if name is None or name == "half" and not native.converts_half():
        raise Untraceable(f"lanes of {dtype}")
    return name


class FunctionText:
    """Lines of LLVM IR of a function; equal expressions share one value.

    declared: declarations of the intrinsics that the function calls
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self._names: dict[str, str] = {}

    def value(self, expression: str) -> str:
        """Returns the name of an expression's value, and adds its line if it is new."""
        name = self._names.get(expression)
        if name is None:
            name = self._names[expression] = f"%v{len(self._names)}"
            self.lines.append(f"  {name} = {expression}")
        return name


class LaneVector(NDArrayOperatorsMixin):
    """A vector of `count` numbers, one or several for each lane of a warp, during tracing.

    name: its LLVM value. most: upper bound of its integers, if known.
    """

    def __init__(
        self, code: FunctionText, name: str, dtype: np.dtype, count: int, most: int | None = None
    ) -> None:
        self.code, self.name, self.dtype, self.count = code, name, dtype, count
        self.most = most

    @property
    def type(self) -> str:
        """LLVM type of the vector."""
        return f"<{self.count} x {llvm_type(self.dtype)}>"

    def let(self, expression: str, dtype: np.dtype) -> LaneVector:
        """Adds an expression, and returns its value as a vector with as many numbers as this
        one.
        """
        return LaneVector(self.code, self.code.value(expression), dtype, self.count)

    def __bool__(self) -> bool:
        raise Untraceable("a decision that depends on values")

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise Untraceable("an array of values")

    def splat(self, value: object, dtype: np.dtype) -> LaneVector:
        """A vector with the same number in each lane, converted as numpy does."""
        number = np.array(value, dtype)
        if number.ndim or dtype.char == "e":
            raise Untraceable("an array that is no operand, or a half")
        name = f"splat ({llvm_type(dtype)} {_literal(number)})"
        most = int(number) if dtype.kind in "ui" and number >= 0 else None
        return LaneVector(self.code, name, dtype, self.count, most)

    def copy(self) -> LaneVector:
        """Returns this vector, since its value never changes."""
        return self

    def view(self, dtype: DTypeLike) -> LaneVector:
        """Traces `view`: the same bits as another type."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        if "b" in (dtype.kind, self.dtype.kind):
            raise Untraceable("the bits of bool")
        count = self.count * self.dtype.itemsize // dtype.itemsize
        found = LaneVector(self.code, self.name, dtype, count)
        if found.type != self.type:
            found.name = self.code.value(f"bitcast {self.type} {self.name} to {found.type}")
        return found

    def astype(self, dtype: DTypeLike, casting: str = "unsafe", copy: bool = True) -> LaneVector:
        """Traces `astype`, with C's conversions."""
        dtype = np.dtype(dtype)
        source, target = self.dtype, dtype
        if source == target:
            return self
        if target.kind == "b":
            return not_equal(self, self.splat(0, source))
        if target.char == "e" and source.char != "f":
            return cast(LaneVector, rounded_to_odd(self.astype(np.float64))).astype(target)
        word = _conversion(source, target)
        if word is None:
            return LaneVector(self.code, self.name, target, self.count)
        to = f"<{self.count} x {llvm_type(target)}>"
        found = self.let(f"{word} {self.type} {self.name} to {to}", target)
        found.most = self.most if word == "zext" else None
        return found

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> LaneVector:
        rule = RULES.get(ufunc)
        if rule is None or method != "__call__" or options:
            raise Untraceable(f"{ufunc.__name__} {method} {' '.join(options)}")
        kinds = [x.dtype if isinstance(x, LaneVector) else _kind(x) for x in inputs]
        if any(np.dtype(kind).char == "e" for kind in kinds):
            raise Untraceable(f"{ufunc.__name__} of halves")  # which are only converted
        *wanted, result = ufunc.resolve_dtypes((*kinds, None))
        operands = [self.operand(x, t) for x, t in zip(inputs, wanted, strict=True)]
        found = rule(*operands)
        if found.dtype != result:
            raise Untraceable(f"{ufunc.__name__} of {wanted}")
        return found

    def operand(self, value: object, dtype: np.dtype) -> LaneVector:
        """A value as a vector of this dtype, with the same number of lanes."""
        if not isinstance(value, LaneVector):
            return self.splat(value, dtype)
        if value.count != self.count:
            raise Untraceable("vectors of different lengths")
        return value.astype(dtype)

    def __array_function__(
        self,
        function: Callable[..., object],
        types: object,
        args: tuple[LaneVector, ...],
        options: dict[str, object],
    ) -> LaneVector:
        if function is np.where and len(args) == 3 and not options:
            return choose(*args)
        if function is np.copy and len(args) == 1 and not options:
            return args[0]
        if function is np.clip and len(args) == 3 and not options:
            return cast(LaneVector, np.minimum(np.maximum(args[0], args[1]), args[2]))
        if function in (np.zeros_like, np.ones_like) and len(args) <= 2 and not options:
            dtype = np.dtype(cast(DTypeLike, args[1])) if len(args) > 1 else args[0].dtype
            return args[0].splat(int(function is np.ones_like), dtype)
        raise Untraceable(function.__name__)


def choose(test: object, yes: object, no: object) -> LaneVector:
    """Traces `np.where`."""
    values = [one for one in (test, yes, no) if isinstance(one, LaneVector)]
    kinds = [one.dtype if isinstance(one, LaneVector) else one for one in (yes, no)]
    dtype = np.result_type(*cast(list[DTypeLike], kinds))
    t = values[0].operand(test, _BOOL)
    x, y = (values[0].operand(one, dtype) for one in (yes, no))
    return t.let(f"select {t.type} {t.name}, {x.type} {x.name}, {y.type} {y.name}", dtype)


def _kind(value: object) -> np.dtype | type:
    """The part of an operand that decides the dtype of a result; for a Python number only
    its type."""
    if type(value) in (int, float):
        return type(value)
    if type(value) is bool:
        return _BOOL
    if isinstance(value, np.generic | np.ndarray):
        return value.dtype
    raise Untraceable(f"an operand {value!r}")


def _literal(number: np.ndarray) -> str:
    if number.dtype.kind == "f":  # an f32 is spelled as the f64 of the same value
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(number)))[0]:016X}"
    return str(int(number))


def _conversion(source: np.dtype, target: np.dtype) -> str | None:
    """The instruction; None: the bits stay."""
    wider = target.itemsize - source.itemsize
    if "f" not in (source.kind, target.kind):
        if source.kind == "b" or wider > 0:
            return "sext" if source.kind == "i" else "zext"
        return "trunc" if wider else None
    if source.kind == target.kind:
        return "fpext" if wider > 0 else "fptrunc"
    if target.kind == "f":
        return "sitofp" if source.kind == "i" else "uitofp"
    return "fptosi" if target.kind == "i" else "fptoui"


# --- one rule for each function of numpy ------------------------------------------------

RULES: dict[np.ufunc, Callable[..., LaneVector]] = {}
"""Takes operands of the dtypes that numpy converts them to."""


def _rule(*functions: np.ufunc) -> Callable[[Callable[..., LaneVector]], Callable[..., LaneVector]]:
    def register(rule: Callable[..., LaneVector]) -> Callable[..., LaneVector]:
        RULES.update(dict.fromkeys(functions, rule))
        return rule

    return register


def _binary(of: dict[str, str]) -> Callable[[LaneVector, LaneVector], LaneVector]:
    """of: the instruction of LLVM by the kind of the numbers, `i` for all integers."""

    def rule(x: LaneVector, y: LaneVector) -> LaneVector:
        kind = "i" if x.dtype.kind == "u" else x.dtype.kind
        if kind not in of or x.dtype != y.dtype:
            raise Untraceable(f"an operation of {x.dtype} and {y.dtype}")
        return x.let(f"{of[kind]} {x.type} {x.name}, {y.name}", x.dtype)

    return rule


RULES |= {
    np.add: _binary({"i": "add", "f": "fadd", "b": "or"}),
    np.subtract: _binary({"i": "sub", "f": "fsub"}),
    np.multiply: _binary({"i": "mul", "f": "fmul", "b": "and"}),
    np.divide: _binary({"f": "fdiv"}),
    np.bitwise_and: _binary({"i": "and", "b": "and"}),
    np.bitwise_or: _binary({"i": "or", "b": "or"}),
    np.bitwise_xor: _binary({"i": "xor", "b": "xor"}),
    np.logical_and: _binary({"b": "and"}),
    np.logical_or: _binary({"b": "or"}),
    np.logical_xor: _binary({"b": "xor"}),
}


def _comparison(
    word: str, unordered: bool = False
) -> Callable[[LaneVector, LaneVector], LaneVector]:
    def rule(x: LaneVector, y: LaneVector) -> LaneVector:
        if x.dtype != y.dtype:
            raise Untraceable(f"a comparison of {x.dtype} and {y.dtype}")
        if x.dtype.kind == "f":
            test = f"fcmp {'u' if unordered else 'o'}{word}"
        elif word == "no":
            raise Untraceable(f"NaNs of {x.dtype}")
        else:
            sign = "" if word in ("eq", "ne") else "s" if x.dtype.kind == "i" else "u"
            test = f"icmp {sign}{word}"
        return x.let(f"{test} {x.type} {x.name}, {y.name}", _BOOL)

    return rule


equal, not_equal = _comparison("eq"), _comparison("ne", unordered=True)
less, greater = _comparison("lt"), _comparison("gt")
_isnan = _comparison("no", unordered=True)
RULES |= {
    np.equal: equal,
    np.not_equal: not_equal,
    np.less: less,
    np.greater: greater,
    np.less_equal: _comparison("le"),
    np.greater_equal: _comparison("ge"),
    np.isnan: lambda x: _isnan(x, x),
}


def call(intrinsic: str, *operands: LaneVector) -> LaneVector:
    """Calls an LLVM intrinsic whose operands and result have one type."""
    x = operands[0]
    element = llvm_type(x.dtype).replace("float", "f32").replace("double", "f64")
    name = f"@llvm.{intrinsic}.v{x.count}{element}"
    x.code.declared.add(f"declare {x.type} {name}({', '.join(one.type for one in operands)})")
    arguments = ", ".join(f"{one.type} {one.name}" for one in operands)
    return x.let(f"call {x.type} {name}({arguments})", x.dtype)


def _of_floats(intrinsic: str) -> Callable[..., LaneVector]:
    def rule(*operands: LaneVector) -> LaneVector:
        if any(one.dtype.kind != "f" for one in operands):
            raise Untraceable(f"{intrinsic} of integers")
        return call(intrinsic, *operands)

    return rule


RULES |= {
    np.sqrt: _of_floats("sqrt"),
    np.rint: _of_floats("rint"),
    np.floor: _of_floats("floor"),
    np.ceil: _of_floats("ceil"),
    np.trunc: _of_floats("trunc"),
    np.copysign: _of_floats("copysign"),
}


@_rule(np.negative)
def negative(x: LaneVector) -> LaneVector:
    """Traces -x."""
    if x.dtype.kind == "f":
        return x.let(f"fneg {x.type} {x.name}", x.dtype)
    return RULES[np.subtract](x.splat(0, x.dtype), x)


@_rule(np.invert, np.logical_not)
def invert(x: LaneVector) -> LaneVector:
    """Inverts every bit."""
    ones = x.splat(1 if x.dtype.kind == "b" else ~x.dtype.type(0), x.dtype)
    return RULES[np.bitwise_xor](x, ones)


@_rule(np.absolute)
def absolute(x: LaneVector) -> LaneVector:
    """Traces the magnitude; that of the least integer is the least integer itself, as in numpy."""
    if x.dtype.kind == "f":
        return call("fabs", x)
    return x if x.dtype.kind == "u" else choose(less(x, x.splat(0, x.dtype)), negative(x), x)


def _infinite(x: LaneVector) -> LaneVector:
    return x.splat(np.inf, x.dtype)


RULES |= {
    np.isfinite: lambda x: less(absolute(x), _infinite(x)),
    np.isinf: lambda x: equal(absolute(x), _infinite(x)),
    np.signbit: lambda x: x.view(f"i{x.dtype.itemsize}") < 0,
}


@_rule(np.nextafter)
def nextafter(x: LaneVector, y: LaneVector) -> LaneVector:
    """The neighbour of x in the direction of y."""
    size = x.dtype.itemsize
    bits, least = x.view(f"i{size}"), np.ones((), f"i{size}").view(x.dtype)
    moved = choose((x < y) == (x > 0), bits + 1, bits - 1).view(x.dtype)
    found = choose(x == 0, np.copysign(least[()], y), moved)
    return choose(np.isnan(x) | np.isnan(y), x + y, choose(x == y, y, found))


def _extreme(
    test: Callable[[LaneVector, LaneVector], LaneVector],
) -> Callable[[LaneVector, LaneVector], LaneVector]:
    def rule(x: LaneVector, y: LaneVector) -> LaneVector:
        if x.dtype.kind == "b":
            raise Untraceable("the extreme of bool")
        first = test(x, y)
        if x.dtype.kind == "f":  # a NaN is the result, the first one of two
            first = np.isnan(x) | first & ~np.isnan(y)
        return choose(first, x, y)

    return rule


@_rule(np.minimum)
def minimum(x: LaneVector, y: LaneVector) -> LaneVector:
    """The smaller operand; an unsigned result keeps the smaller upper bound."""
    found = _extreme(_comparison("le"))(x, y)
    if x.dtype.kind == "u":
        found.most = min((n for n in (x.most, y.most) if n is not None), default=None)
    return found


RULES[np.maximum] = _extreme(_comparison("ge"))


def _shift(left: bool) -> Callable[[LaneVector, LaneVector], LaneVector]:
    def rule(x: LaneVector, amount: LaneVector) -> LaneVector:
        """Traces a shift. As in numpy, a shift amount of the type's width or more gives 0, or
        copies of the sign.
        """
        width = 8 * x.dtype.itemsize
        word = "shl" if left else "ashr" if x.dtype.kind == "i" else "lshr"
        known = amount.most is not None and amount.most < width
        unsigned = amount.view(f"u{amount.dtype.itemsize}")
        within = (
            amount if known else call("umin", unsigned, unsigned.splat(width - 1, unsigned.dtype))
        )
        found = x.let(f"{word} {x.type} {x.name}, {within.name}", x.dtype)
        if known or word == "ashr":
            return found
        zero = x.splat(0, x.dtype)
        return choose(unsigned < width, found, zero)

    return rule


RULES |= {np.left_shift: _shift(True), np.right_shift: _shift(False)}


@_rule(np.bitwise_count)
def bitwise_count(x: LaneVector) -> LaneVector:
    """Number of ones in the magnitude."""
    return call("ctpop", absolute(x)).astype(np.uint8)


def _division(word: str) -> Callable[[LaneVector, LaneVector], LaneVector]:
    def rule(x: LaneVector, y: LaneVector) -> LaneVector:
        """Traces a division. As in numpy, a division by zero gives 0."""
        if x.dtype.kind != "u" or x.dtype != y.dtype:
            raise Untraceable("a division of signed numbers")
        zero, one = x.splat(0, x.dtype), x.splat(1, x.dtype)
        divisor = choose(equal(y, zero), one, y)
        found = x.let(f"{word} {x.type} {x.name}, {divisor.name}", x.dtype)
        return choose(equal(y, zero), zero, found)

    return rule


RULES |= {np.floor_divide: _division("udiv"), np.remainder: _division("urem")}


def are_lanes(*values: object) -> bool:
    """Whether these values are `LaneVector` objects, because their function is being traced.
    Functions use it where LLVM has an operation that numpy lacks, and to skip shortcuts that depend
    on values.
    """
    return LaneVector in map(type, values)


def rounded_to_odd(exact: Any) -> Any:
    """Converts float64 to float32, rounded to odd: an inexact result has an odd last bit, so that
    it may be rounded once more. exact: an array or a `LaneVector`
    """
    single = exact.astype(np.float32)
    back = single.astype(np.float64)
    above = np.abs(back) > np.abs(exact)
    toward = np.where(above, np.nextafter(single, np.float32(0)), single).astype(np.float32)
    inexact = (back != exact) & ~np.isnan(exact)
    odd = np.where(inexact, toward.view(np.uint32) | 1, single.view(np.uint32))
    return odd.astype(np.uint32).view(np.float32)


def intrinsic(name: str, *values: np.ndarray) -> np.ndarray:
    """Calls an LLVM intrinsic (see `call`) in a function of arrays that is being traced."""
    return cast(np.ndarray, call(name, *cast(tuple[LaneVector, ...], values)))


FAILURES = (Untraceable, AttributeError, TypeError, ValueError, OverflowError, IndexError)
"""Errors of a function that takes arrays of numbers only."""


def traced(
    fn: Function, sources: Sequence[np.dtype], result: np.dtype, which: int
) -> FunctionText | None:
    """Traces a function of the vectors %x, %y, %z (bytes for bool) to lines of LLVM IR. The last
    line defines %r, which is result number `which`, in the dtype `result`. Returns None if the
    function does not work on vectors.
    """
    code = FunctionText()
    try:
        found = fn(*(_source(code, name, t) for name, t in zip("xyz", sources, strict=False)))
        one = found[which] if isinstance(found, tuple) else found
        one = one.astype(result)
        if result.kind == "b":
            one = one.let(f"zext {one.type} {one.name} to <{one.count} x i8>", np.dtype("u1"))
    except FAILURES:
        return None
    if not isinstance(one, LaneVector) or one.count != LANES:
        return None
    code.lines.append(f"  %r = bitcast {one.type} {one.name} to {one.type}")
    return code


def _source(code: FunctionText, name: str, dtype: np.dtype) -> LaneVector:
    if dtype.kind == "b":
        return LaneVector(code, f"%{name}", np.dtype("u1"), LANES).astype(dtype)
    return LaneVector(code, f"%{name}", dtype, LANES)

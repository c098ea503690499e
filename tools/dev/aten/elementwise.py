"""Cases of elementwise ops: functions, activations, arithmetic, comparisons, choices and
conversions."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tcir.tools.dev.aten.case import Case, Function, Index, Mask, Shape

ROW: Shape = (3, 37)
ROWS = (ROW, ROW)
FUNCTIONS = [
    "abs",
    "neg",
    "sign",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "square",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "erf",
    "erfc",
    "floor",
    "ceil",
    "trunc",
    "round",
    "frac",
    "sinc",
    "deg2rad",
    "rad2deg",
    "relu",
    "logit",
    "isnan",
    "isinf",
    "isfinite",
    "isposinf",
    "isneginf",
    "signbit",
    "logical_not",
]
ACTIVATIONS = [
    "gelu",
    "silu",
    "softplus",
    "hardswish",
    "hardsigmoid",
    "elu",
    "selu",
    "celu",
    "leaky_relu",
    "relu6",
    "mish",
    "logsigmoid",
    "softsign",
    "hardtanh",
    "tanhshrink",
    "softshrink",
    "hardshrink",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "hypot",
    "logaddexp",
    "xlogy",
    "copysign",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
]
BROADCAST = ("add", "maximum", "fmax", "fmin", "atan2")
MORE: dict[str, tuple[Function, tuple[Shape | Mask, ...]]] = {
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), (ROW,)),
    "softplus beta": (lambda x: F.softplus(x, 2.0, 1.0), (ROW,)),
    "elu alpha": (lambda x: F.elu(x, 0.5), (ROW,)),
    "threshold": (lambda x: F.threshold(x, 0.25, -2.0), (ROW,)),
    "prelu": (F.prelu, ((3, 8, 5), (8,))),
    "glu": (lambda x: F.glu(x), ((3, 38),)),
    "add number": (lambda x: x + 1.5, (ROW,)),
    "rsub": (lambda x: 1.5 - x, (ROW,)),
    "add alpha": (lambda x, y: torch.add(x, y, alpha=0.5), ROWS),
    "sub alpha": (lambda x, y: torch.sub(x, y, alpha=3), ROWS),
    "mul number": (lambda x: x * -0.75, (ROW,)),
    "div number": (lambda x: x / 3, (ROW,)),
    "div of a number": (lambda x: 3 / x, (ROW,)),
    "div trunc": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), ROWS),
    "div floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), ROWS),
    "floor_divide number": (lambda x: torch.floor_divide(x, 3.0), (ROW,)),
    "remainder number": (lambda x: torch.remainder(x, 3.0), (ROW,)),
    "fmod number": (lambda x: torch.fmod(x, 3.0), (ROW,)),
    "pow 2": (lambda x: x**2, (ROW,)),
    "pow 3": (lambda x: x**3, (ROW,)),
    "pow 0.5": (lambda x: x.abs() ** 0.5, (ROW,)),
    "pow -1": (lambda x: x**-1, (ROW,)),
    "pow 1.7": (lambda x: x**1.7, (ROW,)),
    "pow of 2": (lambda x: torch.pow(2.0, x), (ROW,)),
    "gt number": (lambda x: x > 0.5, (ROW,)),
    "eq number": (lambda x: x == 0, (ROW,)),
    "eq of ones": (lambda x: torch.where(torch.ones(37, dtype=x.dtype) == 1, x + 1, 0), (ROW,)),
    "lt of ones": (lambda x: torch.where(torch.ones(37, dtype=x.dtype) < 2, x + 1, 0), (ROW,)),
    "addcmul": (lambda x, y, z: torch.addcmul(x, y, z, value=0.5), (*ROWS, ROW)),
    "addcdiv": (lambda x, y, z: torch.addcdiv(x, y, z.abs() + 0.5, value=0.5), (*ROWS, ROW)),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.25), ROWS),
    "lerp tensor": (torch.lerp, (*ROWS, ROW)),
    "where": (lambda x, y: torch.where(x > 0, x, y), ROWS),
    "where mask": (torch.where, (Mask(ROW), *ROWS)),
    "where number": (lambda m, x: torch.where(m, x, 0.5), (Mask(ROW), ROW)),
    "masked_fill": (lambda x, m: x.masked_fill(m, -1.0), (ROW, Mask(ROW))),
    "masked_fill -inf": (lambda x, m: x.masked_fill(m, -torch.inf), (ROW, Mask(ROW[1:]))),
    "bitwise_and": (torch.bitwise_and, (Mask(ROW), Mask(ROW))),
    "bitwise_or": (torch.bitwise_or, (Mask(ROW), Mask(ROW))),
    "bitwise_not": (torch.bitwise_not, (Mask(ROW),)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), (ROW,)),
    "clamp min": (lambda x: x.clamp(min=0.25), (ROW,)),
    "clamp max": (lambda x: x.clamp(max=0.25), (ROW,)),
    "clamp tensors": (torch.clamp, (*ROWS, ROW)),
    "nan_to_num": (lambda x: torch.nan_to_num(x, 1.0, 2.0, -2.0), (ROW,)),
    "to f32": (lambda x: x.float(), (ROW,)),
    "to f16": (lambda x: x.half(), (ROW,)),
    "to bf16": (lambda x: x.bfloat16(), (ROW,)),
    "to bool": (lambda x: x.bool(), (ROW,)),
    "f32 beside it": (lambda x, y: x + y.float() * 0.5, ROWS),
    "zeros_like": (lambda x: x + torch.zeros_like(x), (ROW,)),
    "full_like": (lambda x: x + torch.full_like(x, 0.25), (ROW,)),
}


def cases() -> list[Case]:
    """All cases of elementwise ops; their arguments include NaN, infinities and zeros."""
    made = [Case(name, getattr(torch, name), (ROW,), True) for name in FUNCTIONS]
    made += [Case(name, getattr(F, name), (ROW,), True) for name in ACTIVATIONS]
    made += [Case(name, getattr(torch, name), ROWS, True) for name in BINARY]
    for name in BROADCAST:
        made.append(Case(f"{name} broadcast", getattr(torch, name), ((3, 1), (37,)), True))
    made += [Case(name, function, given, True) for name, (function, given) in MORE.items()]
    numbers = Index(ROW, 1000)
    for name, function in {
        "floor_divide of integers": lambda n: (n - 500) // 7,
        "remainder of integers": lambda n: (n - 500) % 7,
        "div floor of integers": lambda n: torch.div(n - 500, 7, rounding_mode="floor"),
        "div trunc of integers": lambda n: torch.div(n - 500, 7, rounding_mode="trunc"),
    }.items():
        made.append(Case(name, function, (numbers,)))
    whole = "to i32", lambda x: (x * 10).int(), ((3, 37),)
    return [*made, Case(*whole), Case("to i64", lambda x: (x * 10).long(), (ROW,))]

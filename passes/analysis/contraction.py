"""Recognition of convolutions and matrix products by indexing maps and body.

Named ops also have indexing maps and a body, so a named op and the equivalent `linalg.generic`,
with its loops and operands in any order, are recognised in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from tcir._mlir import arith, ir, linalg
from tcir.dialect.attributes import UNSIGNED
from tcir.dialect.upstream import name_of, names
from tcir.passes.analysis.affine import Form, linear_forms, single_dim, single_dims
from tcir.passes.analysis.einsum import Einsum
from tcir.passes.emit.builders import i64s

OPERAND_TYPES = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8")
"""f32 is multiplied as tf32; the two f8 types mix."""
CHANNELS_LAST = FHWC = (0, 1, 2, 3)


@dataclass(frozen=True)
class Conv:
    """A convolution: operand numbers of input and filter, and the parameters in its maps.

    image, weights, out: numbers of the dimensions that are ``(n, h, w, g, c)``, ``(g, k, r, s, c)``
        and ``(n, p, q, g, k)``. With channels last, the numbers in ``image`` and ``out`` ascend
    groups, channels, filters: whether the convolution has g, c and k; a depthwise convolution has
        no c

    A 1-D convolution has no h, r and p; a 3-D convolution has another dimension before each of
    them.
    """

    x: int
    w: int
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    image: tuple[int, ...] = CHANNELS_LAST
    weights: tuple[int, ...] = FHWC
    out: tuple[int, ...] = CHANNELS_LAST
    groups: bool = False
    channels: bool = True
    filters: bool = True

    @property
    def taps(self) -> tuple[int, ...]:
        """The filter's dimensions ``(r, s)``."""
        first = self.groups + self.filters
        return self.weights[first : first + len(self.strides)]

    @property
    def is_channels_last(self) -> bool:
        """Whether the result has its channels last."""
        return list(self.out) == sorted(self.out)


@dataclass(frozen=True)
class Matmul:
    """A matrix product: operand numbers of A and B, and their layouts as in ``tc.matmul``."""

    a: int
    b: int
    a_layout: str
    b_layout: str


def is_contraction(op: ir.OpView) -> bool:
    """Whether `op` is a linalg op with two inputs, one output and a reduction loop."""
    if not op.operation.name.startswith("linalg.") or op.operation.name == "linalg.fill":
        return False
    maps = linalg.get_indexing_maps(op.operation)
    return maps is not None and any(n_loops(m) > len(value(m).results) for m in list(maps)[-1:])


def value(map_attribute: ir.Attribute) -> ir.AffineMap:
    """The affine map that an attribute holds."""
    return ir.AffineMapAttr(map_attribute).value


def n_loops(map_attribute: ir.Attribute) -> int:
    """The number of loops of an indexing map."""
    return int(value(map_attribute).n_dims)


def recognise(op: ir.OpView, order: Sequence[int] | None = None) -> Conv | Matmul | Einsum | None:
    """The contraction that the indexing maps of `op` describe; None if they describe neither a
    convolution nor a matrix product.

    order: order of the result's dimensions to assume; None: the op's own order
    """
    attributes = list(linalg.get_indexing_maps(op.operation) or ())  # of other ops None
    maps = [forms for m in attributes if (forms := linear_forms(value(m))) is not None]
    if len(attributes) != 3 or len(maps) != 3:
        return None
    out = single_dims(maps[2])
    if out is None:
        return None
    out = out if order is None else [out[d] for d in order]
    loops = n_loops(attributes[0])
    for lhs, rhs in permutations((0, 1)):
        found = _conv(loops, lhs, rhs, maps[lhs], maps[rhs], out) or _matmul(
            loops, lhs, rhs, maps[lhs], maps[rhs], out
        )
        if found:
            return found
    kinds = [operand.type for operand in list(op.operands)[:2]]
    if not all(isinstance(kind, ir.RankedTensorType) for kind in kinds):
        return None
    return Einsum.of([kind.shape for kind in kinds], maps[:2], out)


def _conv(
    loops: int, x: int, w: int, x_forms: list[Form], w_forms: list[Form], out: list[int]
) -> Conv | None:
    weights = single_dims(w_forms)
    windows = [d for d, form in enumerate(x_forms) if len(form) == 2 and min(form.values()) >= 1]
    plain = {d: single_dim(form) for d, form in enumerate(x_forms) if d not in windows}
    if weights is None or not 1 <= len(windows) <= 3 or None in plain.values():
        return None
    of_image = {loop: d for d, loop in plain.items()}
    sizes = [i for d in windows for i in x_forms[d] if i in out]
    taps = [i for d in windows for i in x_forms[d] if i not in out]
    batch = [i for i in of_image if i in out and i not in weights]
    groups = [i for i in of_image if i in out and i in weights]
    channels = [i for i in of_image if i in weights and i not in out]
    filters = [i for i in out if i in weights and i not in of_image]
    named = [*batch, *sizes, *groups, *filters, *taps, *channels]
    each = [len(found) for found in (batch, sizes, taps)]
    if each != [1, len(windows), len(windows)] or not {*taps} <= {*weights}:
        return None
    rest = [len(found) for found in (groups, channels, filters)]
    if max(rest) > 1 or not (groups or (channels and filters)):
        return None
    if sorted(named) != list(range(loops)):
        return None
    steps = [
        (x_forms[d][size], x_forms[d][tap])
        for d, size, tap in zip(windows, sizes, taps, strict=True)
        if size in x_forms[d] and tap in x_forms[d]
    ]
    if len(steps) != len(windows):
        return None
    strides, dilations = zip(*steps, strict=True)
    return Conv(
        x,
        w,
        strides,
        dilations,
        (of_image[batch[0]], *windows, *(of_image[i] for i in (*groups, *channels))),
        tuple(weights.index(i) for i in (*groups, *filters, *taps, *channels)),
        tuple(out.index(i) for i in (*batch, *sizes, *groups, *filters)),
        *(n > 0 for n in rest),
    )


def _matmul(
    loops: int, a: int, b: int, a_forms: list[Form], b_forms: list[Form], out: list[int]
) -> Matmul | None:
    a_dims, b_dims = single_dims(a_forms), single_dims(b_forms)
    if a_dims is None or b_dims is None or len(out) not in (2, 3) or loops != len(out) + 1:
        return None
    batch, (m, n) = out[:-2], out[-2:]
    (k,) = set(range(loops)) - set(out)
    layouts_a = {(*batch, m, k): "mk", (*batch, k, m): "km"}
    layouts_b = {(*batch, k, n): "kn", (*batch, n, k): "nk"}
    layouts_b |= {(k, n): "kn", (n, k): "nk"}  # one matrix for all of the batch
    if tuple(a_dims) in layouts_a and tuple(b_dims) in layouts_b:
        return Matmul(a, b, layouts_a[tuple(a_dims)], layouts_b[tuple(b_dims)])
    return None


def body_problem(op: ir.OpView) -> str:
    """Reason why the body of `op` is not ``out + ext(a) * ext(b)``; "" if it is.

    Sums must be f32, or i32 if the factors are integers.
    """
    block = op.operation.regions[0].blocks[0]
    kinds = [str(argument.type) for argument in block.arguments]
    if len(kinds) != 3:
        return f"expected two inputs and one output, got {len(kinds)} operands"
    problem = _types_problem(kinds)
    return problem or _body_form_problem(block, *_FORMS.get(kinds[0], _WIDENED))


def unsigned_factors(op: ir.OpView) -> list[int]:
    """For each input, 1 if the body extends it as an unsigned integer, else 0."""
    block = op.operation.regions[0].blocks[0]
    return [
        int(any(use.owner.name == "arith.extui" for use in block.arguments[i].uses)) for i in (0, 1)
    ]


def set_unsigned(raised: ir.OpView, op: ir.OpView, first: int, second: int) -> None:
    """Marks operands of the product `raised` as unsigned if the body of `op` extends them as
    unsigned integers.

    first, second: numbers of the two operands among the inputs of `op`
    """
    unsigned = unsigned_factors(op)
    if any(unsigned):
        raised.operation.attributes[UNSIGNED] = i64s([unsigned[first], unsigned[second]])


_WIDENED = (name_of(arith.AddFOp), name_of(arith.MulFOp), names(arith.ExtFOp))
_FORMS = {
    "f32": (name_of(arith.AddFOp), name_of(arith.MulFOp), names()),
    "i8": (name_of(arith.AddIOp), name_of(arith.MulIOp), names(arith.ExtSIOp, arith.ExtUIOp)),
}
"""Ops of the body by operand type: sum, product, extension of a factor."""


def _way_out(kinds: list[str]) -> str:
    """Advice for a product of two types of factors."""
    if all(kind in ("f16", "bf16", "f32") for kind in kinds):
        return (
            "widen both to f32 by ops of their own (arith.extf on tensors), and they are "
            "multiplied as tf32"
        )
    return "convert one of them first"


def _types_problem(kinds: list[str]) -> str:
    both_f8 = all(kind in ("f8E4M3FN", "f8E5M2") for kind in kinds[:2])
    if kinds[0] not in OPERAND_TYPES or (kinds[0] != kinds[1] and not both_f8):
        return (
            f"expected both inputs to be of one type out of {', '.join(OPERAND_TYPES)}, or both "
            f"f8, got {kinds[0]} and {kinds[1]} (tensor cores multiply no other pairs; "
            f"{_way_out(kinds[:2])})"
        )
    wanted = "i32" if kinds[0] == "i8" else "f32"
    if kinds[2] != wanted:
        return (
            f"expected an accumulator of {wanted} for inputs of {kinds[0]}, got {kinds[2]} "
            f"(tensor cores sum in 32 bits; make the outs operand of type {wanted})"
        )
    return ""


def _body_form_problem(
    block: ir.Block, total_op: str, product_op: str, widen: frozenset[str]
) -> str:
    (yielded,) = list(block)[-1].operands
    inner = _operands(yielded, total_op)
    if inner is None:
        return f"expected the body to yield {total_op}, got {_producer(yielded)}"
    total = block.arguments[2]
    products = [v for v in inner if v != total]
    factors = _operands(products[0], product_op) if len(products) == 1 else None
    if factors is None:
        return f"expected the body to add {product_op} to the output element, got " + " and ".join(
            _producer(v) for v in inner
        )
    sources = [_widened(v, widen) for v in factors]
    if None in sources:
        return (
            f"expected both factors to be widened with {' or '.join(widen)} before {product_op}, "
            "got " + " and ".join(_producer(v) for v in factors)
        )
    arguments = [block.arguments[0], block.arguments[1]]
    if sorted(arguments.index(s[0]) if s[0] in arguments else -1 for s in sources) != [0, 1]:  # type: ignore[index]
        return (
            "expected the factors to be one element of each input, got another value, such as "
            "an element of the output or a constant"
        )
    return ""


def _widened(factor: ir.Value, widen: frozenset[str]) -> list[ir.Value] | None:
    """The operand of the op of `widen` that defines `factor`; `factor` if there is none."""
    if not widen:
        return [factor]
    return next((found for name in widen if (found := _operands(factor, name))), None)


def _operands(value: ir.Value, name: str) -> list[ir.Value] | None:
    if isinstance(value, ir.BlockArgument) or value.owner.name != name:
        return None
    return list(value.owner.operands)


def _producer(value: ir.Value) -> str:
    return "a plain element" if isinstance(value, ir.BlockArgument) else str(value.owner.name)


_HINTS = (
    ("_q", "the named op for quantised convolutions subtracts zero points, which the tensor core "
        "does not; subtract them in an op before the convolution (its inputs are then i8 or f32), "
        "or correct the sums in an op after it"),
)  # fmt: skip


def unaccepted(op: ir.OpView) -> str:
    """Reason why no kernel computes an op of this name; "" if a kernel may compute it."""
    name = op.operation.name.removeprefix("linalg.")
    hint = next((hint for part, hint in _HINTS if part in name), None)
    return (
        f"expected a contraction that tensor cores can compute, got linalg.{name}: {hint}"
        if hint
        else ""
    )


def maps_problem(op: ir.OpView) -> str:
    """Reason why the indexing maps of `op` match no accepted form; it names the nearest form."""
    if problem := unaccepted(op):
        return problem
    maps = ", ".join(str(value(m)) for m in linalg.get_indexing_maps(op.operation))
    return (
        "expected the indexing maps of a convolution (x[n, p*sh + r*dh, q*sw + s*dw, c], w[r, s, "
        "c, k] or w[k, r, s, c], out[n, p, q, k]) or of a matrix product (a[m, k] or a[k, m], "
        "b[k, n] or b[n, k], out[m, n]; a leading batch index is allowed for all three, or for a "
        f"and out only; each letter may stand for several dimensions), got {maps}; transpose the "
        "operands into one of these forms"
    )

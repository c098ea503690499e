"""Draws the inputs of an execution from a seed.

On exact inputs every sum is exact in f32 and in a tensor core's fused sums, in any order, although
the values span the range of their formats:

- Each product is an integer below 2^width times a quantum 2^e, and `width` plus the bits of the
  number of products is at most 24, so no partial sum needs more than 24 bits.
- For fp8 operands of wgmma, `width` plus the bits of 128 products is at most 14, and half of the
  rows and columns have no negative numbers, so that sums of more products need more than 14 bits.
- The width and the exponent of a product are divided between its factors, separately for each index
  of the reduction loops: where A is large, B is small (scales likewise).
- Each row of A and each column of B is multiplied by its own power of two, which is constant along
  the sum. So the results also have many exponents, beyond both ends of the range of a narrow result
  type.
- An input to which the products are added is a multiple of the quantum of its sum, and has half of
  the 24 bits' range.

`tcir.program.chains` handles programs with several contractions.

Elementwise ops on the sums round as IEEE 754 requires, so their other inputs may have any values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import ml_dtypes
import numpy as np

from tcir.dialect.indexing import Index
from tcir.errors import InputError
from tcir.interp import OutputSpec
from tcir.interp.types import ends_of_integers, is_float, is_integer
from tcir.program.chain_inputs import draw_chain
from tcir.program.chains import Chain
from tcir.program.codes import any_codes, any_integers, ends_of
from tcir.program.factors import Contraction, Factor
from tcir.program.indices import numbers_of_places
from tcir.program.memory_image import PACKED_BITS
from tcir.program.signature import Signature
from tcir.program.spans import (
    EXACT_BITS,
    F32_TOP,
    PROMOTED_BITS,
    PROMOTED_PRODUCTS,
    MagnitudeSpan,
    Quantum,
    draw,
    draw_start,
    info_of,
    span_of,
    spread,
)
from tcir.program.special import Placing, Special, special_values

Array = np.ndarray[Any, Any]
Kind = Literal["integers", "random"]
KINDS: tuple[Kind, ...] = ("integers", "random")
ONE_BIT_EACH = 2
"""Width of a product of two factors of one bit each; the product is a power of two."""
LEAST_BITS = 2
"""Bits of the whole numbers for any program: magnitudes up to 3."""
ALL_CODES = 0
"""Value of `bits` for a program without sums, which is exact on any inputs."""
ROW_EXPONENTS = 16
"""Largest power of two between rows or columns, where the format has the range."""
SHARED_EXPONENTS = 6
"""Largest power of two between rows or columns that are added to the same number."""
_MANY_PRODUCTS = 8
"""Minimum length of a sum for which the factors at its first and last index are powers of two
only."""
FEW = 8
"""One in this many elements of the other inputs is at an end of its format, if an input has that
many."""
BESIDE = 16
"""Approximate exponent of the largest elements of inputs other than the factors."""
FRACTION = 4 / 3
"""One scalar factor is this multiple of a power of two, so that results are rounded."""
_MANY_EXPONENTS = 29
"""Number of exponents of f16 and wider, which need not show every code in one draw."""


def make_inputs(
    specs: Sequence[OutputSpec],
    seed: int,
    kind: Kind,
    contraction: Contraction | Chain | None = None,
    bits: int = LEAST_BITS,
    specials: Sequence[Special] | None = None,
    scalars: Mapping[int, float] | None = None,
    factors: Mapping[int, Array] | None = None,
) -> list[Array]:
    """Draws one array for each spec.

    Sizes of groups fit the available rows; some are 0, and some leave rows unused. Indices are
    arbitrary valid numbers, among them the first and the last.

    integers: values spanning their formats, on which `contraction` is exact; without a contraction,
              signed whole numbers of `bits` bits other than 0, or every code (`ALL_CODES`). Scalars
              are powers of two, except a scalar that is a factor of a contraction.
    random:   standard normal values rounded to the type, with magnitudes of at least 2^-6; types of
              4 and 6 bits have every code.
    specials: special values in the contraction; default: as many as there are rows to spare
    scalars:  by number of the input, for inputs that are no factors: a value instead of a power of
              two
    factors:  by number of the input: an array as a factor of the contraction, instead of a drawn
              one
    """
    if not isinstance(kind, str) or kind not in KINDS:
        got = f"'{kind}'" if isinstance(kind, str) else type(kind).__name__
        raise InputError(
            f"expected inputs of kind {' or '.join(KINDS)}, got {got}; to run on your own arrays: "
            "tcir.compile(…).run(…)"
        )
    if any(spec.says_where for spec in specs):
        plain = [replace(spec, groups=None, below=None, ends=None) for spec in specs]
        arrays = make_inputs(plain, seed, kind, contraction, bits, specials, scalars, factors)
        return [
            numbers_of_places(spec, seed + number) if spec.says_where else array
            for number, (spec, array) in enumerate(zip(specs, arrays, strict=True))
        ]
    generator = np.random.default_rng(seed)
    if kind == "integers" and bits == ALL_CODES:
        return [_any(spec, generator) for spec in specs]
    if kind != "integers" or contraction is None:
        return [_make(spec, generator, kind, bits or LEAST_BITS) for spec in specs]
    places: dict[int, Array | None] = {}
    if isinstance(contraction, Chain):
        drawn = draw_chain(contraction, specials, generator)
    else:
        scaled = any(not spec.shape and spec.dtype.kind == "f" for spec in specs)
        drawn = _exact(contraction, specials, F32_TOP - 2 * scaled, generator) | dict(factors or {})
        places = {factor.argument: factor.places for factor in contraction.factors}
    made: list[Array] = []
    for number, spec in enumerate(specs):
        place = places.get(number)
        if number not in drawn or place is not None:
            made.append(_beside(spec, generator))
        if number in drawn and place is None:
            made.append(_stored(drawn[number], spec, generator))
        elif number in drawn:
            made[number].reshape(-1)[place] = _stored(drawn[number], spec, generator)
    numbers = [n for n, spec in enumerate(specs) if not spec.shape and spec.dtype.kind == "f"]
    for number in numbers[:1]:  # one of them only, so that the order of their products is free
        made[number] = np.asarray(FRACTION * made[number], specs[number].dtype)
    for number, value in (scalars or {}).items():
        made[number] = np.asarray(value, specs[number].dtype)
    return made


def _exact(
    contraction: Contraction,
    specials: Sequence[Special] | None,
    top: int,
    generator: np.random.Generator,
) -> dict[int, Array]:
    """Draws the factors and the start of a contraction, by number of the input; top: see
    `Placing`."""
    drawn = _spanning(contraction, generator)
    placing = Placing(contraction, drawn, generator, top)
    placing.all(special_values(contraction) if specials is None else specials)
    if contraction.start is not None:
        placing.start(contraction.start)
    return drawn


def whole_bits(signature: Signature) -> int:
    """Returns the width, in bits, of whole numbers on which a program is assumed to be exact if it
    is not a single contraction.

    A kernel on tiles multiplies each input once, and sums at most as many products as its smallest
    input has elements. A program on tensors may compute anything from its inputs, so its largest
    whole number is 3.
    """
    specs = signature.inputs if signature.level == "tile" else ()
    sizes = [math.prod(spec.shape) for spec in specs if spec.shape and is_float(spec.dtype)]
    if not sizes:
        return LEAST_BITS
    bits = EXACT_BITS - (min(sizes) - 1).bit_length()
    return max(LEAST_BITS, bits // max(2, len(sizes)))


def _any(spec: OutputSpec, generator: np.random.Generator) -> Array:
    """Draws an input of a program without sums."""
    if spec.shape and spec.dtype.kind != "b":
        return any_codes(spec, generator)
    return _make(spec, generator, "integers", LEAST_BITS)


def _beside(spec: OutputSpec, generator: np.random.Generator) -> Array:
    """Draws an input that is not a factor of the sums, but added to them, or compared: any values,
    including the ends of its format. Scalars are powers of two."""
    if not spec.shape or spec.dtype.kind == "b" or spec.dtype == ml_dtypes.float8_e8m0fnu:
        return _make(spec, generator, "integers", LEAST_BITS)
    if is_integer(spec.dtype):
        return any_integers(spec.dtype, spec.shape, generator)
    exponents = generator.integers(-BESIDE, BESIDE, spec.shape, endpoint=True)
    values = generator.standard_normal(spec.shape) * 2.0**exponents
    values[generator.random(spec.shape) < 1 / 16] = 0
    largest = float(info_of(spec.dtype).max)
    signs = generator.choice([1] if spec.unsigned else [-1, 1], spec.shape)
    made = np.copysign(np.minimum(np.abs(values), largest), signs).astype(spec.dtype)
    if not spec.unsigned and (few := made.size // FEW):
        ends = generator.permutation(ends_of(spec.dtype))
        first = np.array([np.nan, np.inf, -np.inf]).astype(spec.dtype)
        places = generator.choice(made.size, few, replace=False)
        made.reshape(-1)[places] = np.resize(np.concatenate([first, ends]), few)
    return made


def _stored(values: Array, spec: OutputSpec, generator: np.random.Generator) -> Array:
    """Returns `values` as stored; for 4- and 6-bit codes in bytes, the ignored upper bits are
    random."""
    stored = values.view(spec.dtype)
    if values.dtype == spec.dtype:
        return stored
    width = PACKED_BITS[values.dtype]
    above = generator.integers(0, 256, values.shape, np.uint8) & np.uint8(256 - (1 << width))
    codes = values.view(np.uint8) & np.uint8((1 << width) - 1)
    return (codes | above).view(spec.dtype)


def _make(spec: OutputSpec, generator: np.random.Generator, kind: Kind, bits: int) -> Array:
    if kind == "random" and PACKED_BITS.get(spec.dtype, 8) < 8:
        return any_codes(spec, generator)
    if spec.dtype == ml_dtypes.float8_e8m0fnu:  # powers of two only, no sign
        return (2.0 ** generator.integers(-2, 3, spec.shape)).astype(spec.dtype)
    if kind == "integers" and spec.dtype.kind == "f" and not spec.shape:
        return np.asarray(2.0 ** generator.choice([-2, -1, 1, 2]), spec.dtype)
    if kind == "integers" or not is_float(spec.dtype):
        precision = LEAST_BITS if not is_float(spec.dtype) else info_of(spec.dtype).nmant + 1
        most = 1 << min(bits, precision)
        magnitude = generator.integers(1, most, spec.shape).astype(np.float64)
        signed = spec.dtype.kind not in "ub"
    else:
        magnitude = np.maximum(np.abs(generator.standard_normal(spec.shape)), 2.0**-6)
        signed = True
    signed = signed and not spec.unsigned
    sign = generator.choice([-1.0, 1.0], spec.shape) if signed else np.ones(spec.shape)
    return (sign * magnitude).astype(spec.dtype)


@dataclass(frozen=True)
class Budget:
    """Bits available to the products of two factors.

    width: bits of a product
    slack: number of binades by which the quanta of the products along a sum may differ
    """

    width: int
    slack: int


def _spanning(contraction: Contraction, generator: np.random.Generator) -> dict[int, Array]:
    """Draws the factors of `contraction`, by number of the input, so that its sums are exact."""
    pairs = contraction.pairs
    if all(is_integer(factor.dtype) for factor in contraction.factors):
        shared = contraction.shared_axes(pairs[0]) or (-1, -1)
        products = contraction.products
        return {
            f.argument: _integers(f, side, axis, products, generator)
            for side, (f, axis) in enumerate(zip(pairs[0], shared, strict=True))
        }
    start = contraction.start
    bits = EXACT_BITS - (start is not None) - (contraction.products - 1).bit_length()
    elements = max(span_of(f, 0).top for f in pairs[0])
    spans = [[span_of(f, elements) for f in pair] for pair in pairs]
    most = [sum(span.widths[1] for span in pair) for pair in spans]
    least = [1 + max(span.widths[1] for span in pair) for pair in spans]
    scales = min(most[1], max(least[1], bits - most[0])) if len(pairs) > 1 else 0
    if scales and bits - scales < least[0]:  # of long sums, down to one bit of each factor
        scales = max(ONE_BIT_EACH, bits - least[0])
    if contraction.promoted:
        partial = min(contraction.products, PROMOTED_PRODUCTS)
        bits = min(bits, PROMOTED_BITS - (partial - 1).bit_length())
    width = max(ONE_BIT_EACH, min(most[0], bits - scales))
    center = -EXACT_BITS // 2
    drawn: dict[int, Array] = {}
    budgets = [Budget(width, max(0, bits - scales - width)), Budget(scales, 0)]
    quanta: list[Quantum] = []
    for pair, span, budget in zip(pairs, spans, budgets):
        quanta.append(_fill_pair(drawn, contraction, pair, span, budget, center, generator))
        center -= quanta[-1].middle
    if start is not None:
        drawn[start.argument] = draw_start(start, quanta, generator)
    return drawn


def _integers(
    factor: Factor, side: int, shared: int, products: int, generator: np.random.Generator
) -> Array:
    """Draws values of an integer type over its whole range.

    In the second half of the longest parallel dimension they are so large that sums of more than
    1040 int8 products exceed 2^24: at least 96, or near the end of the range. The last row of the
    second side has such values with a negative sign.
    """
    lowest, highest = ends_of_integers(factor.dtype)
    values = any_integers(factor.dtype, factor.shape, generator)
    others = [(n, axis) for axis, n in enumerate(factor.shape) if axis != shared]
    if others:
        n, axis = max(others)
        half = np.moveaxis(values, axis, 0)[n // 2 :]
        enough = math.sqrt((1 << EXACT_BITS) * (1 + 1 / 16) / products) / 127
        low = round(highest * min(max(enough, 0.75), 0.99))
        half[...] = any_integers(factor.dtype, half.shape, generator, low)
        if side and lowest < 0:
            half[-1] = -1 - half[-1]
    return values


def _fill_pair(
    drawn: dict[int, Array],
    contraction: Contraction,
    pair: tuple[Factor, Factor],
    spans: list[MagnitudeSpan],
    budget: Budget,
    center: int,
    generator: np.random.Generator,
) -> Quantum:
    """Draws two factors whose quanta and widths balance along the sum.

    Returns their products' quantum, which in the middle row and column is 2^center if the formats
    have enough exponents.
    """
    along = contraction.shared_axes(pair)
    count = pair[0].shape[along[0]] if along else 1
    (least_a, most_a), (least_b, most_b) = (span.widths for span in spans)
    width, slack = budget.width, budget.slack
    low, high = max(least_a, width - most_b), min(most_a, width - least_b)
    share = generator.integers(low, high, count, endpoint=True)
    widths = [share, width - share]
    if count >= _MANY_PRODUCTS:  # the ends, where exponents go furthest, as narrow as they may be
        for w, least in zip(widths, (least_a, least_b), strict=True):
            w[0] = w[-1] = least
    rows = [contraction.own_axis(pair, side) for side in (0, 1)]
    ranges = [s.top - s.low - max(s.widths[1], 1) for s in spans]
    if None not in rows:
        slack = 0  # rows and columns show all codes
    room = None not in rows or min(ranges) >= _MANY_EXPONENTS  # and all codes of the other
    shifts = [
        min(_row_exponents(contraction, factor.dims[axis]), size // 2)
        if room and axis is not None
        else 0
        for factor, axis, size in zip(pair, rows, ranges, strict=True)
    ]
    lows = [span.low for span in spans]
    highs = [
        s.top - np.maximum(w, 1) - shift for s, w, shift in zip(spans, widths, shifts, strict=True)
    ]
    most = highs[0] + highs[1]
    total = max(sum(lows), (sum(lows) + int(most.min()) - slack) // 2)
    if min(ranges) >= _MANY_EXPONENTS:
        total = max(sum(lows), min(center - sum(shifts) // 2, 2 * total - sum(lows)))
    totals = total + generator.integers(0, np.minimum(slack, most - total), endpoint=True)
    bottom = np.maximum(lows[0], totals - highs[1])
    top = np.minimum(highs[0], totals - lows[1])
    first = generator.integers(bottom, top, endpoint=True)
    first[0], first[-1] = bottom[0], top[-1]
    exponents = [first, totals - first]
    quantum = Quantum(total, {})
    for side, factor in enumerate(pair):
        axis = along[side] if along else 0
        w, e = (spread(axis, x[side], factor) for x in (widths, exponents))
        if (row := rows[side]) is not None:
            own = generator.integers(0, shifts[side], factor.shape[row], endpoint=True)
            own[0], own[-1] = 0, shifts[side]
            e = e + spread(row, own, factor)
            index = factor.dims[row]
            assert index is not None
            quantum.own[index[0]] = own
        made = draw(factor, spans[side], w, e, generator)
        if contraction.promoted and row is not None:
            half = np.moveaxis(made, row, 0)[1::2]
            half[...] = np.abs(half)
        drawn[factor.argument] = made
    return quantum


def _row_exponents(contraction: Contraction, index: Index | None) -> int:
    """Returns the largest power of two between rows; less if all sums are added to the same
    number."""
    start = contraction.start
    return ROW_EXPONENTS if start is None or index in start.dims else SHARED_EXPONENTS


def poison(spec: OutputSpec) -> Array:
    """Returns an array of bytes 0xCB, the contents of an output before the program writes it."""
    return spec.unwritten()

"""Inputs of attention that expose errors which random numbers hide.

With random scores the maximum hardly rises after the first block of keys, and a lost key is a small
part of a sum. The inputs here give each row a single key, a maximum that rises from block to block,
or very negative scores. The mask may leave rows without keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.upstream import RESHAPES
from tcir.interp.online_softmax import log2_scale
from tcir.interp.tensor.attention import by_heads, keys_of
from tcir.interp.types import Array, dtype_of
from tcir.passes.analysis.strided import Strided, strided, view_ops
from tcir.program.group_sizes import sequence_ends
from tcir.program.spans import info_of

if TYPE_CHECKING:
    from tcir._mlir import ir

ALONE = 26
"""Powers of two by which the score of a row's own key is larger than the others' sum: these then
are less than half a unit of any result of 16 bits."""
RISE = 10
"""The same from one group of keys to the next: beyond what a maximum may lag by."""
GROUPS = (32, 128)
"""Keys of a group, in blocks of these sizes or of more."""
NEGATIVE = 1e5
"""Magnitude of logits where a finite number instead of -inf would be the largest."""
LARGEST = 2.0**15
"""The largest factor that all types of 16 bits have, and e5m2."""


@dataclass(frozen=True)
class Heads:
    """Sizes of the heads of an attention, and its mask.

    of:      sizes b, h, m, d, g, n, e (`tcir.dialect.tc.AttentionOp.extents`)
    c:       factor of a score in the exponent of 2: the exponential is 2^(c * score)
    keys:    mask [b, m, n] of the keys to which each row attends
    whole:   largest N for which the type of the values represents all integers up to N
    largest: largest factor that the types of queries and keys represent
    """

    of: Mapping[str, int]
    c: float
    keys: Array
    whole: int
    largest: float

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of an operand, with the dimension of heads before that of rows."""
        heads, last = {"q": ("hm", "d"), "k": ("gn", "d"), "v": ("gn", "e")}[name]
        return tuple(self.of[each] for each in ("b", *heads, last))

    def noise(self, draw: np.random.Generator) -> list[Array]:
        """Random inputs for which the weights of keys differ by a factor of about two."""
        size = 1 / math.sqrt(math.sqrt(self.of["d"]) * self.c)
        q, k, v = (draw.standard_normal(self.shape(name)) for name in "qkv")
        return [q * min(size, 1.0), k * min(size, 1.0), v]

    def whole_numbers(self, draw: np.random.Generator) -> list[Array]:
        """Inputs of whole numbers; each row of q has three numbers that are not zero, 1 or -1."""
        places = np.broadcast_to(np.arange(self.of["d"]), self.shape("q"))
        few = draw.permuted(places, axis=-1) < 3
        q = np.where(few, draw.choice([-1.0, 1.0], few.shape), 0.0)
        k, v = (draw.integers(-most, most + 1, self.shape(n)) for n, most in (("k", 2), ("v", 8)))
        return [q, k.astype(np.float64), v.astype(np.float64)]


Made = Callable[[Heads, np.random.Generator], "list[Array] | None"]


def routed(heads: Heads, draw: np.random.Generator) -> list[Array] | None:
    """Inputs for which each row of the result is the value of a single key. None if the type or the
    width of q does not allow it.

    Each key consists of the binary digits of its number, as signs, each of which is repeated
    several times.
    """
    of = heads.of
    bits = max(1, math.ceil(math.log2(of["n"])))
    copies = of["d"] // bits
    wanted = (ALONE + math.log2(of["n"])) / (2 * max(copies, 1) * heads.c)
    factor = 2.0 ** max(0, math.ceil(math.log2(wanted)))
    if not copies or factor > heads.largest:
        return None
    numbers = draw.permuted(np.broadcast_to(np.arange(of["n"]), heads.shape("k")[:-1]), axis=-1)
    k = np.zeros(heads.shape("k"))
    signs = np.where(numbers[..., None] >> np.arange(bits) & 1, 1, -1)
    k[..., : bits * copies] = np.repeat(signs, copies, axis=-1)
    rows = heads.keys.reshape(-1, of["n"])
    own = [draw.choice(np.flatnonzero(row)) if row.any() else 0 for row in rows]
    places = np.array(own).reshape(of["b"], 1, of["m"], 1)
    q = factor * np.take_along_axis(np.repeat(k, of["h"] // of["g"], axis=1), places, axis=2)
    digits = numbers[..., None] // np.where(np.arange(of["e"]) % 2, heads.whole, 1) % heads.whole
    return [q, k, 1.0 + digits]


def rising(heads: Heads, draw: np.random.Generator) -> list[Array]:
    """Inputs for which each group of keys raises the maximum of its rows: in ascending order of
    keys for some rows, in descending order for others.
    """
    q, k, v = heads.noise(draw)
    keys = np.arange(heads.of["n"])
    ramps = [way // size for size in GROUPS for way in (keys, keys[::-1])][: heads.of["d"]]
    q[..., : len(ramps)] = 0
    for number, ramp in enumerate(ramps):
        q[..., number :: len(ramps), number] = min(RISE / heads.c, heads.largest)
        k[..., number] = ramp
    return [q, k, v]


def negative(heads: Heads, draw: np.random.Generator) -> list[Array]:
    """Inputs with exact scores and logits that are all near -1e5."""
    q, k, v = heads.whole_numbers(draw)
    size = 2.0 ** round(math.log2(NEGATIVE * math.log2(math.e) / heads.c) / 2)
    q[..., 0], k[..., 0] = min(size, heads.largest), -min(size, heads.largest)
    return [q, k, v]


def powers(heads: Heads, draw: np.random.Generator) -> list[Array] | None:
    """Inputs with integer scores, for which exponentials are powers of two; None if the scale of
    the attention is not ln 2.
    """
    return heads.whole_numbers(draw) if heads.c == 1 else None


DRAWS: dict[str, tuple[Made, bool]] = {
    "rows of one key": (routed, True),
    "maxima that rise": (rising, False),
    "logits near -1e5": (negative, False),
    "powers of two": (powers, False),
}
"""By description: the function that makes the draw, and whether results of 16 bits are exact."""


def attention_alone(ops: Sequence[ir.OpView]) -> tc.AttentionOp | None:
    """Returns a program's only attention, if all other ops only make the views that are its
    operands.
    """
    found = next((op for op in ops if isinstance(op, tc.AttentionOp)), None)
    if found is None:
        return None
    operands = (found.q, found.k, found.v)
    views = {op for each in operands for op in view_ops(each, strided(each).base)}
    views |= {op.operation for op in ops if isinstance(op, RESHAPES) and op.src == found.out}
    return found if all(op == found or op.operation in views for op in ops) else None


def attention_inputs(
    op: tc.AttentionOp, arguments: Sequence[ir.Value], draw: np.random.Generator
) -> Iterator[tuple[str, dict[int, Array], bool]]:
    """Yields, for each set of inputs: a description, the arrays by input number, and whether
    results must agree in all bits.

    arguments: arguments of the function, whose only op is `op`
    """
    views = [strided(each) for each in (op.q, op.k, op.v)]
    bases = list(dict.fromkeys(view.base for view in views))
    scales = [op.q_scales, op.k_scales] if isinstance(op, tc.BlockScaledAttentionOp) else []
    given = [*bases, *op.limits, *scales]
    if not set(given) <= set(arguments) or _overlap(views, bases):
        return
    of, kinds = op.extents(), [dtype_of(each.type) for each in (op.q, op.k, op.v)]
    whole = int(2 / float(info_of(kinds[2]).eps))
    largest = min(
        LARGEST, *(2.0 ** math.floor(math.log2(float(info_of(k).max))) for k in kinds[:2])
    )
    if op.sequences:
        shape = tuple(op.limits[0].type.shape)
        limits = [sequence_ends(of[letter], shape, draw) for letter in "mn"]
        if op.limits[0] == op.limits[1]:
            limits = limits[:1] * 2
    else:
        most = np.linspace(of["n"], 0, of["b"], dtype=np.int32)
        limits = [draw.permuted(most) for _ in op.limits]
    if op.pages is not None:
        count, pages = op.pages * of["b"], op.k.type.shape[0]
        if pages < count:
            return
        table = draw.permutation(pages)[:count].reshape(of["b"], op.pages)
        limits = [np.concatenate([limits[0][:, None], table], axis=1).astype(np.int32)]
    keys = np.broadcast_to(keys_of(op, *limits), (of["b"], 1, of["m"], of["n"]))[:, 0]
    heads = Heads(of, float(log2_scale(op.factor)), keys, whole, largest)
    alone = not op.modified and not list(op.lse.uses) and math.frexp(op.out_factor)[0] == 0.5
    narrow = dtype_of(op.out.type).itemsize == 2 and alone
    layouts = [string(op, name) for name in ("q_layout", "kv_layout", "kv_layout")]
    for words, (make, exact) in DRAWS.items():
        if (made := make(heads, draw)) is not None:
            memory = {each: np.zeros(each.type.shape, dtype_of(each.type)) for each in bases}
            if op.pages is not None:
                made = [made[0], *(in_pages(op, each, limits[0][:, 1:]) for each in made[1:])]
            for each, layout, view in zip(made, layouts, views, strict=True):
                place = elements(view, memory[view.base])
                place[...] = by_heads(np.asarray(each), layout).reshape(place.shape)
            memory |= zip(op.limits, limits, strict=True)
            memory |= {each: np.ones(each.type.shape, dtype_of(each.type)) for each in scales}
            arrays = {arguments.index(each): array for each, array in memory.items()}
            yield words, arrays, exact and narrow


def in_pages(op: tc.AttentionOp, array: Array, table: Array) -> Array:
    """Distributes keys or values [b, g, n, d] over pages [pages, g, page, d], as the table of pages
    assigns them.
    """
    (b, g, n, d), count = array.shape, table.shape[1]
    found = np.zeros((op.k.type.shape[0], g, n // count, d))
    found[table] = array.reshape(b, g, count, n // count, d).swapaxes(1, 2)
    return found


def elements(view: Strided, memory: Array) -> Array:
    """Returns the elements of a view as an array that shares the memory of the view's base, with
    one dimension for each digit of the view.
    """
    flat, digits = memory.reshape(-1), [digit for dim in view.dims for digit in dim]
    strides = [stride * flat.itemsize for _, stride in digits]
    sizes = [size for size, _ in digits]
    words = flat[view.offset :].view(f"u{flat.itemsize}")  # numpy has no name for some types
    return np.lib.stride_tricks.as_strided(words, sizes, strides).view(memory.dtype)


def _overlap(views: Sequence[Strided], bases: Sequence[ir.Value]) -> bool:
    """Whether two views, or elements of one, are in one place."""
    count = {each: np.zeros(each.type.shape, np.int8) for each in bases}
    for view in views:
        elements(view, count[view.base])[...] += 1
    return any(each.max() > 1 for each in count.values())

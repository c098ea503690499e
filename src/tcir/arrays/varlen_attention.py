"""`compile_varlen_attention`: attention of sequences packed one after another, from arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import DTypeLike

from tcir.arrays.attention import (
    as_number,
    attention_band,
    attention_body,
    check_positive,
)
from tcir.arrays.kernel import ArrayKernel, build
from tcir.arrays.text import FunctionBuilder, TensorValue, element_of
from tcir.dialect.ops.attention import ATTENTION_TYPES
from tcir.errors import InputError, check_flags
from tcir.interp import Outcome
from tcir.interp.tensor.attention import wrong_ends
from tcir.interp.types import Array
from tcir.kernel import CallOptions
from tcir.target import DEFAULT_TARGET

NAME = "varlen_attention"
CU_SEQ = ("cu_seq_q", "cu_seq_k")


@dataclass(repr=False)
class VarlenKernel(ArrayKernel):
    """An `ArrayKernel` whose last inputs are cumulative lengths. A call of the kernel checks the
    lengths. `launch` does not check them, because only the GPU reads them, and it leaves rows that
    belong to no sequence unwritten.
    """

    def __call__(self, *buffers: Array, **options: Unpack[CallOptions]) -> Outcome:
        """Executes the PTX like `Kernel`. InputError for invalid cumulative lengths."""
        inputs = buffers[: len(self.signature.inputs)]
        check_cumulative(inputs[0], inputs[1], inputs[3], inputs[-1])
        return super().__call__(*buffers, **options)


def check_cumulative(q: Array, k: Array, cu_seq_q: Array, cu_seq_k: Array) -> None:
    """Raises InputError for cumulative lengths that do not partition the rows of `q`, or of `k`."""
    for name, ends, tensor in zip(CU_SEQ, (cu_seq_q, cu_seq_k), (q, k), strict=True):
        if problem := wrong_ends(np.asarray(ends), len(tensor), "tokens"):
            raise InputError(f"{NAME}: {name}: {problem}")


def compile_varlen_attention(
    q: Array,
    k: Array,
    v: Array,
    cu_seq_q: Array,
    cu_seq_k: Array | None = None,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    lse: bool = False,
    out: DTypeLike | str | None = None,
    pipeline: str = "attention",
    target: str = DEFAULT_TARGET.name,
    **options: Any,
) -> VarlenKernel:
    """Compiles softmax(scale q kᵀ) v of sequences packed one after another, without padding, to one
    kernel. A row attends only to the keys of its own sequence.

    q:        [T, H, D] of f16 or bf16, the tokens of all sequences; D is a multiple of 16, from 16
              to 256
    k, v:     [N, G, D] and [N, G, E] of the type of q; H is a multiple of G, as in
              `compile_attention`
    cu_seq_q: cumulative lengths of the S sequences, [S + 1] of int32: 0, then the end of each
        sequence. S is at most 1024. A sequence may be empty
    cu_seq_k: cumulative lengths of the keys, the last of which is N; None: they equal `cu_seq_q`,
        and the kernel has no input for them
    causal:   whether the last row of a sequence attends to all of its keys, the row before it to
              one key fewer, and so on
    window:   (before, after): numbers of keys before and after its own key to which a row attends;
              None: all. The own key of a sequence's last row is the last key
    lse:      whether the logarithms of the sums of exponentials, [H, T] of f32, are also a result
    scale, softcap, out, options: as in `compile_attention`

    The kernel is compiled for the number of tokens of these arrays; the lengths may differ in each
    call. Raises InputError for other shapes, types or numbers.
    """
    function = FunctionBuilder(NAME)
    q_, k_, v_ = (function.argument(n, x, (3,)) for n, x in (("q", q), ("k", k), ("v", v)))
    _check(q_, k_, v_)
    given = [cu_seq_q] if cu_seq_k is None else [cu_seq_q, cu_seq_k]
    ends = [_ends(function, *each) for each in zip(CU_SEQ, given)]
    if ends[0].shape != ends[-1].shape:
        raise InputError(
            f"{NAME}: expected cumulative lengths of as many sequences, got {CU_SEQ[0]} of "
            f"{list(ends[0].shape)} and {CU_SEQ[1]} of {list(ends[-1].shape)}"
        )
    check_cumulative(q, k, given[0], given[-1])
    (tokens, heads, depth), (keys, _, width) = q_.shape, v_.shape
    factor = 1 / math.sqrt(depth) if scale is None else as_number(NAME, "scale", scale)
    check_positive(NAME, scale=factor, softcap=softcap)
    check_flags(NAME, causal=causal, lse=lse)
    results = (q_.element, "f32")
    element = element_of(NAME, results[0] if out is None else out, results)
    body, factor = attention_body(function, None, softcap, factor, (1, heads, tokens, keys))
    operands = [*(_reshaped(function, x, (1, *x.shape)) for x in (q_, k_, v_)), ends[0], ends[-1]]
    whole = TensorValue("%o", (1, tokens, heads, width), element)
    sums = TensorValue("%sums", (1, heads, tokens), "f32")
    band = attention_band(causal, window, 0)
    names, types = (", ".join(map(str, operands)), ", ".join(each.type for each in operands))
    function.lines.append(
        f'{whole}, {sums} = "tc.attention"({names}) ({{{body}}}) {{scale = {factor!r} : f32, '
        f'q_layout = "bmhd", kv_layout = "bnhd", out_layout = "bmhd", aligned_ends{band}}} : '
        f"({types}) -> ({whole.type}, {sums.type})"
    )
    made = [_reshaped(function, each, each.shape[1:]) for each in ((whole, sums)[: 1 + lse])]
    return build(function, tuple(made), pipeline, target, options, VarlenKernel)


def _check(q: TensorValue, k: TensorValue, v: TensorValue) -> None:
    kinds = {each.element for each in (q, k, v)}
    if q.element not in ATTENTION_TYPES or len(kinds) > 1:
        raise InputError(
            f"{NAME}: q, k and v must have the same type, one of {', '.join(ATTENTION_TYPES)} (the "
            f"tensor core multiplies no others), got {q.element}, {k.element} and {v.element}"
        )
    fits = k.shape[:2] == v.shape[:2] and q.shape[2] == k.shape[2]
    if not fits or 0 in (*q.shape, *v.shape) or q.shape[1] % k.shape[1]:
        raise InputError(
            f"{NAME}: expected q of [T, H, D], k of [N, G, D] and v of [N, G, E], none of them "
            f"empty, H a multiple of G, got {list(q.shape)}, {list(k.shape)} and {list(v.shape)}"
        )


def _ends(function: FunctionBuilder, name: str, array: Array) -> TensorValue:
    """The argument of cumulative lengths."""
    tensor = function.argument(name, array, (1,))
    if tensor.element != "i32" or tensor.shape[0] < 2:
        raise InputError(
            f"{NAME}: {name}: expected int32 of shape [S + 1], cumulative lengths of S sequences, "
            f"got {tensor.element} of {list(tensor.shape)}"
        )
    return tensor


def _reshaped(function: FunctionBuilder, value: TensorValue, shape: Sequence[int]) -> TensorValue:
    """A tensor with a leading dimension of extent 1 more, or less."""
    rank = max(len(shape), len(value.shape))
    groups = [[0, 1], *([n] for n in range(2, rank))]
    if len(shape) < rank:
        text = f"tensor.collapse_shape {value} {groups} : {value.type} into {{type}}"
    else:
        text = (
            f"tensor.expand_shape {value} {groups} output_shape {[*shape]} : {value.type} into "
            "{type}"
        )
    return function.op(text, shape, value.element)

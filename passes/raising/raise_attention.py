"""raise-attention: raises two products with a softmax between them to ``tc.attention``."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tcir._mlir import func, ir
from tcir.dialect import rules, tc
from tcir.passes.analysis.contraction import is_contraction
from tcir.passes.analysis.element_graph import NotRaised
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import no_kernel
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import erase_unread, functions_with_body
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark

if TYPE_CHECKING:
    from tcir.passes.raising.attention.lengths import Counted
    from tcir.passes.raising.attention.pattern import Pattern

HALF_UNITS = {"f16": -11, "bf16": -8}
"""Exponent of the relative rounding error, by type."""
PREFIX = "not raised to tc.attention: "


@register_pass
@dataclass(frozen=True)
class RaiseAttention(Pass):
    """Raises attention written with ``linalg``, ``arith`` and ``math`` ops.

    Before::

        %s = linalg.batch_matmul ins(%q, %kt)            // times 0.125, -inf above the diagonal
        %m = linalg.reduce ins(%s) { arith.maximumf }
        %e = … math.exp (arith.subf %s, %m)
        %l = linalg.reduce ins(%e) { arith.addf }
        %w = … arith.divf %e, %l
        %o = linalg.batch_matmul ins(%w, %v)

    After::

        %o, %lse = "tc.attention"(%q, %k, %v) ({}) {scale = 0.125 : f32, causal_offset = 0 : i64, …}

    The pass evaluates elements as expressions, so reshapes, transposes of heads, widening to f32,
    factors on either side, repeated heads and zeros for rows without keys may be written in any
    form. Masks of constants are evaluated for every row and key; if a mask keeps a band of keys in
    each row, it becomes the offsets of that band. Masks that depend on batch and key become numbers
    of keys (``limits``), which a launch computes. All other masks are computed in the body. The
    operands of ``tc.attention`` are the 16-bit tensors that are closest to the products. If a part
    is not attention, the program stays as it is, and a remark names the first such op.

    Changes rounding: scores become f32 sums of products of the 16-bit operands, and the
    exponentials are rounded to the type of the values, instead of the weights. A remark states both
    changes, with the error bound.
    """

    name: ClassVar[str] = "raise-attention"

    def run(self, module: ir.Module) -> None:
        for function in functions_with_body(module):
            if len(function.regions[0].blocks) == 1 and _has_exponentials(function):
                _raise_all(function, target_of(module))


def _has_exponentials(function: func.FuncOp) -> bool:
    ops = [each.operation for each in function.entry_block]
    inner = [b.operation for op in ops for r in op.regions for block in r for b in block]
    return any(op.name in ("math.exp", "linalg.softmax") for op in (*ops, *inner))


def _raise_all(function: func.FuncOp, target: str) -> None:
    raised = False
    counted: Counted = {}
    for op in list(function.entry_block):
        if not is_contraction(op):
            continue
        try:
            made = _raise(op.operation, target, counted)
        except NotRaised as why:
            remark((why.op or op.operation).opview, PREFIX + why.words)
            continue
        raised |= made
    if raised or counted:
        erase_unread(function)


def _raise(op: ir.Operation, target: str, counted: Counted) -> bool:
    """Replaces the sums of an op if they are attention; returns whether they are."""
    from tcir.passes.raising.attention.pattern import patterns_of  # needs numpy, as few programs do

    problem: NotRaised | None = None
    patterns = patterns_of(op)[::-1]
    for as_beside, found in itertools.product((True, False), patterns):
        try:
            made = _build(found, target, counted, as_beside)
        except NotRaised as why:
            problem = why
            continue
        remark(made, _summary(made, found))
        return True
    if problem is not None:
        raise problem
    return False


def _build(found: Pattern, target: str, counted: Counted, as_beside: bool) -> tc.AttentionOp:
    from tcir.passes.raising.attention.body import Body
    from tcir.passes.raising.attention.roles import roles_of

    last, roles = found.result.owner.operation, roles_of(found, as_beside)
    body = Body.of(found, roles)
    if body.without and body.kept.sentinel:
        raise NotRaised(
            last,
            "expected -inf where rows have no keys, got a finite number: it makes their weights "
            "equal, not zero",
        )
    if body.without and not found.guarded:
        words = f"got {body.without} rows without a key that are NaN in the program"
        raise NotRaised(
            last, f"expected a key for every row, or zeros for rows without one, {words}"
        )
    f32 = ir.F32Type.get()
    with ir.InsertionPoint(last), last.location:
        q, k, v = (reshape(each.tensor, each.shape) for each in (roles.q, roles.k, roles.v))
        kind = ir.RankedTensorType.get(roles.out.shape, found.result.type.element_type)
        of = dict(zip(roles.q.layout, roles.q.shape, strict=True))
        rows = ir.RankedTensorType.get([of["b"], of["h"], of["m"]], f32)
        lengths = body.lengths(counted)
        made = tc.AttentionOp(
            q, k, v, lengths, scale=ir.FloatAttr.get(f32, body.scale),
            q_layout=ir.StringAttr.get(roles.q.layout),
            kv_layout=ir.StringAttr.get(roles.k.layout),
            out_layout=ir.StringAttr.get(roles.out.layout), out=kind, lse=rows,
        )  # fmt: skip
        body.write(made)
        if problem := rules.broken_rule(made) or no_kernel(made, target):
            made.operation.erase()
            raise NotRaised(last, problem)
        result = reshape(made.out, found.result.type.shape)
    found.result.replace_all_uses_with(result)
    return made


def _summary(op: tc.AttentionOp, found: Pattern) -> str:
    of, scores = op.extents(), f"{op.band}{_body(op)}"
    if op.lengths is not None:
        scores += ", numbers of keys for each batch"
    shared = "" if of["h"] == of["g"] else f" in groups of {of['h'] // of['g']}"
    kind = str(op.v.type.element_type)
    words = (
        f"raised to tc.attention: {of['b']} x {of['h']} heads{shared}, {of['m']} rows, {of['n']} "
        f"keys, {of['d']} elements, scale {op.factor:g}, {scores}; exponentials are rounded to "
        f"{kind}, which moves a result by up to 2^{HALF_UNITS[kind]} of the mean magnitude of its "
        "values, weighted"
    )
    if found.rounded:
        words += (
            f"; the program rounds its {' and its '.join(found.rounded)} to 16 bits, this does not"
        )
    if not found.guarded:
        words += "; a row whose scores are all -inf is 0, not NaN"
    return words


def _body(op: tc.AttentionOp) -> str:
    """Describes what the body computes, and which tensors it reads."""
    names = [each.operation.name for block in op.body for each in list(block)[:-1]]
    computed = [n for n in dict.fromkeys(names) if n not in ("arith.constant", "tc.element")]
    read = [str(each.tensor.type) for each in op.elements]
    words = f", scores by {', '.join(computed)}" if computed else ""
    return f"{words} of {', '.join(read)}" if read else words

"""Indexing maps whose results are linear in the loops, as forms: coefficients by dimension."""

from __future__ import annotations

from typing import TypeAlias

from tcir._mlir import ir

Form: TypeAlias = dict[int, int]
"""A sum of loop dimensions: dimension -> coefficient."""


def linear_form(expression: ir.AffineExpr) -> Form | None:
    """`expression` as a linear `Form`; None if it has a constant, a symbol, a division or a
    product."""
    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position: 1}
    if isinstance(expression, ir.AffineAddExpr):
        left, right = linear_form(expression.lhs), linear_form(expression.rhs)
        if left is None or right is None or left.keys() & right.keys():
            return None
        return left | right
    if isinstance(expression, ir.AffineMulExpr):
        for factor, rest in (
            (expression.lhs, expression.rhs),
            (expression.rhs, expression.lhs),
        ):
            form = linear_form(rest)
            if isinstance(factor, ir.AffineConstantExpr) and form is not None:
                return {dim: coefficient * factor.value for dim, coefficient in form.items()}
    return None


def linear_forms(affine_map: ir.AffineMap) -> list[Form] | None:
    """All results of `affine_map` as linear forms; None if one of them is not linear."""
    forms = [linear_form(result) for result in affine_map.results]
    return None if None in forms else forms  # type: ignore[return-value]


def single_dim(form: Form) -> int | None:
    """The dimension if `form` is a single dimension with coefficient 1; None for any other form."""
    if len(form) == 1 and next(iter(form.values())) == 1:
        return next(iter(form))
    return None


def single_dims(forms: list[Form]) -> list[int] | None:
    """The dimensions if each form is a single dimension and no dimension occurs twice; None
    otherwise."""
    dims = [single_dim(form) for form in forms]
    if None in dims or len(set(dims)) != len(dims):
        return None
    return dims  # type: ignore[return-value]

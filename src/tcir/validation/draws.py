"""Sets of inputs on which a program is executed, and the program's results on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tcir.interp.types import Array
from tcir.program.boundary import PlacedInputs, boundary_inputs
from tcir.program.boundary.gradients import following
from tcir.program.chain_inputs import chain_alone, chain_specials
from tcir.program.chains import Chain, chain_of
from tcir.program.constants import constants_of
from tcir.program.factors import Contraction, contraction_of, is_elementwise
from tcir.program.inputs import ALL_CODES, Kind, make_inputs, whole_bits
from tcir.program.memory_image import images
from tcir.program.signature import Signature
from tcir.program.special import Special, alone, special_values
from tcir.threads import cached_property
from tcir.validation import bounds
from tcir.validation.against_f64 import Precise
from tcir.validation.settings import Settings

if TYPE_CHECKING:
    from tcir._mlir import ir

SMALL = 2.0**-13
"""A scalar factor with which the largest sums of whole numbers are near 127."""


OPEN = 1 / 2
"""Fraction of results on integers that may be open: NaN, infinities and the largest numbers are
among the inputs, and the result of a function on these is not always certain."""


@dataclass(frozen=True)
class Bound:
    """Allowed errors of the results of a draw.

    errors:  largest error of each element
    squares: mean square error of each element
    limits:  for each result, the largest allowed mean of error^2 / square
    """

    errors: list[Array]
    squares: list[Array]
    limits: list[float]

    @staticmethod
    def of(
        errors: list[Array], squares: list[Array], reference: list[Array], *, open_share: float = 0
    ) -> Bound | None:
        """Returns the bound of a draw, in which elements with an infinite bound may have any value.
        Returns None if a result has more such elements than the fraction `open_share`.
        """
        finite = [np.isfinite(error) for error in errors]
        if any(each.size and np.mean(~each) > open_share for each in finite):
            return None
        if open_share == 1:
            return Bound(errors, squares, [])
        squares = [np.where(kept, each, 0.0) for kept, each in zip(finite, squares, strict=True)]
        return Bound(errors, squares, list(map(bounds.squares_limit, squares, reference)))

    def checked(self, reference: Sequence[Array], *, nan: bool) -> float:
        """Share of the elements whose bound is tight enough to show an error: it excludes both the
        result 0 and an error of 2^-10 of the row's largest number. nan: whether elements that are
        NaN count
        """
        shares = []
        for error, values in zip(self.errors, reference, strict=True):
            with np.errstate(invalid="ignore"):
                size = np.abs(values.astype(np.float64))
            rows = np.where(np.isfinite(size), size, 0)
            rows = rows.max(axis=-1, keepdims=True, initial=0) if rows.ndim else rows
            open_ = (error != 0) & ~(error < np.maximum(size, rows * 2.0**-10))
            shares.append(1 - np.sum(open_ if nan else open_ | np.isnan(size)) / max(size.size, 1))
        return min(shares, default=1.0)


@dataclass
class Draw:
    """One set of inputs, and the results of the input program on it.

    words:    description of the inputs, for the report
    bound:    allowed errors of later results; None: they must agree bit for bit
    no_bound: reason why there is no bound
    precise:  if there is no bound: results in f64, against which later results are judged
    rounded:  whether sums round, so that the execution shows nothing without a bound
    exact:    whether later results must agree bit for bit, so that no bound is derived
    partly:   whether all elements may be without a bound
    exponentials: whether the inputs test only launches with exponentials, so that tensor rules may
              compute the other launches
    """

    inputs: list[Array]
    words: str = ""
    reference: list[Array] = field(default_factory=list)
    bound: Bound | None = None
    no_bound: str = ""
    precise: Precise | None = None
    rounded: bool = False
    exact: bool = False
    partly: bool = False
    exponentials: bool = False

    @cached_property
    def images(self) -> list[Array]:
        """The memory images of the inputs, which kernels below the tensor level receive."""
        return images(self.inputs)


@dataclass(frozen=True)
class Draws:
    """All sets of inputs of a program.

    main:    inputs that are executed in every completion order
    more:    further sets of inputs, executed only in the order of issue
    known:   whether the inputs are drawn so that all sums are exact
    spans:   whether the inputs span the range of their formats
    special: whether the inputs also have special values
    few:     whether most values are near 1, although the program has no sums that require that
    """

    contraction: Contraction | None
    main: Draw
    more: list[Draw]
    known: bool = True
    spans: bool = True
    special: bool = True
    few: bool = False

    @staticmethod
    def of(module: ir.Module, signature: Signature, settings: Settings) -> Draws:
        """Draws the inputs of the program in `module` according to `settings`."""
        bits = ALL_CODES if is_elementwise(module, signature) else whole_bits(signature)
        free = not constants_of(module)  # factors may be any numbers
        follow = following(module, signature)
        contraction = contraction_of(module, signature) if free else None
        sums = contraction or (chain_of(module, signature) if bits and free else None)

        def drawn(
            specials: Sequence[Special] | None = None,
            scalars: Mapping[int, float] | None = None,
            kind: Kind = settings.inputs,
            factors: Mapping[int, Array] | None = None,
        ) -> list[Array]:
            made = make_inputs(
                signature.inputs, settings.seed, kind, sums, bits, specials, scalars, factors
            )
            return follow(made)

        def placed(at: PlacedInputs) -> Draw:
            special = None if contraction is None or at.arrays else ()
            inputs = at.put_into(drawn(special, factors=at.factors))
            return Draw(inputs, at.words, exact=at.exact)

        exact = settings.inputs == "integers"
        lists = _alone(sums) if exact else []
        more = [Draw(drawn(specials), _sides(specials)) for specials in lists]
        for number in _scalars(signature) if exact and sums is not None else ():
            small = (SMALL,) if contraction is not None and contraction.whole else ()
            for value in (0.0, np.inf, *small):
                words = f"{value:g} in argument {number}"
                more.append(Draw(drawn(scalars={number: value}), words))
        if exact:
            more += map(placed, boundary_inputs(module, signature, contraction, settings.seed))
        known = sums is not None or bits == ALL_CODES
        several = isinstance(sums, Chain) and bool(sums.contractions)
        special = isinstance(sums, Chain) or sums is None or bool(lists or special_values(sums))
        main = Draw(drawn(), _words(settings, sums, bits, more))
        no_sums = isinstance(sums, Chain) and not sums.contractions
        spans = exact and known and not several
        return Draws(contraction, main, more, known, spans, special, exact and no_sums)


def _alone(sums: Contraction | Chain | None) -> list[list[Special]]:
    """Special values that get executions of their own."""
    if isinstance(sums, Chain):
        return chain_alone(sums)
    return [] if sums is None else alone(sums)


def _sides(specials: Sequence[Special]) -> str:
    return ", ".join(
        f"{special.what} in {'AB'[special.side]}"
        + (f" of contraction {special.contraction + 1}" if special.contraction else "")
        for special in specials
    )


def _scalars(signature: Signature) -> list[int]:
    """Numbers of the scalar inputs, such as alpha and beta; global scales must be finite."""
    specs = enumerate(signature.inputs)
    return [
        n for n, spec in specs if not spec.shape and spec.dtype.kind == "f" and not spec.unsigned
    ]


def _words(
    settings: Settings, sums: Contraction | Chain | None, bits: int, more: list[Draw]
) -> str:
    if settings.inputs != "integers":
        return f"{settings.inputs}, seed {settings.seed}"
    if bits == ALL_CODES:
        return f"no sums: all codes, seed {settings.seed}"
    words = (
        "integers"
        if sums is not None
        else f"sums of unknown order: integers up to {(1 << bits) - 1}"
    )
    words += f", seed {settings.seed}"
    if isinstance(sums, Chain):
        several = f"; {len(sums.contractions)} contractions: {sums.share} bits of each factor"
        words += several if sums.contractions else "; sums of whole numbers only"
    elif sums is not None and sums.start is not None:
        words += "; added to multiples of the sums' quantum"
    if specials := _specials(sums):
        words += f"; special: {', '.join(dict.fromkeys(each.what for each in specials))}"
    return words + (f"; alone: {', '.join(draw.words for draw in more)}" if more else "")


def _specials(sums: Contraction | Chain | None) -> list[Special]:
    """Special values that whole numbers are drawn beside."""
    if sums is None:
        return []
    return chain_specials(sums) if isinstance(sums, Chain) else special_values(sums)

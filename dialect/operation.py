"""The base class of the ops: their traits, and their verification by rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from tcir._mlir import ext, ir
from tcir.dialect import rules
from tcir.dialect.base import DIALECTS, TC, Dialect
from tcir.dialect.declared import OPERAND_SIZES
from tcir.dialect.indexing import Indexing

Issuer = Literal["thread", "warp", "cta", ""]
Arithmetic = Literal["products", "codes", "rounded", ""]


@dataclass(frozen=True)
class Traits:
    """Facts about an op for passes, rules, executors and the generated page. An op class states
    them as class keywords.

    issued_by:    ``"thread"``: one elected thread; ``"warp"``: all threads of a warp together;
                  ``"cta"``: the CTA as a whole, outside roles (PTX ISA 9.7.16.5, table 46);
                  left out: any threads
    role:         the role whose warps execute it (producer, mma, epilogue, … of the kernel's warp
                  map); assign-roles requires it of every op with effects; left out: any role, or
                  none
    in_shared:    alignment in bytes of its result, an object of ``nbytes`` bytes in shared memory,
                  placed by the attribute ``offset``
    reads_shared: operands that are shared tiles it reads
    loads:        the global tensor, an operand, that it reads through a pointer
    stores:       the operand that it writes: a global tensor, or the tensor map of a global tensor
    completed_by: the op that signals its completion; left out: it completes before the next op
    pure:         whether every role may duplicate it
    async_only:   whether it is only legal in a kernel with ``tc.async``
    lowered_by:   passes that lower it, if no rule of ``convert-tc-to-nvvm`` lowers it
    counted:      whether it needs no ``operandSegmentSizes``: at most one operand is optional or
                  variadic

    Ops on tensors also have these, for inputs and bounds of validation:

    arithmetic:   ``"products"``: sums of products of its operands, see `Op.indexing`;
                  ``"codes"``: the codes of its operand as elements of another type;
                  ``"rounded"``: elementwise, rounded by IEEE 754 and PTX alike; left out: none
    group_sizes:  the operand that is the number of rows of each group of its first operand
    block_maxima: whether it takes the largest element of each block, which is exact in any order
    """

    issued_by: Issuer = ""
    role: str = ""
    in_shared: int = 0
    reads_shared: tuple[str, ...] = ()
    loads: str = ""
    stores: str = ""
    completed_by: str = ""
    pure: bool = False
    async_only: bool = False
    lowered_by: tuple[str, ...] = ()
    counted: bool = False
    arithmetic: Arithmetic = ""
    group_sizes: str = ""
    block_maxima: bool = False


Names: TypeAlias = Mapping[str, str]
"""Operands and attributes of an op as text, by name; an absent operand is empty."""

_TRAITS = frozenset(each.name for each in fields(Traits))


class Op(TC.Operation if TYPE_CHECKING else ext.Operation):  # type: ignore[misc]
    """An op of ``tc``, or of another dialect (``dialect=``).

    Class keywords are the op's `Traits`; the rules registered for the class are its verifier.
    ``example`` is MLIR text with the op, for the generated page. ``form`` is how
    `tcir.dialect.pretty` prints the op: text with operands and attributes in braces,
    ``"{ring}[{index}]"``, or a function of their `Names`; without ``form``, the name is followed by
    all operands and attributes.
    """

    example = ""
    if TYPE_CHECKING:  # the bindings take every annotation that exists at run time for a field
        traits: ClassVar[Traits]
        form: ClassVar[Any]  # str, or a static method: Names -> str
    else:
        form = ""

    def __init_subclass__(cls, *, name: str, dialect: type[Dialect] = TC, **keywords: Any) -> None:
        if not hasattr(cls, "_dialect_obj"):  # else the subclass of an op, with more fields
            keywords["dialect"] = dialect
        cls.traits = Traits(**{key: keywords.pop(key) for key in _TRAITS & keywords.keys()})
        super().__init_subclass__(name=name, **keywords)
        if cls.traits.counted:
            fields_ = ext.partition_fields(cls._fields)[0]
            kinds = [each.variadicity.name for each in fields_]
            (at,) = (n for n, kind in enumerate(kinds) if kind != "single")
            for place, each in enumerate(fields_):
                past = place - len(fields_)
                where = (
                    slice(at, past + 1 or None) if place == at else place if place < at else past
                )
                read = partial(_optional if kinds[place] == "optional" else _operand, where)
                setattr(cls, each.name, property(read))
            build = cls.__init__

            def __init__(op: ir.OpView, *values: object, **named: object) -> None:
                build(op, *values, **named)
                del op.attributes[OPERAND_SIZES]

            cls.__init__ = __init__  # type: ignore[method-assign, assignment]

    def indexing(self) -> Indexing:
        """The factors of the op's products and the loops that index them. Each op with
        ``arithmetic="products"`` overrides this."""
        raise NotImplementedError(
            f'{self.operation.name}: an op with arithmetic="products" has to define indexing'
        )

    def verify_invariants(self) -> bool:
        """Checks the verifier rules of the op; MLIR's verifier and parser call this method."""
        return rules.report_broken(self)


def _operand(place: int | slice, op: ir.OpView) -> ir.Value | list[ir.Value]:
    return list(op.operands)[place]


def _optional(place: int | slice, op: ir.OpView) -> ir.Value | None:
    found = _operand(place, op)
    return next(iter(found), None) if isinstance(found, list) else found


def all_ops() -> list[type[Op]]:
    """The op classes of all dialects, in order of definition."""
    return [op for dialect in DIALECTS.values() for op in dialect.operations]


def traits_of(op: ir.OpView | ir.Operation) -> Traits:
    """Traits of the class of ``op``; defaults for the ops of upstream dialects."""
    found: Traits = getattr(type(op.operation.opview), "traits", _NONE)
    return found


_NONE = Traits()

"""Programs of several contractions, where sums of one contraction are factors of another.

The inputs are drawn (`tcir.program.chain_inputs`) so that the sums of all contractions are exact in
any order:

- Each input that is multiplied is an integer below 2^w times a power of two, so that the sums of
  products of two such inputs are integers below 2^(2 w + bits of the number of products) times a
  quantum (a power of two).
- The ops between two contractions preserve this: additions of inputs that are multiples of the
  quantum (one more bit each), maxima, comparisons, and roundings, which only clear low bits.
- Products of such sums and a further input have the bits of both. The width w is each input's share
  of 24 bits in the longest chain, or the share of a single input if all other inputs are powers of
  two. Sums that are multiplied as tf32 have 11 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcir._mlir import arith, tensor
from tcir.dialect import tc
from tcir.dialect.arithmetic import Arithmetic
from tcir.dialect.upstream import names
from tcir.interp.types import is_float
from tcir.program.access import SumOfProducts, product_of
from tcir.program.factors import (
    FOLLOWING,
    Contraction,
    Factor,
    consists_of,
    contraction_from,
    inputs_of,
    is_parallel,
)
from tcir.program.programs import find_program
from tcir.program.signature import Signature
from tcir.program.spans import EXACT_BITS, PROMOTED_BITS, PROMOTED_PRODUCTS, TF32_BITS

if TYPE_CHECKING:
    from tcir._mlir import ir

_ADDITIONS = names(arith.AddFOp, arith.SubFOp)
# Ops that keep multiples of a quantum, and powers of two above them, but for additions.
_KEPT = Arithmetic() | _ADDITIONS | names(
    arith.CmpFOp, arith.ConstantOp, arith.ExtFOp, arith.MaximumFOp, arith.MaxNumFOp,
    arith.MinimumFOp, arith.MinNumFOp, arith.NegFOp, arith.SelectOp, arith.TruncFOp, "linalg.fill",
    "linalg.yield", "math.absf", tc.ElementOp, tc.EpilogueOp, tc.YieldOp, tensor.CollapseShapeOp,
    tensor.EmptyOp, tensor.ExpandShapeOp, tensor.ExtractSliceOp, tensor.PadOp, tensor.YieldOp,
)  # fmt: skip


@dataclass(frozen=True)
class Chain:
    """The contractions of floats in a program, in order.

    contractions: the contractions. In a factor, argument -1 - n stands for the sums of contraction
                  n
    leaves:   for each contraction, the inputs whose product is one term of its sums
    constant: for each contraction, the bits that its sums have in addition to those of its leaves
    rooms:    pairs of the number of a contraction and the bits available to all of its leaves
              together
    addends:  pairs of an input that is added to sums which are multiplied later, and the number of
              the contraction of these sums
    """

    contractions: tuple[Contraction, ...]
    leaves: tuple[tuple[int, ...], ...]
    constant: tuple[int, ...]
    rooms: tuple[tuple[int, int], ...]
    addends: tuple[tuple[Factor, int], ...]

    @property
    def share(self) -> int:
        """Number of bits that each leaf may have if no sum is to be rounded."""
        return min((room // len(self.leaves[n]) for n, room in self.rooms), default=1)

    def widths(self, wide: int | None) -> dict[int, int]:
        """Returns the number of bits of each input that is multiplied. wide: the input that gets
        all available bits; None: all inputs share them
        """
        if wide is None:
            return dict.fromkeys(sum(self.leaves, ()), self.share)
        counts = [(room, self.leaves[n].count(wide), len(self.leaves[n])) for n, room in self.rooms]
        most = min((room - (every - mine)) // mine for room, mine, every in counts if mine)
        return dict.fromkeys(sum(self.leaves, ()), 1) | {wide: most}

    def bits(self, number: int, widths: dict[int, int]) -> int:
        """Returns the number of bits of the sums of a contraction."""
        return self.constant[number] + sum(widths[leaf] for leaf in self.leaves[number])

    def is_last(self, number: int) -> bool:
        """Whether the sums of this contraction are not a factor of any other contraction."""
        return all(f.argument != -1 - number for c in self.contractions for f in c.factors)

    def uses(self, argument: int) -> list[tuple[int, int]]:
        """Returns where an input is a factor: pairs of a contraction's number and the side of the
        factor.
        """
        return [
            (n, side)
            for n, contraction in enumerate(self.contractions)
            for side, factor in enumerate(contraction.factors)
            if factor.argument == argument
        ]


def chain_of(module: ir.Module, signature: Signature) -> Chain | None:
    """Returns the contractions of a program on tensors, if all of them can be exact; else None."""
    if signature.level != "tensor":
        return None
    block = find_program(module, signature.name).op.operation.regions[0].blocks[0]
    return _Analysis(block, signature).chain()


@dataclass
class _Made:
    """The values that a tensor is computed from.

    ops:       numbers of contractions
    added:     inputs that are added
    additions: number of additions
    strange:   whether there are other ops, or constants other than 0
    """

    ops: list[int] = field(default_factory=list)
    added: list[ir.Value] = field(default_factory=list)
    additions: int = 0
    strange: bool = False


@dataclass
class _Analysis:
    """Walks the program in order to find its `Chain`.

    ops: contractions of floats found so far
    """

    block: ir.Block
    signature: Signature
    ops: list[ir.Operation] = field(default_factory=list)
    found: list[Contraction] = field(default_factory=list)
    constant: list[int] = field(default_factory=list)
    leaves: list[tuple[int, ...]] = field(default_factory=list)
    rooms: list[tuple[int, int]] = field(default_factory=list)
    addends: dict[int, tuple[Factor, int]] = field(default_factory=dict)

    def chain(self) -> Chain | None:
        """Returns the chain of all contractions; None if they cannot all be exact."""
        for op in (each.operation for each in self.block):
            product = product_of(op)
            if product is None and not (consists_of(op, FOLLOWING) and is_parallel(op)):
                return None
            if product is not None and not self._contraction(op, product):
                return None
        used = [f.argument for c in self.found for f in c.factors if f.argument >= 0]
        starts = [c.start.argument for c in self.found if c.start is not None]
        added = [*self.addends, *starts]
        if set(added) & set(used) or len(set(added)) < len(added):
            return None
        chain = Chain(
            tuple(self.found),
            tuple(self.leaves),
            tuple(self.constant),
            tuple(self.rooms),
            tuple(self.addends.values()),
        )
        return chain if chain.share else None

    def _contraction(self, op: ir.Operation, product: SumOfProducts) -> bool:
        """Adds a contraction; False if its sums cannot be exact."""
        if all(_is_integer(value) for value, _ in product.factors):
            return True
        made: list[_Made] = []

        def number(value: ir.Value) -> int | None:
            made.append(self._made(value))
            return None if made[-1].strange or len(made[-1].ops) != 1 else -1 - made[-1].ops[0]

        contraction = contraction_from(self.block, self.signature, product, number)
        if contraction is None or len(contraction.factors) != len(product.factors):
            return False  # a scalar may be any number
        if len(contraction.pairs) > 1:
            return False
        added = contraction.start is not None
        if not added and product.start is not None and self._made(product.start[0]) != _Made():
            return False
        self.ops.append(op)
        self.found.append(contraction)
        self.constant.append((contraction.products - 1).bit_length() + added)
        arguments = [factor.argument for factor in contraction.factors]
        self.leaves.append(tuple(a for a in arguments if a >= 0))
        sums = [factor for factor in contraction.factors if factor.argument < 0]
        if not all(map(self._multiply, sums, made)):
            return False
        bits = EXACT_BITS
        if contraction.promoted:  # of all products, more than those of a partial sum
            more = (contraction.products - 1).bit_length() - (PROMOTED_PRODUCTS - 1).bit_length()
            bits = min(bits, PROMOTED_BITS + max(0, more))
        self._limit(bits, len(self.ops) - 1)
        return True

    def _multiply(self, sums: Factor, made: _Made) -> bool:
        """Counts the bits of sums that are a factor of the last contraction; False if they cannot
        be one."""
        (producer,) = made.ops
        self.constant[-1] += self.constant[producer] + made.additions
        self.leaves[-1] += self.leaves[producer]
        for value in made.added:
            number = self._argument(value)
            if number is None or self.addends.get(number, (None, producer))[1] != producer:
                return False
            spec = self.signature.inputs[number]
            dims = (None,) * len(spec.shape)
            self.addends[number] = (
                Factor(number, spec.dtype, spec.shape, dims, None, False),
                producer,
            )
        if sums.dtype.name == "float32":
            self._limit(TF32_BITS - made.additions, producer)
        return True

    def _limit(self, bits: int, number: int) -> None:
        """Limits the sums of a contraction to this many bits."""
        self.rooms.append((number, max(0, bits - self.constant[number])))

    def _argument(self, value: ir.Value) -> int | None:
        """Returns the number of an input that is a tensor of floats; None for another input."""
        number = inputs_of(self.block).index(value)
        spec = self.signature.inputs[number]
        return number if spec.shape and is_float(spec.dtype) else None

    def _made(self, value: ir.Value) -> _Made:
        """Returns the contractions and inputs that a tensor is computed from."""
        from tcir._mlir import ir
        from tcir.dialect.attributes import is_fill_only

        made, pending, seen = _Made(), [value], list[ir.Operation]()
        while pending:
            value = pending.pop()
            if isinstance(value.owner, ir.Block):
                if value.owner == self.block and not is_fill_only(value):
                    made.added.append(value)
                continue
            op = value.owner.operation
            if op in seen:
                continue
            seen.append(op)
            if op in self.ops:
                made.ops.append(self.ops.index(op))
                continue
            inner = [op, *(each.operation for r in op.regions for block in r for each in block)]
            made.strange |= not consists_of(op, _KEPT) or not all(map(_is_zero, inner))
            made.additions += sum(each.name in _ADDITIONS for each in inner)
            pending += [operand for each in inner for operand in each.operands]
        return made


def _is_integer(value: ir.Value) -> bool:
    from tcir._mlir import ir

    return isinstance(value.type.element_type, ir.IntegerType)


def _is_zero(op: ir.Operation) -> bool:
    """Whether an op is not a constant, or is the constant 0."""
    from tcir._mlir import ir

    if op.name != "arith.constant":
        return True
    value = op.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        value = value.get_splat_value() if value.is_splat else None
    return isinstance(value, ir.FloatAttr) and value.value == 0

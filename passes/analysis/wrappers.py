"""The ops that may surround a contraction on tensors: padding, zero fill, and rounding of the
result."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcir._mlir import arith, ir, linalg
from tcir.dialect import tc
from tcir.dialect.upstream import RESHAPES
from tcir.passes.analysis.contraction import value
from tcir.passes.analysis.moves import filling
from tcir.passes.emit.diagnostics import describe, is_op, match_failure

RESULT_TYPES = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class Padding:
    """An operand before padding, the zeros added below and above each of its dimensions, and the
    padding ops."""

    source: ir.Value
    low: list[int]
    high: list[int]
    ops: list[ir.Operation]


@dataclass(frozen=True)
class Tail:
    """The ops between a contraction and the function's return that the contraction's kernel also
    computes: a rounding, or none. `result` is the result of the last of these ops. `kept` are the
    users of that result, which remain in the function: a ``tc.epilogue``, a ``tc.quantise_blocks``,
    reshapes and a ``tc.repack``."""

    result: ir.Value
    ops: list[ir.Operation]
    kept: tuple[ir.Operation, ...] = ()

    @property
    def returned(self) -> list[ir.Value]:
        """The value that the function returns."""
        return list(self.kept[-1].results) if self.kept else [self.result]


def is_positive_zero(number: ir.Value) -> bool:
    """Whether `number` is a constant +0.0 (or 0), or a constant tensor of them."""
    if not is_op(number, "arith.constant"):
        return False
    constant = number.owner.attributes["value"]
    if isinstance(constant, ir.DenseElementsAttr):
        if not constant.is_splat:
            return False
        constant = constant.get_splat_value()
    if isinstance(constant, ir.IntegerAttr):
        return bool(constant.value == 0)
    if not isinstance(constant, ir.FloatAttr):
        return False
    found = constant.value
    return found == 0.0 and math.copysign(1.0, found) > 0


def is_zero_padding(op: ir.Operation) -> bool:
    """Whether a ``tensor.pad`` adds a known, non-negative number of zeros."""
    (yielded,) = list(op.regions[0].blocks[0])[-1].operands
    sizes = [
        amount
        for end in ("static_low", "static_high")
        for amount in ir.DenseI64ArrayAttr(op.attributes[end])
    ]
    return len(op.operands) == 1 and is_positive_zero(yielded) and min(sizes, default=0) >= 0


def fold_pads(op: ir.OpView, number: int, smallest: str) -> Padding:
    """Follows operand `number` of `op` through `tensor.pad` ops; returns the unpadded operand and
    its padding."""
    source = op.operation.operands[number]
    rank = source.type.rank
    low, high, ops = [0] * rank, [0] * rank, []
    while is_op(source, "tensor.pad"):
        pad = source.owner.opview
        if len(pad.operands) != 1:
            raise match_failure(
                pad,
                "expected constant padding, got amounts known only at run time (TMA loads pad by "
                "their tile coordinates, which are computed from constants); make low and high of "
                "tensor.pad static",
                smallest,
            )
        (yielded,) = list(pad.regions[0].blocks[0])[-1].operands
        if not is_positive_zero(yielded):
            raise match_failure(
                pad,
                f"expected padding with 0.0, got {describe(yielded)} (TMA fills the elements "
                "outside a tensor with zeros); pad in a separate function before this one",
                smallest,
            )
        if len(list(source.uses)) != 1:
            raise match_failure(
                pad,
                "expected each result of tensor.pad to be read once, got more than one read (the "
                "padding becomes part of the contraction that reads it); repeat the tensor.pad "
                "for the other reads",
                smallest,
            )
        for sums, name in ((low, "static_low"), (high, "static_high")):
            for dim, amount in enumerate(ir.DenseI64ArrayAttr(pad.attributes[name])):
                if amount < 0:
                    raise match_failure(
                        pad, f"expected padding of at least 0, got {amount}", smallest
                    )
                sums[dim] += amount
        ops.append(pad.operation)
        source = pad.operands[0]
    return Padding(source, low, high, ops)


def starts_from_zeros(start: ir.Value) -> bool:
    """Whether the sums of a contraction start from zeros, given as a constant or as any form of
    fill."""
    number = filling(start)
    return is_positive_zero(start) or (number is not None and is_positive_zero(number))


def zero_accumulator_ops(op: ir.OpView, smallest: str) -> list[ir.Operation]:
    """The ops that fill the outs operand of `op` with zeros; an outs operand made by other ops is a
    match failure."""
    init = list(op.operation.operands)[-1]
    if is_positive_zero(init):
        return []
    if starts_from_zeros(init):
        target = list(init.owner.operands)[-1]
        if not isinstance(target, ir.BlockArgument) and not is_op(target, "tensor.empty"):
            raise match_failure(
                init.owner,
                "expected the accumulator to be linalg.fill into tensor.empty or into a function "
                f"argument, got the result of {target.owner.name}",
                smallest,
            )
        return [init.owner]
    got = "a function argument" if isinstance(init, ir.BlockArgument) else init.owner.name
    if (number := filling(init)) is not None:
        got = f"linalg.fill with {describe(number)}"
    raise match_failure(
        op,
        f"expected an accumulator that is linalg.fill with 0.0, got {got} (the first mma of a "
        "tile overwrites the accumulator in tensor memory, so it starts from zero); fill with "
        "zero, and add the other term in a later function",
        smallest,
    )


def find_tail(op: ir.OpView, smallest: str) -> Tail:
    """Finds the rounding of the result of `op` to f16 or bf16, if the function has one."""
    result = op.operation.results[0]
    uses = list(result.uses)
    if len(uses) != 1:
        raise match_failure(
            op,
            f"expected the result of the contraction to be read once, got {len(uses)} reads (a "
            "kernel writes one output)",
            smallest,
        )
    user = uses[0].owner
    if user.name == "func.return":
        return Tail(result, [])
    if kept := _kept(result):
        return Tail(result, [], kept)
    if user.name == "arith.truncf":
        rounding = user
    elif user.name == "linalg.generic":
        rounding = _elementwise_rounding(user.opview, smallest)
    else:
        raise match_failure(
            user,
            "expected the result of the contraction to be returned, or rounded with arith.truncf, "
            f"got {user.name} (the pass fuse-epilogue fuses other ops, in pipelines whose kernels "
            f"have epilogues); move {user.name} to another function",
            smallest,
        )
    mode = arith.RoundingMode.to_nearest_even
    if "roundingmode" in rounding.attributes:
        mode = arith.RoundingMode(ir.IntegerAttr(rounding.attributes["roundingmode"]).value)
    final = user.results[0]
    element = str(final.type.element_type)
    if element not in RESULT_TYPES or mode != arith.RoundingMode.to_nearest_even:
        raise match_failure(
            user,
            f"expected rounding to f16 or bf16, to nearest even, got {element} {mode}",
            smallest,
        )
    return Tail(final, [user.operation], _kept(final))


_KEPT = (tc.EpilogueOp, tc.QuantiseBlocksOp, tc.RepackOp, *RESHAPES)


def _kept(result: ir.Value) -> tuple[ir.Operation, ...]:
    """The ops that stay after a result, each the only user of the one before."""
    found: list[ir.Operation] = []
    while (
        len(uses := list(result.uses)) == 1
        and isinstance(uses[0].owner.opview, _KEPT)
        and uses[0].operand_number == 0
    ):
        found.append(uses[0].owner)
        result = found[-1].results[0]
    return tuple(found)


def _elementwise_rounding(generic: ir.OpView, smallest: str) -> ir.Operation:
    """The `arith.truncf` inside an elementwise `linalg.generic`."""
    body = list(generic.regions[0].blocks[0])
    maps = [value(m) for m in linalg.get_indexing_maps(generic.operation)]
    truncates = (
        len(body) == 2
        and body[0].operation.name == "arith.truncf"
        and body[0].operands[0] == generic.regions[0].blocks[0].arguments[0]
        and body[1].operands[0] == body[0].results[0]
    )
    if not truncates or len(maps) != 2 or maps[0] != maps[1] or not maps[0].is_permutation:
        raise match_failure(
            generic,
            "expected the linalg.generic after the contraction to be an elementwise arith.truncf "
            "with identity maps, got another computation (the pass fuse-epilogue fuses it, in "
            "pipelines whose kernels have epilogues); move it to a function of its own",
            smallest,
        )
    if not is_op(generic.operands[1], "tensor.empty"):
        got = describe(generic.operands[1])
        raise match_failure(
            generic,
            f"expected the rounded result to be written to a tensor.empty, got {got}",
            smallest,
        )
    return body[0].operation


def check_rest(
    ops: list[ir.OpView],
    used: list[ir.Operation],
    results: list[ir.Value],
    expected: str,
    smallest: str,
) -> None:
    """Rejects a function if it returns anything but `results`, or if it has an op that is neither
    among `used` nor a constant or an empty tensor.

    expected: the accepted ops, for the error message
    """
    for op in ops[:-1]:
        if op.operation not in used and op.operation.name not in ("arith.constant", "tensor.empty"):
            raise match_failure(
                op,
                f"expected a function with only {expected}, got {op.operation.name}; move it to "
                "another function",
                smallest,
            )
    returned = list(ops[-1].operands)
    if returned != results:
        raise match_failure(
            ops[-1],
            "expected the function to return the contraction's result only, got "
            f"{len(returned)} values",
            smallest,
        )

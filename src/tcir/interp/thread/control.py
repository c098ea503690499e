"""Control flow: `scf`, `cf` and the branches of `llvm`, all translated to labels and moves."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.thread.speller import Speller, bits, only, spelling


@spelling("scf.if")
def _if(speller: Speller, op: ir.Operation) -> None:
    only(op)
    otherwise, end = speller.fresh_label(), speller.fresh_label()
    for result in op.results:
        speller.define(result)
    speller.emit(f"@!{speller.read_one(op.operands[0])} bra {otherwise}")
    _branch_body(speller, op, op.regions[0])
    speller.emit(f"bra {end}")
    speller.place(otherwise)
    if len(op.regions[1].blocks):
        _branch_body(speller, op, op.regions[1])
    speller.place(end)


def _branch_body(speller: Speller, op: ir.Operation, region: ir.Region) -> None:
    last = speller.body(region.blocks[0])
    speller.move(op.results, last.operands)


@spelling("scf.for")
def _for(speller: Speller, op: ir.Operation) -> None:
    only(op, "unsignedCmp")
    lower, upper, step, *inits = op.operands
    body = op.regions[0].blocks[0]
    counter, *carried = body.arguments
    sign = "u" if "unsignedCmp" in op.attributes else "s"
    width = bits(counter.type)
    head, end = speller.fresh_label(), speller.fresh_label()
    speller.move(body.arguments, [lower, *inits])
    done = speller.fresh("pred")
    iv = speller.read_one(counter)
    speller.place(head)
    speller.emit(f"setp.ge.{sign}{width} {done}, {iv}, {speller.read_one(upper)}")
    speller.emit(f"@{done} bra {end}")
    last = speller.body(body)
    speller.move(carried, last.operands)
    speller.emit(f"add.s{width} {iv}, {iv}, {speller.read_one(step)}")
    speller.emit(f"bra {head}")
    speller.place(end)
    for result, argument in zip(op.results, carried, strict=True):
        speller.define(result)
        speller.move([result], [argument])


@spelling("scf.while")
def _while(speller: Speller, op: ir.Operation) -> None:
    only(op)
    before, after = (region.blocks[0] for region in op.regions)
    head, end = speller.fresh_label(), speller.fresh_label()
    for result in op.results:
        speller.define(result)
    speller.move(before.arguments, op.operands)
    speller.place(head)
    condition, *passed = speller.body(before).operands
    speller.move(op.results, passed)
    speller.emit(f"@!{speller.read_one(condition)} bra {end}")
    speller.move(after.arguments, passed)
    speller.move(before.arguments, speller.body(after).operands)
    speller.emit(f"bra {head}")
    speller.place(end)


@spelling("scf.yield", "scf.condition")
def _terminator(speller: Speller, op: ir.Operation) -> None:
    raise IncompleteError("no rule for it outside scf.for, scf.if and scf.while")


def function_body(speller: Speller, region: ir.Region) -> None:
    """Translates the blocks of a function, in an order in which definitions precede uses."""
    for position, block in enumerate(_reverse_postorder(region.blocks[0])):
        if position:
            speller.place(speller.block_label(block))
        for op in block.operations:
            speller.op(op.operation)


def _reverse_postorder(entry: ir.Block) -> list[ir.Block]:
    seen: list[ir.Block] = [entry]
    order: list[ir.Block] = []
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            order.append(block)
            stack.pop()
        elif following not in seen:
            seen.append(following)
            stack.append((following, iter(_successors(following))))
    return order[::-1]


def _successors(block: ir.Block) -> list[ir.Block]:
    return list(list(block.operations)[-1].operation.successors)


@spelling("cf.br", "llvm.br")
def _branch(speller: Speller, op: ir.Operation) -> None:
    only(op)
    (target,) = op.successors
    speller.move(target.arguments, op.operands)
    speller.emit(f"bra {speller.block_label(target)}")


@spelling("cf.cond_br", "llvm.cond_br")
def _conditional_branch(speller: Speller, op: ir.Operation) -> None:
    only(op)
    condition, *passed = op.operands
    yes, no = op.successors
    count = len(yes.arguments)
    otherwise = speller.fresh_label()
    speller.emit(f"@!{speller.read_one(condition)} bra {otherwise}")
    speller.move(yes.arguments, passed[:count])
    speller.emit(f"bra {speller.block_label(yes)}")
    speller.place(otherwise)
    speller.move(no.arguments, passed[count:])
    speller.emit(f"bra {speller.block_label(no)}")


@spelling("llvm.return")
def _return(speller: Speller, op: ir.Operation) -> None:
    only(op)
    if len(op.operands):
        raise IncompleteError("no rule for a kernel that returns a value")
    speller.emit("ret")

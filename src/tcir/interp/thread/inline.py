"""Inline assembly: emits its text with the operands filled in."""

from __future__ import annotations

import re

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.rules import site_of
from tcir.interp.thread.speller import CONSTANTS, Registers, Speller, only, register_class, spelling
from tcir.machine import MachineError

_REGISTER_CONSTRAINT = {"r", "l", "h", "f", "d", "c", "b"}


@spelling("llvm.inline_asm")
def _inline_asm(speller: Speller, op: ir.Operation) -> None:
    """Spells the text with its operands: outputs first, then inputs, numbered as in LLVM; ``$$`` is
    a dollar sign.

    An input tied to an output (constraint "0") shares its register. If the text names neither, the
    output is the input's register.
    """
    only(op, "asm_string", "constraints", "has_side_effects", "asm_dialect", "tail_call_kind")
    text = ir.StringAttr(op.attributes["asm_string"]).value
    constraints = ir.StringAttr(op.attributes["constraints"]).value.split(",")
    constraints = [c for c in constraints if c and not c.startswith("~")]
    outputs = [c for c in constraints if c.startswith("=")]
    inputs = constraints[len(outputs) :]
    operands = list(op.operands)
    if any(c.startswith("=") or "*" in c for c in (*inputs, *(c[1:] for c in outputs))):
        raise IncompleteError(f"no rule for the constraints {','.join(constraints)}")
    if len(inputs) != len(operands):
        words = f"expected an operand for each of {len(inputs)} constraints, got {len(operands)}"
        raise MachineError("bad-inline-asm", words, site=site_of(op))
    named = {int(number) for number in re.findall(r"\$\{?(\d+)", text.replace("$$", ""))}
    given = [speller.read_one(operand) for operand in operands]
    results: list[str] = list(speller.define(op.results[0])) if len(op.results) else []
    if len(results) != len(outputs):
        words = f"expected a result for each of {len(outputs)} outputs, got {len(results)}"
        raise MachineError("bad-inline-asm", words, site=site_of(op))
    if any(number >= len(results) + len(given) for number in named):
        raise _no_operand(op, f"${max(named)}", len(results) + len(given))
    for position, (constraint, register) in enumerate(zip(inputs, given, strict=True)):
        if constraint.isdigit():
            output = int(constraint)
            if output >= len(outputs):
                raise MachineError(
                    "bad-inline-asm",
                    f"expected a constraint tied to one of {len(outputs)} outputs, got "
                    f"'{constraint}'",
                    site=site_of(op),
                )
            if named & {output, len(outputs) + position}:
                register = _own(speller, operands[position], results[output], register)
            results[output] = given[position] = register
        elif constraint not in _REGISTER_CONSTRAINT:
            raise IncompleteError(f"no rule for the constraint {constraint}")
    if len(op.results):
        speller.rename(op.results[0], results)
    _emit(speller, _fill(text, r"\$(?:\$|\{(\d+)\}|(\d+))", tuple(results + given)))


def _own(speller: Speller, operand: ir.Value, result: str, register: str) -> str:
    """Returns a register with the value of `operand` that the text may write.

    If this is the operand's last use, it is the operand's own register, so that the value stays
    where an asynchronous instruction writes it; else it is the result's, after a copy.
    """
    owner = operand.owner
    constant = not isinstance(owner, ir.Block) and owner.name in CONSTANTS
    if not constant and len(list(operand.uses)) == 1:
        return register
    speller.emit(f"mov.{register_class(operand.type)} {result}, {register}")
    return result


def _no_operand(op: ir.Operation, got: str, operands: int) -> MachineError:
    words = f"expected the text to name one of {operands} operands, got {got}"
    return MachineError("bad-inline-asm", words, site=site_of(op))


def _fill(text: str, pattern: str, registers: Registers) -> str:
    def register(match: re.Match[str]) -> str:
        number = next((group for group in match.groups() if group is not None), None)
        return "$" if number is None else registers[int(number)]

    return re.sub(pattern, register, text)


def _emit(speller: Speller, text: str) -> None:
    # A scope of its own: the text may declare registers and labels, and may be repeated.
    scoped = ".reg" in text or re.search(r"^\s*\w+:", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if scoped:
        lines = ["{", *lines, "}"]
    speller.lines += [f"\t{line}" for line in lines]


@spelling("nvvm.inline_ptx")
def _inline_ptx(speller: Speller, op: ir.Operation) -> None:
    """Spells the text with its operands, named by kind and number: ``{$w0}`` written, ``{$r0}``
    read."""
    only(op, "ptxCode", "memoryClobber")
    text = ir.StringAttr(op.attributes["ptxCode"]).value
    sizes = list(op.attributes["operandSegmentSizes"])
    if any(sizes[1:]):
        raise IncompleteError("no rule for operands that are read and written, nor for a predicate")
    read = [speller.read_one(operand) for operand in op.operands]
    written = [speller.define_one(result) for result in op.results]
    for letter, registers in (("r", read), ("w", written)):
        for number, register in enumerate(registers):
            text = text.replace(f"{{${letter}{number}}}", register)
    if strange := re.search(r"\{\$[rw]\d+\}", text):
        raise _no_operand(op, strange[0], len(read) + len(written))
    if "$" in text:
        raise IncompleteError(f"no rule for the operands of {text!r}")
    _emit(speller, text)

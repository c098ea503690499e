"""Breaking a lowering from outside: passes that do their work and then damage the program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tcir
from tcir._mlir import ir
from tcir.program.source import load_module, mlir_context
from tcir.target import DEFAULT_TARGET
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.validator import Validation, begin

Edit = Callable[[Any], None]
ORDERS = 10


@dataclass(frozen=True)
class Broken(tcir.Pass):
    """Runs `inner` and then `edit` on what it made; goes by the name of `inner`."""

    inner: tcir.Pass
    edit: Edit

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name a report knows it by."""
        return self.inner.name

    def __str__(self) -> str:
        return str(self.inner)

    def run(self, module: Any) -> None:
        self.inner.run(module)
        self.edit(module)


def walk(module: Any, name: str) -> Iterator[Any]:
    """Operations called `name`, in program order."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == name:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return iter(found)


def pick(module: Any, name: str, index: int = 0, **attributes: str) -> Any:
    """The `index`-th operation called `name` with these attributes (as MLIR prints them)."""
    return [
        op
        for op in walk(module, name)
        if all(
            key in op.attributes and str(op.attributes[key]) == text
            for key, text in attributes.items()
        )
    ][index]


def set_attribute(name: str, attribute: str, text: str, index: int = 0) -> Edit:
    """Gives an operation another attribute, written as MLIR text."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        new = ir.Attribute.parse(text)
        assert op.attributes[attribute] != new, "the edit changes nothing"
        op.attributes[attribute] = new

    return edit


def erase(name: str, index: int = 0, **attributes: str) -> Edit:
    """Removes an operation without results."""
    return lambda module: pick(module, name, index, **attributes).erase()


def change_operand(name: str, operand: int, make: Callable[[Any], Any], index: int = 0) -> Edit:
    """Replaces an operand of an operation by ``make(old value)``, built before it."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        with ir.InsertionPoint(op), op.location:
            op.operands[operand] = make(op.operands[operand])

    return edit


def change_text(pattern: str, replacement: str | Callable[[Any], str]) -> Edit:
    """Replaces the first match of a regular expression in the module's own text."""

    def edit(module: Any) -> None:
        text = module.operation.get_asm(enable_debug_info=True)
        changed, count = re.subn(pattern, replacement, text, count=1)
        assert count == 1 and changed != text, f"the edit changes nothing: {pattern}"
        for op in list(module.body.operations):
            op.operation.erase()
        with ir.InsertionPoint(module.body):
            for op in ir.Module.parse(changed).body.operations:
                op.operation.clone()

    return edit


def activation_first(module: Any) -> None:
    """relu(sum) + bias."""
    add = next(
        op
        for op in walk(module, "arith.addf")
        if any(use.owner.name == "arith.maximumf" for use in op.results[0].uses)
    )
    relu = next(iter(add.results[0].uses)).owner
    for use in list(relu.results[0].uses):
        use.owner.operands[use.operand_number] = add.results[0]
    relu.operands[0] = add.operands[0]
    add.operands[0] = relu.results[0]
    relu.operands[1].owner.move_before(add)
    relu.move_before(add)


@dataclass(frozen=True)
class Caught:
    """The pass to which a break was attributed, and the check that found it."""

    at: str
    by: str
    """"difference", "hazard: CODE", "warning: CODE", "illegal: CODE", "deadlock", "refused"; ""
    when nothing noticed."""
    orders: int = 1
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.by)


NOTHING = Caught("", "")


def verdict_of(line: Line, orders: int) -> Caught:
    """Verdict of a line of a report."""
    if line.verdict == "incomplete":
        raise AssertionError(f"incomplete is no verdict: {line}")
    codes = [f["code"] for f in line.findings if f["severity"] == "error"]
    warnings = [f["code"] for f in line.findings if f["severity"] == "warning"]
    illegal = re.search(r"illegal use of the machine: ([\w-]+)", line.compared)
    by = ""
    if illegal or codes:
        code = illegal[1] if illegal else codes[0]
        by = "deadlock" if code == "deadlock" else f"{'illegal' if illegal else 'hazard'}: {code}"
        assert line.verdict == "different", str(line)
    elif line.verdict == "different":
        by = "difference"
    elif warnings:
        by = f"warning: {warnings[0]}"
    return Caught(line.name, by, orders, str(line)) if by else NOTHING


def run_broken(
    program: str,
    pipeline: tcir.Pipeline,
    at: str,
    edit: Edit,
    *,
    orders: int = ORDERS,
    target: str = DEFAULT_TARGET.name,
) -> Caught:
    """Validates `program` with the pass `at` broken, in issue order and then in `orders` orders."""
    for count in sorted({1, orders}):
        broken = pipeline.replace(at, Broken(pipeline.passes[pipeline.index(at)], edit))
        lines: list[Line] = []
        try:
            tcir.validate(
                program, broken, target=target, orders=count, seed=7, on_line=lines.append
            )
        except tcir.PassError as error:
            if not any(line.verdict == "different" for line in lines):
                return Caught(str(error.pass_name), "refused", count, str(error))
        for line in lines:
            if caught := verdict_of(line, count):
                return caught
    return NOTHING


def noticed(program: str, pipeline: tcir.Pipeline, target: str) -> Caught:
    """First finding in reports of `program`, on random numbers and then on all draws."""
    for inputs in ("random", "integers"):
        lines: list[Line] = []
        try:
            tcir.validate(program, pipeline, target=target, inputs=inputs, on_line=lines.append)
        except tcir.PassError as error:
            return Caught(str(error.pass_name), "refused", 1, str(error))
        for line in lines:
            if caught := verdict_of(line, 1):
                return caught
    return NOTHING


@dataclass(frozen=True)
class Break:
    """One damage: what it is, at which pass, and the ways in which a report may notice it."""

    what: str
    at: str
    edit: Edit
    by: tuple[str, ...]

    def check(self, program: str, pipeline: tcir.Pipeline, *, orders: int = ORDERS) -> Caught:
        """Asserts that a report lays it to that pass, in one of those ways."""
        caught = run_broken(program, pipeline, self.at, self.edit, orders=orders)
        assert caught, "nothing noticed the break"
        assert caught.at == self.at, caught.text
        assert caught.by.startswith(self.by), caught.text
        return caught


class PtxCheck:
    """Runs edited PTX of one compiled kernel the way a report runs its last level."""

    def __init__(self, program: str, kernel: tcir.Kernel) -> None:
        self.kernel = kernel
        self._program = program
        self._validations: dict[int, Validation] = {}

    def run(self, ptx: str, orders: int = ORDERS) -> Caught:
        """Findings in issue order, or else under up to `orders` completion orders."""
        for count in sorted({1, orders}):
            line = Line(0, "llvm-to-ptx")
            self._validation(count).check_ptx(ptx, self.kernel.launches, line)
            if caught := verdict_of(line, count):
                return caught
        return NOTHING

    def edit(self, pattern: str, replacement: str | Callable[[Any], str], index: int = 0) -> str:
        """The PTX with the `index`-th match of a regular expression replaced."""
        matches = list(re.finditer(pattern, self.kernel.ptx))
        assert len(matches) > index, f"{pattern} occurs {len(matches)} times"
        match = matches[index]
        new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
        assert new != match[0], "the edit changes nothing"
        return self.kernel.ptx[: match.start()] + new + self.kernel.ptx[match.end() :]

    def _validation(self, orders: int) -> Validation:
        if orders not in self._validations:
            with mlir_context() as context:
                validation = begin(
                    load_module(self._program, context), Settings(seed=7, orders=orders)
                )
                line = validation.input
            assert line.verdict == "reference", str(line)
            self._validations[orders] = validation
        return self._validations[orders]

"""Every verifier rule has a legal and an illegal example, and says what it should."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.kernel.verify import verify_kernel
from tcir.dialect.kernel.view import SUBJECT
from tcir.dialect.rules import RULES, Rule

HERE = Path(__file__).parent
EXPECTED = re.compile(r"^ *// expected-error @\+1 \{\{(.*)\}\}$", re.M)


def sections() -> list[tuple[str, str, str]]:
    """(kind, rule key, text) of every example in the invalid_*.mlir files."""
    found = []
    for path in sorted(HERE.glob("invalid_*.mlir")):
        for text in path.read_text().split("// -----\n"):
            header = re.search(r"^// (legal|illegal): (\S+)$", text, re.M)
            assert header, f"{path.name}: a section without a header: {text[:80]}"
            found.append((header[1], header[2], text))
    return found


SECTIONS = sections()


@cache
def context_with_tc() -> ir.Context:
    """One for all examples: to declare the dialect takes as long as ten of them."""
    context = ir.Context()
    tc.load(context)
    return context


def diagnose(text: str) -> list[tuple[int, str]]:
    """(line, message) of every error in ``text``, kernel rules included."""
    context = context_with_tc()
    errors: list[tuple[int, str]] = []

    def note(diagnostic: ir.Diagnostic) -> bool:
        errors.append((line_of(diagnostic.location), diagnostic.message))
        return True

    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(note)
    try:
        module = ir.Module.parse(text, context)
    except ir.MLIRError:
        assert errors
        return errors
    finally:
        handler.detach()
    for op in module.body.operations:
        if "tc.kernel" in op.attributes:
            errors += [(line_of(location), message) for location, message in verify_kernel(op)]
    return errors


def line_of(location: ir.Location) -> int:
    found = re.search(r":(\d+):\d+", str(location))
    assert found, location
    return int(found[1])


def pattern(rule: Rule) -> str:
    """The rule's message with anything in the place of its values."""
    return re.sub(r"\\\{\w+\\\}", ".*", re.escape(f"{rule.subject}: {rule.text}"))


@pytest.mark.parametrize("key", RULES)
def test_every_rule_has_both_examples(key: str) -> None:
    kinds = {kind for kind, of, _ in SECTIONS if of == key}
    assert kinds == {"legal", "illegal"}, f"{key} needs a legal and an illegal example"


@pytest.mark.parametrize(
    ("kind", "key", "text"), SECTIONS, ids=[f"{i}-{k}" for i, (_, k, _) in enumerate(SECTIONS)]
)
def test_example(kind: str, key: str, text: str) -> None:
    errors = diagnose(text)
    if kind == "legal":
        assert errors == []
        return
    expected = EXPECTED.search(text)
    assert expected, "an illegal example names its diagnostic"
    at = text[: expected.end()].count("\n") + 2
    assert errors == [(at, expected[1])]
    assert re.fullmatch(pattern(RULES[key]), expected[1]), "the message is not that rule's"


def test_sections_name_known_rules() -> None:
    assert {key for _, key, _ in SECTIONS} <= set(RULES)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rules_state_a_source_and_one_message(rule: Rule) -> None:
    assert rule.source and rule.text
    assert rule.subject == SUBJECT or rule.subject.lstrip("!").startswith("tc")
    assert (
        sum(other.subject == rule.subject and other.text == rule.text for other in RULES.values())
        == 1
    )


MMA = (
    '"tc.mma"(%d, %a, %b, %c) {ATTRS} : (!tc.tmem<array<i64: 128, 64>, f32>, '
    '!tc.tmem<array<i64: 128, 64>, f16>, !tc.smem<array<i64: 64, 64>, f16, "K", "128B">, i1) -> ()'
)
ARGS = (
    "%d: !tc.tmem<array<i64: 128, 64>, f32>, %a: !tc.tmem<array<i64: 128, 64>, f16>, "
    '%b: !tc.smem<array<i64: 64, 64>, f16, "K", "128B">, %c: i1'
)
STORE = (
    '"tc.store_rows"(%v, %m, %i, %i) {rows = 1 : i64, row_dim = 0 : i64, '
    "operandSegmentSizes = SIZES} : (vector<32x8xf16>, memref<64x64xf16>, index, index) -> ()"
)


@pytest.mark.parametrize(
    ("args", "op", "says"),
    [
        (ARGS, MMA.replace("ATTRS", "a_slice = 0 : i64, b_slice = 0 : i64"),
         '"ashift" is expected'),
        (ARGS, MMA.replace("ATTRS", 'a_slice = "0", b_slice = 0 : i64, ashift = true'),
         "builtin.integer"),
        (ARGS.replace("%c: i1", "%c: i1, %u: index"),
         '"tc.commit"(%u) : (index) -> ()', "tc.mbarrier"),
        ("%v: vector<32x8xf16>, %m: memref<64x64xf16>, %i: index",
         STORE.replace("SIZES", "array<i32: 1, 1, 3>"), "operandSegmentSizes"),
        ("%v: vector<32x8xf16>, %m: memref<64x64xf16>, %i: index",
         STORE.replace("SIZES", "array<i32: 1, 1>"), "operandSegmentSizes"),
        ("%v: vector<32x8xf16>, %m: memref<64x64xf16>, %i: index",
         STORE.replace("SIZES", '"two"'), "operandSegmentSizes"),
    ],
)  # fmt: skip
def test_ops_unlike_their_declaration_get_one_diagnostic(args: str, op: str, says: str) -> None:
    errors = diagnose(f"func.func @f({args}) {{\n  {op}\n  return\n}}")
    assert len(errors) == 1
    assert errors[0][0] == 2
    assert says in errors[0][1]

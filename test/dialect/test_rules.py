"""Every verifier rule has a legal and an illegal example, and reports what it should.

Most are changes to the op's own example (`tcir.dialect.rules`), the others in `pairs`. The values
in the messages of the former are on docs/reference/ops.md, which `test_docs` keeps fresh.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tcir.dialect.kernel.view import SUBJECT
from tcir.dialect.rules import RULES, Rule
from tcir.tools.dev.counter_examples import changed, diagnose, illegal, legal, values

from .pairs import Example, patched, read

EXPECTED = re.compile(r"^ *// expected-error @\+1 \{\{(.*)\}\}$", re.M)

PAIRS = read()
BAD = [(rule, text) for rule in RULES.values() for text in illegal(rule)]
GOOD = [(rule, text) for rule in RULES.values() for text in legal(rule)]


def names(examples: list[tuple[Rule, str]]) -> list[str]:
    return [f"{rule.key}-{i}" for i, (rule, _) in enumerate(examples)]


def test_every_rule_has_a_counter_example() -> None:
    """Its legal twin is what is changed: the op's example, or a base."""
    in_pairs = {each.key for each in PAIRS if each.kind == "illegal"}
    without = [rule.key for rule in RULES.values() if not rule.bad and rule.key not in in_pairs]
    assert not without, "these need bad={...}, or a section in test/dialect/pairs"


def test_pairs_name_known_rules() -> None:
    assert {each.key for each in PAIRS if each.kind != "base"} <= set(RULES)


def test_changes_are_of_whole_words_wherever_they_occur() -> None:
    text = "%a: i1, %b: i16 {x =\n  1 : i1}"
    assert changed(text, {"i1": "i8", "x = 1": "y"}) == "%a: i8, %b: i16 {y : i8}"
    with pytest.raises(ValueError, match="expected a part of the example, got 'i32'"):
        changed(text, {"i1": "i8", "i32": "i1"})


def test_hunks_of_a_patch_occur_once_in_the_base() -> None:
    assert patched("a\nb\nc", "-a\n+x\n@@\n// why\n b\n+y") == "x\nb\ny\nc"
    with pytest.raises(AssertionError, match="once in the base"):
        patched("a\na", "-a")


@pytest.mark.parametrize(("rule", "text"), BAD, ids=names(BAD))
def test_illegal_example(rule: Rule, text: str) -> None:
    """Exactly that rule's message is reported, at an op of its subject."""
    errors = diagnose(text)
    assert [values(rule, message) is not None for _, message in errors] == [True], errors
    line, *rest = text.split("\n")[errors[0][0] - 1 :]
    if rule.subject.startswith("!"):
        assert '"tc.' in line and rule.subject in "".join([line, *rest])
    else:
        assert f'"{rule.subject}"(' in line


@pytest.mark.parametrize(("rule", "text"), GOOD, ids=names(GOOD))
def test_legal_example(rule: Rule, text: str) -> None:
    assert diagnose(text) == []


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{i}-{p.kind}-{p.key}" for i, p in enumerate(PAIRS)])
def test_pair(pair: Example) -> None:
    errors = diagnose(pair.text)
    if pair.kind != "illegal":
        assert errors == []
        return
    expected = EXPECTED.search(pair.text)
    assert expected, "an illegal example names its diagnostic"
    at = pair.text[: expected.end()].count("\n") + 2
    assert errors == [(at, expected[1])]
    assert values(RULES[pair.key], expected[1]) is not None, "the message is not that rule's"


def test_rules_state_a_source_and_one_message() -> None:
    for rule in RULES.values():
        assert rule.source and rule.text, rule.key
        assert rule.subject == SUBJECT or rule.subject.lstrip("!").startswith("tc"), rule.key
    messages = Counter((rule.subject, rule.text) for rule in RULES.values())
    assert max(messages.values()) == 1, messages.most_common(1)


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

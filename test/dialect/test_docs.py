"""docs/reference/ops.md is what the generator writes, and its examples parse and survive a round
trip."""

from __future__ import annotations

import re

import pytest

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.rules import RULES
from tcir.tools.dev import ops_page

from .shared import shared_context

PAGE = ops_page.TARGET.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```mlir\n(.*?)^```$", PAGE, re.M | re.S)


def test_page_is_fresh() -> None:
    assert ops_page.render() == PAGE, "run `python -m tcir.tools.dev.ops_page`"


def test_every_op_has_an_example_of_itself() -> None:
    types = [each for each in tc.TC.types if hasattr(each, "example")]
    assert len(BLOCKS) == len(tc.TC.operations) + len(types)
    assert all(f"!{each.type_name}<" in each.example for each in types)
    assert all(f'"{op.OPERATION_NAME}"(' in op.example for op in tc.TC.operations)


@pytest.mark.parametrize("text", BLOCKS)
def test_example_parses(text: str) -> None:
    context = shared_context()
    module = ir.Module.parse(text, context)
    assert module.operation.verify()
    again = ir.Module.parse(str(module), context)
    assert str(again) == str(module)


def test_page_has_every_rule_with_its_message() -> None:
    flat = " ".join(PAGE.split())
    missing = [
        rule.key
        for rule in RULES.values()
        if " ".join(f"**{rule.name}** ({rule.source}): `{rule.subject}: {rule.text}`".split())
        not in flat
    ]
    assert not missing


def test_every_hardware_op_names_its_section() -> None:
    own = {
        "tc.conv2d",
        "tc.matmul",
        "tc.smem_tile",
        "tc.tmem_tile",
        "tc.slot",
        "tc.smem_part",
        "tc.role",
        "tc.one_thread",
        "tc.repack",
        "tc.pack_codes",
        "tc.unpack_codes",
        "tc.epilogue",
        "tc.sum_parts",
        "tc.combine_parts",
        "tc.attention",
        "tc.attention_backward",
        "tc.grouped_matmul",
        "tc.element",
        "tc.yield",
    }
    for op in tc.TC.operations:
        if op.OPERATION_NAME not in own:
            assert re.search(r"PTX ISA\s+\d", op.__doc__), op.OPERATION_NAME

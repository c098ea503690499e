"""The examples of docs/reference/layouts.md give what they say."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import tcir.layout

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "layouts.md"


def test_examples() -> None:
    result = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.attempted > 10
    assert result.failed == 0


def test_every_public_function_is_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for group in re.findall(r"(\w+)_((?:[A-Z]/)+[A-Z])", text):
        text += " ".join(f" {group[0]}_{letter}" for letter in group[1].split("/"))
    words = set(re.findall(r"\w+", text))
    # Types of results, and tables: reached through the functions named.
    unnamed = {
        "COPY_OPERATIONS", "MMA_ATOMS", "CopyAtom", "IntTuple", "MmaAtom",
        "OperandLayout", "ThrCopy", "ThrMma", "TiledCopy", "TiledMma", "TmemCopy",
        "is_injective", "transpose", "with_shape",
    }  # fmt: skip
    assert set(tcir.layout.__all__) - words == unnamed

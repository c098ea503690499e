"""`matmul-warp` with copy=tma: the machine's results have the digests of an H200's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from . import warp_products
from .warp_products import CASES

RECORD: dict[str, Any] = json.loads((warp_products.HERE / "warp_products.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_machine_gives_the_bits_of_silicon(name: str, tmp_path: Path) -> None:
    assert warp_products.write(name, tmp_path / "bundle") == RECORD["digests"][name]


def test_every_case_was_recorded() -> None:
    assert set(RECORD["digests"]) == set(CASES)

"""The bugs of `attack_*.py`, and those of them that nothing notices."""

from __future__ import annotations

from dataclasses import replace

from . import attack_chains, attack_epilogues, attack_layers, attack_shapes, attack_structure
from .planted import Planted

SURVIVORS: dict[tuple[str, str], str] = {}
"""Program and bug, and why it survives; all have inputs on which results differ."""
VALUES = [
    *attack_layers.BUGS, *attack_epilogues.BUGS, *attack_chains.BUGS, *attack_shapes.BUGS,
]  # fmt: skip
STRUCTURE = attack_structure.BUGS


def _as_noticed(bug: Planted) -> Planted:
    return replace(bug, by="") if (bug.program, bug.what) in SURVIVORS else bug


BUGS = [_as_noticed(bug) for bug in (*VALUES, *STRUCTURE)]

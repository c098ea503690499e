"""Decides whether some CTAs of a launch can be executed without the others."""

from __future__ import annotations

import re

from tcir.interp.ptx.program import DecodedEntry
from tcir.machine import Machine

_COMMUNICATES = re.compile(
    r"\b(atom|red|multimem|clusterlaunchcontrol)\.|\bcp\.reduce\."
    r"|\b(ld|st)\.(\w+\.)*(acquire|release|relaxed|volatile|mmio)\b"
)


def why_whole(program: DecodedEntry, machine: Machine) -> str:
    """Reason why a CTA may wait for another CTA, or add to another CTA's results; empty if neither
    can happen.
    """
    if machine.side_by_side != 1:
        return "CTAs run side by side"
    for op in program.code:
        text = op.site.text
        if ".shared" not in text and (found := _COMMUNICATES.search(text)):
            return f"CTAs may communicate: {found[0]} at line {op.site.line}"
    return ""

"""Counters of a run as a table: name, unit and value, grouped by subject."""

from __future__ import annotations

from tcir.debug.banks import BankConflicts
from tcir.machine.counters import COUNTED
from tcir.run import RunReport

WORST = 8
"""Instructions whose bank conflicts are listed."""


def table(report: RunReport, banks: BankConflicts) -> str:
    """Returns a table of all counters that are not 0, and of bank conflicts by instruction."""
    counters = report.counters | {
        "instructions": report.instructions,
        "bank_accesses": sum(banks.accesses.values()),
        "bank_conflicts": sum(banks.conflicts.values()),
    }
    lines = []
    for section, rows in COUNTED.items():
        found = [(n, unit, counters[n]) for n, (unit, _) in rows.items() if counters.get(n)]
        if section == "TMA and bulk copies":
            found += [
                (n, "byte", v)
                for n, v in counters.items()
                if n.startswith("global_to_shared_")
                and n.removeprefix("global_to_shared_").isdigit()
            ]
        if found:
            lines += [section, "-" * 52]
            lines += [f"  {name:<28}{unit:>12}{value:>12,}" for name, unit, value in found]
            lines.append("")
    for site, extra in banks.conflicts.most_common(WORST):
        lines.append(f"  {extra} extra passes in {banks.accesses[site]} accesses at {site}")
    return "\n".join(lines)

"""Prints the corpus by class: `python -m corpus.summary [--quick]` in the folder test/.

Wrong programs reported or missed, right ones and legal twins clean or falsely reported, each as
issued and under seeds 1 to 6 (`--quick`: as issued); a program counts as missed, or as falsely
reported, if one order says so. Then the cases, with the orders in which they fail.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

from .program import PROFILES, cases, order_name, verdict


def main() -> None:
    orders = (None,) if "--quick" in sys.argv else (None, 1, 2, 3, 4, 5, 6)
    for profile in PROFILES:
        table: dict[str, Counter[str]] = defaultdict(Counter)
        failing = []
        for case in cases():
            said = {order_name(order): verdict(case, order, profile) for order in orders}
            failed = [order for order, problem in said.items() if problem]
            table[case.program.fields["class"]][f"{case.kind} {'bad' if failed else 'good'}"] += 1
            if failed:
                which = "all" if len(failed) == len(orders) else ",".join(failed)
                failing.append(f"{case.name} {which} {said[failed[0]].splitlines()[0]}")
        _print(profile, table)
        print("\n".join(failing), flush=True)


def _print(profile: str, table: dict[str, Counter[str]]) -> None:
    total: Counter[str] = Counter()
    kinds = "reported | missed | twin clean | falsely reported | right clean | falsely reported"
    print(f"\n## {profile}\n\n| class | {kinds} |\n|---|---|---|---|---|---|---|")
    columns = [f"{kind} {how}" for kind in ("wrong", "twin", "right") for how in ("good", "bad")]
    for name in sorted(table):
        total.update(table[name])
        print(f"| {name} | " + " | ".join(str(table[name][column]) for column in columns) + " |")
    print("| **all** | " + " | ".join(str(total[column]) for column in columns) + " |\n")


if __name__ == "__main__":
    main()

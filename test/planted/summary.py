"""Prints every planted bug, the pass behind which it is, and what noticed it."""

from __future__ import annotations

from collections import Counter

from .planted import Planted
from .programs import program
from .test_values import BUGS


def main(bugs: list[Planted] = BUGS) -> None:
    """One line for each bug, and the counts of what noticed them."""
    noticed: Counter[str] = Counter()
    print("| program | pass | bug | noticed by |\n|---|---|---|---|")
    for bug in bugs:
        caught = program(bug.program).run(bug)
        noticed[caught.by or "nothing"] += 1
        print(
            f"| {bug.program} | {bug.after} | {bug.what} | {caught.by or 'nothing'} |", flush=True
        )
    print(f"\n{len(bugs)} bugs: {', '.join(f'{n} {by}' for by, n in noticed.most_common())}")


if __name__ == "__main__":
    main()

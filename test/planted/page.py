"""Writes docs/reference/planted-bugs.md from the tables of planted bugs.

    cd test && PYTHONPATH=. python -m planted.page [--check]

Nothing is executed here: each row is a test, which asserts what the page says of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from endtoend import test_breaks, test_gemv_breaks, test_program_faults, test_shift_breaks
from endtoend.test_matmul_warp_breaks import BREAKS as WARP_BREAKS

from tcir.tools.dev.generated_page import write_or_check

from . import attack, test_values
from .programs import program

TARGET = Path(__file__).resolve().parents[2] / "docs" / "reference" / "planted-bugs.md"
VALUES = "values"
WORDS = {
    "synchronisation": "wait waits fence commit expect_tx parity bar.sync barrier",
    "descriptors and instruction fields": (
        "SBO LBO swizzle descriptor stale type ue8m0 16 accumulates accumulate accumulator slice"
    ),
    "memory plan": "overlap over shared",
}
"""Classes of other bugs, by a word of their names; the first that fits."""
ELSE = "data movement and indexing"
UNDEFINED = "undefined behaviour, no meaning"
CLASSES = (VALUES, ELSE, *WORDS, UNDEFINED)

INTRO = """\
<!-- Written by `python -m planted.page` in test/; edit the tables of the tests instead. -->

# Planted bugs

This page lists bugs that were planted in compiled programs, one at a time, and the verdict of
`--validate-each` for each. A bug is planted in the text of the program or of its PTX after one
pass, or in the pass itself. Each row is a test that asserts the verdict. `make test` runs a quarter
of these tests, and `make test-all` runs all. `PYTHONPATH=. python -m planted.page` in `test/`
writes this page.

A program with a bug in values is executed in the order of issue. With any other bug, it is also
executed in up to ten more orders if the order of issue shows nothing.

**Caught** means that the verdict is `different`, with exit status 1. A warning leaves the exit
status 0 and counts as missed. Bugs in **values** change results for some inputs only: they are in
conversions, rounding, decoding, saturation, NaN, infinities, subnormals and scales.

`test/endtoend/test_random_faults.py` has another 320 faults, drawn at random between the passes of
all pipelines. Each of these ends in a verdict, or is rejected by the next pass or by the verifier.
`test/endtoend/test_deletion_sweep.py` deletes every op and every PTX instruction of a kernel, one
at a time. Cases that readers reported, with planted bugs among them, are in
[reported-cases.md](reported-cases.md).
"""
MISSED = """\
The report names each of these bugs, but as a warning. PTX ISA 9.7.16.6.4 requires the fence, but
kernels of Triton, Gluon and CuTe DSL ship without it ([hazards.md](../explanation/hazards.md)).
With `--ordering=isa` the verdict is `different`. Stores for which nothing waits are a warning too.
"""
SURVIVORS = """\
For these bugs there is no warning either, although the results differ on some inputs. The reason
follows each bug:
"""
HARMLESS = "After these edits the program is still right, so its verdict must be `equal`:\n"


@dataclass(frozen=True)
class Row:
    """One bug: what it is, where, what notices it, and at which pass if not at its own."""

    kind: str
    pipeline: str
    at: str
    what: str
    by: str
    named_at: str = ""

    @property
    def caught(self) -> bool:
        """Whether the pass is `different`."""
        return bool(self.by) and not self.by.startswith("warning")


def _kind(what: str) -> str:
    words = set(what.replace(":", " ").replace("(", " ").replace(")", " ").split())
    return next((kind for kind, each in WORDS.items() if words & set(each.split())), ELSE)


def _any(by: tuple[str, ...]) -> str:
    return "any" if by == test_breaks.NOTICED else " or ".join(by)


def rows() -> Iterator[Row]:
    """All planted bugs; a pipeline of two names has the newer one."""
    for row in _rows():
        yield replace(row, pipeline="gemm") if row.pipeline == "matmul" else row


def _rows() -> Iterator[Row]:
    for bug in test_values.BUGS:
        yield Row(VALUES, program(bug.program).pipeline, bug.after, bug.what, bug.by)
    for bug in attack.BUGS:
        kind = VALUES if bug not in attack.STRUCTURE else _kind(bug.what)
        yield Row(kind, program(bug.program).pipeline, bug.after, bug.what, bug.by)
    for each in test_breaks.BREAKS:
        yield Row(_kind(each.what), each.pipeline, each.at, each.what, _any(each.by))
    for text in test_breaks.PTX_BREAKS:
        by = _any(text.by)
        yield Row(_kind(text.what), "conv-shift-reuse", "llvm-to-ptx", text.what, by)
    for name, shift in test_shift_breaks.BREAKS.items():
        yield Row(_kind(name), "conv-shift-reuse", shift.blamed, name, "any")
    for gemv in test_gemv_breaks.BREAKS:
        by = _any(gemv.by)
        yield Row(_kind(gemv.what), "gemv-padded-n", gemv.at, gemv.what, by)
    for change in test_gemv_breaks.PTX_BREAKS:
        yield Row(_kind(change.what), "gemv-padded-n", "llvm-to-ptx", change.what, change.by)
    for name, (after, _, _, seen) in WARP_BREAKS.items():
        late = "" if seen == "break" else seen
        yield Row(_kind(name), "matmul-warp", after, name, "any", late)
    for name, (at, _, words) in test_program_faults.FAULTS.items():
        yield Row(UNDEFINED, "gemm", at, name, words.partition(":")[0])


def render() -> str:
    """The page."""
    found = list(rows())
    caught = [row for row in found if row.caught]
    values = sum(row.kind == VALUES for row in found)
    late = [row for row in found if row.named_at]
    lines = [
        INTRO,
        f"**{len(found)} bugs, {values} of them in values; {len(caught)} caught "
        f"({100 * len(caught) // len(found)} %), {len(caught) - len(late)} at the pass that has "
        f"the bug.** The table gives caught / planted bugs by class and pipeline:\n",
        *_matrix(found),
        "\n## Missed\n",
        MISSED,
        *(f"- {row.pipeline}, `{row.at}`: {row.what}"
          for row in found if row.by.startswith("warning")),
        "\n## Survivors\n",
        SURVIVORS if attack.SURVIVORS else "No bug survived: the report names each of them.",
        *(f"- {program(name).pipeline}, {name}: {what}. {why[0].upper()}{why[1:]}"
          for (name, what), why in attack.SURVIVORS.items()),
        "\n## Named at a later pass\n",
        *(f"- {row.pipeline}, `{row.at}`: {row.what}: named at `{row.named_at}`, the first level "
          "with threads" for row in late),
        "\n## Harmless\n",
        HARMLESS,
        *(f"- {each.pipeline}, `{each.at}`: {each.what}" for each in test_breaks.HARMLESS),
        "\n## All\n",
        "In the last column, `any` is a difference, a hazard, an illegal act or a deadlock.\n",
        "| class | pipeline | after pass | bug | noticed as |",
        "|---|---|---|---|---|",
        *(f"| {row.kind} | {row.pipeline} | {row.at} | {row.what} | {row.by or 'nothing'} |"
          for row in found),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _matrix(found: list[Row]) -> Iterator[str]:
    found = [replace(row, pipeline=row.pipeline.partition("{")[0]) for row in found]
    pipelines = list(dict.fromkeys(row.pipeline for row in found))
    planted = Counter((row.kind, row.pipeline) for row in found)
    caught = Counter((row.kind, row.pipeline) for row in found if row.caught)
    yield f"| class | {' | '.join(pipelines)} | all |"
    yield "|---|" + "---:|" * (len(pipelines) + 1)
    for kind in CLASSES:
        cells = [
            f"{caught[kind, p]}/{planted[kind, p]}" if planted[kind, p] else "" for p in pipelines
        ]
        every = [sum(n[kind, p] for p in pipelines) for n in (caught, planted)]
        yield f"| {kind} | {' | '.join(cells)} | {every[0]}/{every[1]} |"


if __name__ == "__main__":
    raise SystemExit(write_or_check(TARGET, render, "planted.page"))

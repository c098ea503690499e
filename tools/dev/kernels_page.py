"""Writes docs/reference/kernels.md: what combines with what in the kernels of tensor cores.

    python -m tcir.tools.dev.kernels_page [--check]

The cells are read off the tiling passes' options and the rows of `tcir.passes.kernels.legal`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcir.passes.kernels import legal
from tcir.passes.kernels.legal import Limit
from tcir.passmanager.pipeline import registered_passes
from tcir.target import DEFAULT_TARGET, targets_with
from tcir.tools.dev.generated_page import write_or_check

TARGET = Path(__file__).resolve().parents[2] / "docs" / "reference" / "kernels.md"

INTRO = """\
<!-- Written by `python -m tcir.tools.dev.kernels_page`; edit passes/kernels/legal.py instead. -->

# What combines with what

A kernel of a tensor core is a product (what is multiplied), a core (what multiplies), a scheduler
(which CTA has which tiles) and a store. The table has a row for each tiling pass and core, and a
column for each feature: *yes*, the number of the reason below, or *no option* where the pass cannot
be asked. `test/passes/kernels` compiles every *yes* to PTX and shows every reason as an error.
"""


@dataclass(frozen=True)
class Route:
    """A tiling pass, with a product and a core."""

    tiling: str
    product: str
    core: str

    @property
    def title(self) -> str:
        """The heading of its row."""
        return f"`{self.tiling}`, {self.product}, {self.core}"


ROUTES = (
    Route("tile-gemm", legal.DENSE, legal.TCGEN05),
    Route("tile-gemm", legal.DENSE, legal.WGMMA),
    Route("tile-gemm", legal.SCALED, legal.TCGEN05),
    Route("tile-gemm", legal.GROUPED, legal.TCGEN05),
    Route("tile-gemm", legal.GROUPED, legal.WGMMA),
    Route("tile-conv-implicit-gemm", legal.IM2COL, legal.TCGEN05),
    Route("tile-conv-implicit-gemm", legal.IM2COL, legal.WGMMA),
    Route("tile-conv-smem-offset", legal.ROW_WALK, legal.TCGEN05),
    Route("tile-conv-smem-offset", legal.ROW_WALK, legal.WGMMA),
    Route("tile-conv-shift-reuse", legal.SHIFTED, legal.TCGEN05),
)
FEATURES: Mapping[str, legal.Facts] = {
    "persistent": {"persistent": True},
    "scheduler=clc": {"persistent": True, "scheduler": "clc"},
    "cluster": {"cluster": "2x1"},
    "cta-group=2": {"cta_group": 2},
    "store=tma": {"store": "tma"},
    "epilogue-tile": {"epilogue_tile": "128x32"},
    "n-tiles": {"n_tiles": 2},
    "split of K": {"split_k": 2, "sums": "parts"},
}
"""Feature of a column."""


def reason(route: Route, feature: legal.Facts) -> Limit | str:
    """Why a route does not have a feature: a row, or "no option"; "" if it has it."""
    options = legal.options_of(registered_passes()[route.tiling]())
    asked = {*feature} - {"split_k", "sums"}
    if not asked <= {*options}:
        return "no option"
    target = DEFAULT_TARGET.name if route.core == legal.TCGEN05 else targets_with("wgmma")[0]
    facts = {"product": route.product, "core": route.core, "target": target}
    return legal.find({**options, **facts, **feature}) or ""


def render() -> str:
    """The page."""
    used: list[Limit] = []

    def cell(found: Limit | str) -> str:
        if isinstance(found, str):
            return found or "yes"
        if found not in used:
            used.append(found)
        return f"no ({used.index(found) + 1})"

    lines = [INTRO, f"| kernel | {' | '.join(FEATURES)} |", "|---" * (len(FEATURES) + 1) + "|"]
    for route in ROUTES:
        cells = [cell(reason(route, feature)) for feature in FEATURES.values()]
        lines.append(f"| {route.title} | {' | '.join(cells)} |")
    lines.append("")
    for number, row in enumerate(used):
        lines.append(f"{number + 1}. {_sentence(row)}")
    lines += [
        "\n## Every row\n",
        "A row excludes other values of a fact beside others; facts are options, or what the op "
        "and the target say.\n",
        "| fact | only | beside | why not | source | way out |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(row) for row in legal.ROWS]
    return "\n".join(lines) + "\n"


def _sentence(row: Limit) -> str:
    source = f" ({row.source})" if row.source else ""
    return f"{row.reason[0].upper()}{row.reason[1:]}{source}."


def _row(row: Limit) -> str:
    only = ", ".join(f"`{legal.written(value)}`" for value in row.only if value != "") or "none"
    beside = ", ".join(
        f"{legal.dashed(key)} = {' or '.join(map(legal.written, legal.values_of(value)))}"
        for key, value in row.beside.items()
    )
    cells = legal.dashed(row.fact), only, beside, row.reason, row.source, row.way_out
    return f"| {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the page, or checks it; returns the exit status."""
    return write_or_check(TARGET, render, "tcir.tools.dev.kernels_page", argv)


if __name__ == "__main__":
    sys.exit(main())

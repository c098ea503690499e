"""Writes docs/reference/kernels.md: which features combine in the kernels of tensor cores.

    python -m tcir.tools.dev.kernels_page [--check]

The cells are derived from the tiling passes' options and the rows of `tcir.passes.kernels.legal`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tcir.passes.kernels import legal
from tcir.passes.kernels.legal import Absent, Limit
from tcir.passmanager.pipeline import registered_passes
from tcir.target import DEFAULT_TARGET, targets_with
from tcir.tools.dev.generated_page import write_or_check

TARGET = Path(__file__).resolve().parents[2] / "docs" / "reference" / "kernels.md"

INTRO = """\
<!-- Written by `python -m tcir.tools.dev.kernels_page`; edit passes/kernels/legal.py instead. -->

# What combines with what

A tensor-core kernel has a product (what it multiplies), a core (which instruction multiplies), a
scheduler (which CTA computes which tiles) and a store. The table has a row per tiling pass and
core, and a column per feature: *yes*, or *no* with the number of the reason below. A reason that
begins with "not built" is missing work; other reasons are limits of the hardware or of a layout.
`test/passes/kernels` compiles every *yes* to PTX, and shows that every *no* is an error with this
reason, except if a pass has no such option.
"""


@dataclass(frozen=True)
class Route:
    """A row of the page: a tiling pass with a product and a main loop (core).

    named: facts of the features for which this pass has an option of another name
    """

    tiling: str
    product: str
    core: str
    named: Mapping[str, legal.Facts] = field(default_factory=dict)

    def feature(self, name: str) -> legal.Facts:
        """The facts of the feature `name` for this pass."""
        return self.named.get(name, FEATURES[name])

    @property
    def title(self) -> str:
        """The heading of the row."""
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
    Route("tile-gemv-padded-n", legal.PADDED, legal.TCGEN05, {
        "persistent": {"schedule": "stream-k"}, "scheduler=clc": {"scheduler": "clc"},
        "cta-group=2": {"m_tile": 256, "pad_n": 32}, "split of K": {"schedule": "split-k"}}),
)  # fmt: skip
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


def reason(route: Route, name: str) -> Limit | Absent | None:
    """Returns the reason why a row lacks a feature: the limit that forbids the feature, or the
    entry that says why the pass lacks the option; None if the row has the feature."""
    feature, options = route.feature(name), legal.options_of(registered_passes()[route.tiling]())
    if not {*feature} - {"split_k", "sums"} <= {*options}:
        return legal.absent(route.tiling, route.core, name)
    target = DEFAULT_TARGET.name if route.core == legal.TCGEN05 else targets_with("wgmma")[0]
    facts = {"product": route.product, "core": route.core, "target": target}
    return legal.find({**options, **facts, **feature})


def render() -> str:
    """The text of the page."""
    used: list[str] = []

    def cell(found: Limit | Absent | None) -> str:
        if found is None:
            return "yes"
        if (text := _sentence(found)) not in used:
            used.append(text)
        return f"no ({used.index(text) + 1})"

    lines = [INTRO, f"| kernel | {' | '.join(FEATURES)} |", "|---" * (len(FEATURES) + 1) + "|"]
    for route in ROUTES:
        cells = [cell(reason(route, name)) for name in FEATURES]
        lines.append(f"| {route.title} | {' | '.join(cells)} |")
    lines.append("")
    lines += [f"{number + 1}. {text}" for number, text in enumerate(used)]
    lines += [
        "\n## Every row\n",
        "A fact is an option of a pass, or a property of the op or of the target. Each row says "
        "which values of one fact can be combined with which values of other facts.\n",
        "| fact | only | beside | why not | source | way out |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(row) for row in legal.ROWS]
    return "\n".join(lines) + "\n"


def _sentence(row: Limit | Absent) -> str:
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

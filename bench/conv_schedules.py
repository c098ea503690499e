"""What each schedule costs for every convolution of ResNet-50: ``python bench/conv_schedules.py``.

Bytes and lanes are exact counts (a test compares them with the simulated machine's); times are
modelled by `tcir.passes.conv.cost`; nothing was measured on a B200.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tcir.dialect import tc
from tcir.passes.build.tile_kernel import find_sources
from tcir.passes.conv.cost import Cost
from tcir.passes.conv.schedules import Candidate, rank
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.passes.raising.split_launches import SplitLaunches
from tcir.passes.simt.convert_repack_to_simt import ConvertRepackToSimt
from tcir.program.source import Chunk, load_module, mlir_context, split_chunks

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
COLUMNS = f"{'layer':<24}{'batch':>6}  {'schedule':<32}{'n-tile':>7}{'us':>8}{'MB':>8}{'lanes':>7}"


@dataclass(frozen=True)
class Layer:
    """One convolution of a file, at a batch size, and its schedules, cheapest first."""

    name: str
    batch: int
    text: str
    ranked: list[Candidate]


def layers(path: Path, batches: tuple[int, ...]) -> Iterator[Layer]:
    """Every convolution of `path` at every batch size."""
    for chunk in split_chunks(path.read_text(), path.name):
        for batch in batches:
            yield _layer(chunk, batch)


def _layer(chunk: Chunk, batch: int) -> Layer:
    text = with_batch(chunk.text, batch)
    with mlir_context() as context:
        module = load_module(text, context)
        for each in (RaiseToTc(), SplitLaunches(), ConvertRepackToSimt()):
            each.apply(module)
        (source,) = find_sources(module, tc.Conv2dOp, "conv_schedules")
        ranked = rank(source.op)
    return Layer(str(source.function.name.value), batch, text, ranked)


def with_batch(text: str, batch: int) -> str:
    """The module for another batch size. Filters that are 1 high are 1 wide, so images differ."""
    return re.sub(r"tensor<1x(?!1x)", f"tensor<{batch}x", text)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    arguments = parser.parse_args()
    print(COLUMNS)
    for layer in layers(EXAMPLES / "resnet50_convs.mlir", tuple(arguments.batch)):
        print(*rows(layer), sep="\n")


def rows(layer: Layer) -> Iterator[str]:
    """The table's lines for one layer, the choice first."""
    for place, each in enumerate(layer.ranked):
        head = f"{layer.name if not place else '':<24}{layer.batch if not place else '':>6}  "
        if each.work is None or each.reason:
            yield f"{head}{each.schedule:<32} not legal: {each.reason[:60]}"
            continue
        work = each.work
        loaded = (work.activations + work.filters) / 1e6
        yield (
            f"{head}{each.schedule:<32}{work.n_tile:>7}{Cost.of(work).microseconds:>8.2f}"
            f"{loaded:>8.2f}{work.lane_efficiency:>7.2f}"
        )


if __name__ == "__main__":
    main()

"""What each schedule costs for every convolution of ResNet-50: ``python bench/conv_schedules.py``.

Behind the schedules of a layer stand the choices under other answers to the constants on which
sources disagree. Bytes and lanes are exact counts (a test compares them with the simulated
machine's); times are modelled by `tcir.passes.conv.cost`; nothing was measured on a B200.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tcir.dialect import tc
from tcir.passes.conv.schedules import ConvCandidate, ConvSchedules
from tcir.passes.emit.tile_kernel import find_sources
from tcir.passes.module.split_launches import SplitLaunches
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.passes.simt.convert_to_simt import ConvertToSimt
from tcir.program.source import Chunk, load_module, mlir_context, split_chunks

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
COLUMNS = f"{'layer':<24}{'batch':>6}  {'schedule':<32}{'n-tile':>7}{'us':>8}{'MB':>8}{'lanes':>7}"


@dataclass(frozen=True)
class Layer:
    """One convolution of a file, at a batch size, and its schedules, cheapest first.

    choices: the cheapest under each other answer to a disputed constant
    """

    name: str
    batch: int
    text: str
    ranked: list[ConvCandidate]
    choices: dict[str, ConvCandidate]

    def changed(self) -> dict[str, ConvCandidate]:
        """Answers to disputed constants under which another schedule or width is the cheapest."""
        chosen = str(self.ranked[0])
        return {answer: each for answer, each in self.choices.items() if str(each) != chosen}


def layers(path: Path, batches: tuple[int, ...]) -> Iterator[Layer]:
    """Returns every convolution of `path` at every batch size."""
    for chunk in split_chunks(path.read_text(), path.name):
        for batch in batches:
            yield _layer(chunk, batch)


def _layer(chunk: Chunk, batch: int) -> Layer:
    text = with_batch(chunk.text, batch)
    with mlir_context() as context:
        module = load_module(text, context)
        for each in (RaiseToTc(), SplitLaunches(), ConvertToSimt()):
            each.apply(module)
        (source,) = find_sources(module, tc.Conv2dOp, "conv_schedules")
        schedules = ConvSchedules(source.op)
        ranked, choices = schedules.ranked(), schedules.choices()
    return Layer(str(source.function.name.value), batch, text, ranked, choices)


def with_batch(text: str, batch: int) -> str:
    """The module for another batch size. Filters that are 1 high are 1 wide, so images differ."""
    return re.sub(r"tensor<1x(?!1x)", f"tensor<{batch}x", text)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32])
    arguments = parser.parse_args()
    print(COLUMNS)
    found = list(layers(EXAMPLES / "resnet50_convs.mlir", tuple(arguments.batch)))
    for layer in found:
        print(*rows(layer), sep="\n")
    print("", *dispute_table(found).splitlines(), sep="\n")


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
            f"{head}{each.schedule:<32}{work.n_tile:>7}{each.microseconds:>8.2f}"
            f"{loaded:>8.2f}{work.lane_efficiency:>7.2f}"
        )
    for answer, each in layer.changed().items():
        yield f"{'':<32}under {answer}: {each}"


def markdown(layer: Layer) -> str:
    """The row of docs/reference/resnet50-schedules.md."""
    legal = [each for each in layer.ranked if not each.reason]
    cells = [layer.name, str(layer.batch)]
    for name in ("shift-reuse", "smem-offset", "implicit-gemm"):
        each = next(each for each in legal if each.schedule.startswith(f"conv-{name}"))
        assert each.work is not None
        if name == "shift-reuse":
            cells.append(f"{short(each).split()[1]}, {each.work.n_tile}")
        megabytes = (each.work.activations + each.work.filters) / 1e6
        cells += [
            f"{each.microseconds:.2f}",
            f"{megabytes:.1f}",
            f"{each.work.lane_efficiency:.2f}",
        ]
    return f"| {' | '.join([*cells, short(legal[0])])} |"


def short(each: ConvCandidate) -> str:
    """A schedule as the page names it: ``shift-reuse rows``."""
    name, _, tiling = each.schedule.removeprefix("conv-").rstrip("}").partition("{tiling=")
    return f"{name} {tiling}".strip()


def dispute_table(found: Iterable[Layer]) -> str:
    """Markdown: for each answer to a disputed constant, the layers that have another schedule."""
    changed: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for layer in found:
        for answer, each in layer.choices.items():
            groups = changed[answer]
            if answer in layer.changed() and each.work:
                name = short(each)
                name += f", n-tile {each.work.n_tile}" * (name == short(layer.ranked[0]))
                groups.setdefault(name, []).append(f"{layer.name} ({layer.batch})")
    lines = ["| constant = answer | layers that change | to: layer (batch) |", "|---|---|---|"]
    for answer, groups in changed.items():
        words = "; ".join(f"{name}: {', '.join(each)}" for name, each in groups.items())
        lines.append(f"| {answer} | {sum(map(len, groups.values()))} | {words or '-'} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""Attention for the shapes of published tables: times that were modelled before they were read.

    python bench/attention_predicted.py --predict tcir
    TCIR_PEERS_FLASH_ATTN=PYTHON python bench/attention_predicted.py --predict FlashAttention
    python bench/attention_predicted.py      # predicted beside published, a Markdown table

With ``--predict`` CTAs of kernels are executed (`attention_peers.py` says what is needed) and a
file of predictions and its hash are written. published_attention.json has figures that were
measured or looked up later, with their sources. Shapes are those of FlashAttention's benchmarks: as
many heads as fill `WIDTH` elements, as many batches as fill `TOKENS`.

Two CTAs of each kernel are modelled, with `KEYS` keys, whose loads hit in L2; other numbers of keys
cost as many blocks more. Under a causal mask a CTA's rows are the last ones, so that their last
blocks are masked. A launch has a CTA for each tile, those with most keys first, and each begins on
the SM that is free first. Power is not modelled: TFLOP/s are given at two clocks of
`tcir.time.Constants`, the default one and that of products which are held at the power limit.

Exit status: 0, 1 if predictions have another hash.
"""

from __future__ import annotations

import argparse
import heapq
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT)]
PREDICTIONS = {
    "tcir": ROOT / "predictions_attention_tcir.json",
    "FlashAttention": ROOT / "predictions_attention_flash.json",
}
PUBLISHED = ROOT / "published_attention.json"
BLACKWELL, HOPPER = "sm_100a", "sm_90a"
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768)
KEYS = (512, 1024)
"""Numbers of keys of the recorded CTAs."""
BLOCK = 128
WIDTH = 2048
TOKENS = {BLACKWELL: 32768, HOPPER: 16384}
LIMITED = {BLACKWELL: "power", HOPPER: "held"}
"""The clock at the power limit, an answer of `tcir.time.Constants`."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of one kind of attention in 16 bits.

    size: elements of a head; rows: those of a CTA; record: executes a CTA with so many keys
    """

    name: str
    target: str
    size: int
    causal: bool
    rows: int
    record: Callable[[int], Any]


def kernels(name: str, folder: Path) -> Iterator[Kernel]:
    """The kernels that are predicted; folder: PTX of FlashAttention's, as far as it is there."""
    import attention_peers as peers

    for target, sizes in ((HOPPER, (64, 128, 256)), (BLACKWELL, (64, 128))):
        for size in sizes:
            for causal in (False, True):
                rows = peers.ROWS if target == BLACKWELL else 192 if size == 64 else 128
                given = {"rows": rows, "causal": causal, "target": target}
                if name == "FlashAttention":
                    record = partial(peers.of_flash_attention, folder, size, **given)
                elif target == HOPPER and size < 256:
                    record = partial(peers.of_ours, size, **given)
                else:
                    continue
                yield Kernel(name, target, size, causal, rows, record)


def predict(kernel: Kernel) -> dict[str, Any]:
    """Cycles of a CTA and of a block, and TFLOP/s by clock and length."""
    from tcir.codegen import assemble
    from tcir.target import TARGETS
    from tcir.time import Constants
    from tcir.time.engine import Surroundings, simulate
    from tcir.time.waves import ctas_per_sm

    constants, sms = Constants(kernel.target), TARGETS[kernel.target].sms
    cycles, busiest = {}, {}
    for keys in KEYS:
        measured = kernel.record(keys)
        stream, cubin = measured.stream, assemble(measured.ptx, target=kernel.target)
        threads = stream.block[0] * stream.block[1] * stream.block[2]
        residents = ctas_per_sm(threads, cubin.registers, stream.shared_bytes, kernel.target)
        timeline = simulate(stream, constants, Surroundings(sms, 0.0, residents, residents))
        cycles[keys] = timeline.cycles
        busiest = max(timeline.limits.items(), key=lambda each: each[1])
    block = (cycles[KEYS[1]] - cycles[KEYS[0]]) / ((KEYS[1] - KEYS[0]) // BLOCK)
    first = cycles[KEYS[0]] - block * (KEYS[0] // BLOCK)
    clocks = (
        constants["clock"],
        Constants(kernel.target, {"clock": LIMITED[kernel.target]})["clock"],
    )
    rates: dict[float, dict[int, float]] = {clock: {} for clock in clocks}
    for length in LENGTHS:
        batches, heads = max(1, TOKENS[kernel.target] // length), WIDTH // kernel.size
        tiles = [
            first + block * -(-keys // BLOCK) + constants["cta-start"]
            for end in range(kernel.rows, length + kernel.rows, kernel.rows)
            for keys in [min(end, length) if kernel.causal else length]
        ]
        flop = 4 * batches * heads * length**2 * kernel.size * (0.5 if kernel.causal else 1)
        took = constants["kernel-start"] + makespan(tiles, batches * heads, sms * residents)
        for clock in clocks:
            rates[clock][length] = round(flop / took * clock / 1e3, 1)
    return {
        "kernel": kernel.name,
        "target": kernel.target,
        "size": kernel.size,
        "causal": kernel.causal,
        "rows": kernel.rows,
        "ctas_per_sm": residents,
        "registers": cubin.registers,
        "spilled_bytes": cubin.spill_bytes,
        "cycles_before_and_after": round(first),
        "cycles_of_a_block": round(block),
        "busiest": f"{busiest[0]}, {busiest[1]:.0%}",
        "tflops_by_ghz": rates,
    }


def makespan(tiles: list[float], times: int, slots: int) -> float:
    """Cycles until `times` CTAs of each of `tiles`, the longest first, are done in `slots`."""
    ends = [0.0] * slots
    for tile in sorted(tiles, reverse=True):
        for _ in range(times):
            heapq.heapreplace(ends, ends[0] + tile)
    return max(ends)


def write_predictions(name: str, folder: Path, jobs: int) -> int:
    """Predicts every kernel; writes the file and its hash."""
    from tcir.time import Constants

    rows = []
    with ProcessPoolExecutor(jobs) as pool:
        for row in pool.map(predict, kernels(name, folder)):
            rows.append(row)
            print(row, flush=True)
    targets = dict.fromkeys(row["target"] for row in rows)
    constants = {target: Constants(target).values() for target in targets}
    document = {"modelled": True, "constants": constants, "kernels": rows}
    file = PREDICTIONS[name]
    file.write_text(json.dumps(document, indent=1) + "\n")
    digest = sha256(file.read_bytes()).hexdigest()
    file.with_suffix(".sha256").write_text(f"{digest}  {file.name}\n")
    return 0


def table(
    published: list[dict[str, Any]],
    predicted: dict[tuple[Any, ...], dict[str, dict[str, float]]],
) -> Iterator[str]:
    """TFLOP/s by length, and the errors of the predictions at both clocks."""
    lengths = list(dict.fromkeys(length for row in published for length in row["tflops"]))
    yield f"| kernel | elements, mask | {' | '.join(lengths)} |"
    yield "|---" * (len(lengths) + 2) + "|"
    errors: dict[str, list[list[float]]] = {}
    for row in published:
        clocks = predicted[row["predicted"], row["target"], row["size"], row["causal"]].values()
        name, cells = f"{row['kernel']}, {row['gpu']}", []
        for length in lengths:
            if (rate := row["tflops"].get(length)) is None:
                cells.append("")
                continue
            wrong = [each[length] / rate - 1 for each in clocks]
            errors.setdefault(name, []).append(wrong)
            cells.append(f"{rate:.0f} ({', '.join(f'{each:+.0%}' for each in wrong)})")
        kind = f"{row['size']}{', causal' if row['causal'] else ''}"
        yield f"| {name} | {kind} | {' | '.join(cells)} |"
    for name, found in errors.items():
        default, limited = (statistics.median(map(abs, each)) for each in zip(*found, strict=True))
        yield f"\n{name}: median error {default:.0%}, at the power limit {limited:.0%}."


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predict", choices=PREDICTIONS)
    parser.add_argument("--folder", type=Path, help="PTX of FlashAttention's kernels, kept")
    parser.add_argument("--jobs", type=int, default=1, help="kernels at a time")
    options = parser.parse_args()
    if options.predict:
        with tempfile.TemporaryDirectory() as scratch:
            return write_predictions(options.predict, options.folder or Path(scratch), options.jobs)
    predicted = {}
    for name, file in PREDICTIONS.items():
        digest = sha256(file.read_bytes()).hexdigest()
        if file.with_suffix(".sha256").read_text().split()[0] != digest:
            print(f"{file.name}: other predictions than those of its hash", file=sys.stderr)
            return 1
        for row in json.loads(file.read_text())["kernels"]:
            predicted[name, row["target"], row["size"], row["causal"]] = row["tflops_by_ghz"]
    print("\n".join(table(json.loads(PUBLISHED.read_text()), predicted)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the chains of `mma.sync` of test/hopper on a Hopper GPU and on the simulated machine.

    python bench/hopper_mma.py --assemble build/mma     # the cubin only; needs no GPU
    python bench/hopper_mma.py --cubin build/mma        # runs it; needs no ptxas

Prints elements compared and different for each form. ``--seeds N`` runs N sets of inputs,
``--record FILE`` writes digests of the GPU's results for seed 0 (test/hopper/mma_sync.json),
``--save PREFIX`` keeps the results of the floating-point forms, one file per seed.
Exit status: 0 all results are equal, 1 not, 2 no GPU to run on.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from hopper import mma_sync  # noqa: E402

from tcir.errors import Error  # noqa: E402

TARGET = "sm_90"


def on_machine(name: str, seed: int) -> tuple[str, np.ndarray]:
    """Runs a form on the machine; returns "ok" or the finding, and the words."""
    report, words = mma_sync.on_machine(mma_sync.FORMS[name], seed, TARGET)
    if report.incomplete:
        return f"not modelled: {report.incomplete[0]}", words
    return "ok" if report.ok else str(report), words


def halves(words: np.ndarray, half: bool) -> np.ndarray:
    """Words as elements of D."""
    return words.view(np.uint16) if half else words


def compare(name: str, mine: np.ndarray, silicon: np.ndarray) -> tuple[int, int]:
    """Returns the number of elements and of those that differ; prints the first."""
    half = mma_sync.FORMS[name].d == "f16"
    a, b = halves(mine, half), halves(silicon, half)
    where = np.argwhere(a != b)
    if len(where):
        first = tuple(int(n) for n in where[0])
        print(f"{name}: at {first} the machine has {a[first]:#x}, silicon {b[first]:#x}")
    return a.size, len(where)


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assemble", type=Path, metavar="DIR")
    parser.add_argument("--cubin", type=Path, metavar="DIR")
    parser.add_argument("--record", type=Path, metavar="FILE.json")
    parser.add_argument("--save", metavar="PREFIX")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    if options.cubin:
        cubin = (options.cubin / "mma_sync.cubin").read_bytes()
    else:
        from tcir.codegen import assemble

        cubin = assemble(mma_sync.ptx(TARGET), target=TARGET).data
    if options.assemble:
        options.assemble.mkdir(parents=True, exist_ok=True)
        (options.assemble / "mma_sync.cubin").write_bytes(cubin)
        return 0
    try:
        from tcir.runtime import device

        gpu = device()
    except Error as error:
        print(f"hopper_mma: {error}")
        return 2
    print(f"{gpu}, driver {gpu.driver}")
    jobs = [(name, seed) for seed in range(options.seeds) for name in mma_sync.FORMS]
    silicon = {
        (name, seed): mma_sync.on_gpu(mma_sync.FORMS[name], cubin, seed) for name, seed in jobs
    }
    if options.save:
        for seed in range(options.seeds):
            kept = {f.name: silicon[f.name, seed] for f in mma_sync.FLOATS}
            np.savez_compressed(f"{options.save}{seed}.npz", **kept)
    if options.record:
        found = {
            "device": str(gpu),
            "driver": gpu.driver,
            "date": datetime.date.today().isoformat(),
            "digests": {n: mma_sync.digest(silicon[n, 0]) for n in mma_sync.FORMS},
        }
        options.record.write_text(json.dumps(found, indent=1) + "\n")
    spawn = multiprocessing.get_context("spawn")
    totals = {name: [0, 0] for name in mma_sync.FORMS}
    bad = False
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 1), mp_context=spawn) as pool:
        for (name, seed), (said, words) in zip(
            jobs, pool.map(on_machine, *zip(*jobs, strict=True), chunksize=4), strict=True
        ):
            if said != "ok":
                bad = True
                print(f"{name}: {said.splitlines()[0]}")
                continue
            for n, count in enumerate(compare(name, words, silicon[name, seed])):
                totals[name][n] += count
    print(f"{'form':24}{'elements':>12}{'different':>12}")
    for name, (count, different) in totals.items():
        print(f"{name:24}{count:12}{different:12}")
    print(f"{'all':24}" + "".join(f"{sum(t[n] for t in totals.values()):12}" for n in (0, 1)))
    return 1 if bad or any(t[1] for t in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

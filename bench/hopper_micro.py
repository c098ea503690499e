"""Runs the micro-kernels of test/hopper on a Hopper GPU and on the simulated machine.

    python bench/hopper_micro.py --assemble build/hopper     # cubins only; needs no GPU
    python bench/hopper_micro.py --cubins build/hopper       # runs them; needs no ptxas

Prints a line per case whose bytes differ, a table by group, and what could not be compared.
``--record FILE`` also runs the kernels that must fault, and writes digests of the GPU's bytes and
of the faults (test/hopper/silicon.json); ``--save FILE.npz`` keeps the bytes themselves.
Exit status: 0 all compared bytes are equal, 1 not, 2 no GPU to run on.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from hopper import cases  # noqa: E402

from tcir.errors import Error  # noqa: E402
from tcir.machine.refusal import Refusal  # noqa: E402

BY_NAME = {case.name: case for case in (*cases.all_cases(), *cases.faults())}


def on_machine(name: str) -> tuple[str, bytes]:
    """Runs a case on the machine; returns "ok" or the error, and the bytes."""
    try:
        report, data = cases.run_on_machine(BY_NAME[name])
    except Refusal as refusal:
        return f"rejected by the machine: {refusal}", b""
    if report.incomplete:
        return f"not modelled: {report.incomplete[0]}", b""
    return ("ok" if report.ok else f"the machine objects: {report}"), data


def on_gpu(name: str, cubin: bytes) -> tuple[str, bytes]:
    """Runs a case on the GPU; returns as `on_machine`."""
    try:
        return "ok", cases.run_on_gpu(BY_NAME[name], cubin)
    except Error as error:
        return f"{type(error).__name__}: {error}", b""


def cubin_of(source: str, folder: Path | None) -> bytes:
    """A prepared cubin, or one assembled now."""
    if folder is not None:
        return (folder / f"{source}.cubin").read_bytes()
    from tcir.codegen import assemble

    return assemble(cases.ptx_of(source), target="sm_90a").data


def run_all(names: list[str], folder: Path | None) -> dict[str, tuple[str, bytes]]:
    """Every case on the GPU; a fault ends its process, and the next case gets a new one."""
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=spawn)
    results = {}
    for name in names:
        future = pool.submit(on_gpu, name, cubin_of(BY_NAME[name].source, folder))
        results[name] = future.result()
        if fault_of(results[name][0]) != "none":
            pool.shutdown()
            pool = ProcessPoolExecutor(1, mp_context=spawn)
    pool.shutdown()
    return results


def fault_of(words: str) -> str:
    """The driver's code of a failed launch; "none" if it did not fail."""
    found = re.search(r"failed: (CUDA_ERROR_\w+)", words)
    return found[1] if found else "none"


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assemble", type=Path, metavar="DIR")
    parser.add_argument("--cubins", type=Path, metavar="DIR")
    parser.add_argument("--record", type=Path, metavar="FILE.json")
    parser.add_argument("--save", type=Path, metavar="FILE.npz")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    if options.assemble:
        options.assemble.mkdir(parents=True, exist_ok=True)
        for source in cases.SOURCES:
            (options.assemble / f"{source}.cubin").write_bytes(cubin_of(source, None))
        print(f"{len(cases.SOURCES)} cubins in {options.assemble}")
        return 0
    try:
        from tcir.runtime import device

        gpu = device()
    except Error as error:
        print(f"hopper_micro: {error}")
        return 2
    print(f"{gpu}, driver {gpu.driver}")
    names = [case.name for case in cases.all_cases() if options.only in case.name]
    illegal = [case.name for case in cases.faults()] if options.record else []
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 1), mp_context=spawn) as pool:
        expected = pool.map(on_machine, names, chunksize=8)
        silicon = run_all(names, options.cubins)
        faults = run_all(illegal, options.cubins)
        machine = dict(zip(names, expected, strict=True))
    if options.save:
        np.savez_compressed(
            options.save, **{n: np.frombuffer(b, np.uint8) for n, (_, b) in silicon.items() if b}
        )
    if options.record:
        found = {
            "device": str(gpu),
            "driver": gpu.driver,
            "date": datetime.date.today().isoformat(),
            "digests": {n: cases.digest(b) for n, (w, b) in silicon.items() if w == "ok"},
            "faults": {n: fault_of(w) for n, (w, _) in faults.items()},
        }
        options.record.write_text(json.dumps(found, indent=1) + "\n")
    groups: dict[str, Counter[str]] = {}
    for name in names:
        (said, mine), (did, theirs) = machine[name], silicon[name]
        said = said.splitlines()[0]
        if did != "ok":
            verdict = "failed"
            print(f"failed: {name}: {did}")
        elif said != "ok":
            verdict = "not compared"
            print(f"not compared: {name}: {said}")
        elif mine == theirs:
            verdict = "equal"
        else:
            verdict = "DIFFERENT"
            a, b = np.frombuffer(mine, np.uint8), np.frombuffer(theirs, np.uint8)
            where = np.flatnonzero(a != b)
            print(
                f"DIFFERENT: {name}: {where.size} of {a.size} bytes, first at {where[0]}: machine "
                f"{a[where[0]]:#04x}, silicon {b[where[0]]:#04x}"
            )
        groups.setdefault(name.split("_")[0], Counter())[verdict] += 1
    columns = ("equal", "DIFFERENT", "not compared", "failed")
    print(f"{'group':12}" + "".join(f"{c:>14}" for c in columns))
    for group, counts in groups.items():
        print(f"{group:12}" + "".join(f"{counts[c]:14}" for c in columns))
    bad = sum(c["DIFFERENT"] + c["failed"] for c in groups.values())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

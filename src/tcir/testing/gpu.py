"""Runs recorded launches on a GPU: `python -m tcir.testing.gpu FOLDER`.

Each file of the folder is a launch that the simulated machine executed (`pytest --record-launches
FOLDER`). A kernel for sm_100a is emulated if the GPU is a Hopper (docs/explanation/emulation.md);
its approximate instructions then give the bits of the simulated machine. The output has a line for
each launch that says whether the GPU leaves equal bytes in memory: equal, differs, refused (with
the reason), failed. A launch that hangs or faults ends only its own process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import IO

import numpy as np

from tcir.errors import Error
from tcir.runtime.replay import Fields
from tcir.target import EMULATING
from tcir.testing import forms
from tcir.testing.recorded import RecordedLaunch, digest

FORM = ".form"
"""Suffix of a path that names a random form instead of a file; its stem is the form's number."""


# --- before the GPU: rewrite and assemble --------------------------------------------------------


def prepare(path: Path, work: Path, target: str, ptxas: str, seeds: int) -> Fields:
    """Assembles the cubin of a recorded launch. If that is impossible, the field `refused` states
    the reason.

    seeds: number of seeds of fuzz
    """
    from tcir.emulation import EmulatedLaunch, emulate

    told: Fields = {"file": path.name}
    try:
        if path.suffix == FORM:
            recorded = forms.recorded(int(path.stem))
            path = recorded.write(work / path.stem)
        else:
            recorded = RecordedLaunch.read(path)
        about = recorded.about
        told |= {"kernel": about["entry"], "test": about.get("test", "")}
        grid, block, cluster = (tuple(about[k]) for k in ("grid", "block", "cluster"))
        launch = EmulatedLaunch(grid, block, cluster, about["dynamic_smem"])
        ptx, entry = recorded.ptx, about["entry"]
        if re.search(r"^\s*\.target\s+sm_10", ptx, re.MULTILINE) and target == EMULATING:
            told["narrow"] = _has_narrow_maps(about)
            emulated = emulate(
                ptx, launch, entry, seed=0 if seeds else None, defined=True, narrow=told["narrow"]
            )
            ptx, launch = emulated.ptx, emulated.launch
        if approximate := re.search(r"\b(\w+\.(?:approx|full)\b[\w.]*)", ptx):
            told["approximate"] = approximate[1]
        source, cubin = (work / f"{path.stem}.{suffix}" for suffix in ("ptx", "cubin"))
        source.write_text(ptx)
        done = subprocess.run(
            [ptxas, f"-arch={target}", source, "-o", cubin], capture_output=True, text=True
        )
        if done.returncode:
            words = (done.stderr or f"exit status {done.returncode}").strip().splitlines()[0]
            return told | {"verdict": "refused", "why": f"ptxas: {words}"}
        return told | {
            "record": str(path), "cubin": str(cubin), "entry": entry, "grid": launch.grid,
            "block": launch.block, "cluster": launch.cluster, "dynamic_smem": launch.dynamic_smem,
            "programmatic": about.get("programmatic", False), "seeds": seeds,
        }  # fmt: skip
    except Error as error:
        return told | {"verdict": "refused", "why": str(error)}


def _has_narrow_maps(about: Fields) -> bool:
    from tcir.emulation import narrow

    parts = [part for parts in about["params"] for part in parts]
    return narrow.some(part["map"]["dtype"] for part in parts if "map" in part)


# --- on the GPU: a process that takes launches from its input ------------------------------------


def own_output() -> IO[str]:
    """Returns this process's standard output as a stream that other writers do not share, because
    kernels may `printf`.
    """
    ours = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return ours


def work(repeats: int) -> None:
    """Runs the launches whose names are read from standard input, and prints a line for each."""
    from tcir.emulation import narrow
    from tcir.emulation.fuzz import SEED
    from tcir.runtime.devices import device
    from tcir.runtime.driver import call
    from tcir.runtime.memory import to_device
    from tcir.runtime.module import Module, synchronize
    from tcir.runtime.tensor_map import Encode, encode

    answers = own_output()
    gpu = device()
    gpu.activate()
    start, stop = (call("cuEventCreate", 0) for _ in range(2))

    def run(told: Fields) -> Fields:
        recorded = RecordedLaunch.read(Path(told["record"]))
        copies = [to_device(array, gpu) for array in recorded.before]
        encode_map: Encode = encode
        if told.get("narrow"):
            encode_map = narrow.encoder(encode_map)
        values = recorded.parameters([copy.pointer for copy in copies], encode_map)
        module = Module(Path(told["cubin"]).read_bytes(), gpu)
        function = module.function(told["entry"])
        grid, block, cluster = (tuple(told[k]) for k in ("grid", "block", "cluster"))
        smem = told["dynamic_smem"]
        times, different = [], []
        turns = told["seeds"] or repeats
        for turn in range(turns):
            if told["seeds"]:
                module.write(SEED, np.uint32(turn))
            for copy, before in zip(copies, recorded.before, strict=True):
                copy.copy_from(before)
            call("cuEventRecord", start, 0)
            function.launch(values, grid=grid, block=block, cluster=cluster, dynamic_smem=smem)
            call("cuEventRecord", stop, 0)
            synchronize()
            times.append(float(call("cuEventElapsedTime", start, stop)))
            found = [copy.numpy() for copy in copies]
            different.append(recorded.difference(found))
        module.close()
        for copy in copies:
            copy.free()
        wrong = [each for each in different if each]
        out: Fields = {"verdict": "differs" if wrong else "equal", "milliseconds": min(times)}
        out["digest"] = digest(found)
        if wrong:
            out["why"] = wrong[0] + (
                "" if len(wrong) == turns else f" (in {len(wrong)} of {turns})"
            )
            out["wrong"] = len(wrong)
        return out

    print(json.dumps({"device": str(gpu)}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = run(json.loads(line))
        except Exception as error:
            answer = {"verdict": "failed", "why": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
        if answer["verdict"] == "failed":  # the context may be of no use any more
            os._exit(1)


class GpuWorker:
    """The process that runs launches; it is replaced after a hang or a fault."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.process: subprocess.Popen[str] | None = None
        self.device = ""

    def run(self, told: Fields, seconds: float) -> Fields:
        """Runs one launch; returns its report."""
        if self.process is None:
            command = [sys.executable, "-m", "tcir.testing.gpu", "--worker", str(self.repeats)]
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                bufsize=1,
            )
            hello = self._line(60)
            if hello is None or "device" not in hello:
                return {"verdict": "failed", "why": f"no GPU process: {hello or self._end()}"}
            self.device = hello["device"]
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(told) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"verdict": "failed", "why": self._end()}
        answer = self._line(seconds)
        if answer is None:
            ended = self.process.poll() is not None
            why = self._end()
            return {"verdict": "failed", "why": why if ended else f"no end within {seconds:.0f} s"}
        if answer["verdict"] == "failed":
            self._end()
        return answer

    def _line(self, seconds: float) -> Fields | None:
        assert self.process is not None and self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else ""
        return json.loads(line) if line.startswith("{") else None

    def _end(self) -> str:
        """Kills the process; returns the last line of its error output."""
        if self.process is None:
            return ""
        self.process.kill()
        _, errors = self.process.communicate()
        self.process = None
        return (errors or "the process ended").strip().splitlines()[-1][:300]


# --- the command ---------------------------------------------------------------------------------


def _tool() -> str:
    """Path of ptxas: the one on PATH, from a toolkit that fits the driver, or else the one of the
    declared package."""
    from tcir.codegen.tools import find_tool

    return shutil.which("ptxas") or str(find_tool("ptxas"))


def _prepared(paths: Sequence[Path], work: Path, options: argparse.Namespace) -> Iterator[Fields]:
    ptxas = options.ptxas or _tool()
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = [
            pool.submit(prepare, path, work, options.target, ptxas, options.fuzz) for path in paths
        ]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _kind(told: Fields) -> str:
    """Kind of a failure, by which failures in a row are counted; "" if the launch did not fail."""
    found = re.search(r"CUDA_ERROR_\w+|no end", told.get("why", "")) if told else None
    return found[0] if told["verdict"] == "failed" and found else ""


def _say(told: Fields, out: IO[str]) -> None:
    milliseconds = f" {told['milliseconds']:.3f} ms" if "milliseconds" in told else ""
    why = f": {told['why']}" if "why" in told else ""
    note = f" [{told['approximate']}: bits not defined]" if "approximate" in told else ""
    print(
        f"{told['verdict']:8}{milliseconds} {told['file']} @{told.get('kernel', '?')} "
        f"{told.get('test', '')}{note}{why}",
        file=out,
        flush=True,
    )


def run(paths: Sequence[Path], options: argparse.Namespace) -> Fields:
    """Prepares and runs all launches; returns the report. Stops after `options.give_up` consecutive
    failures of one kind.
    """
    begun, results = time.monotonic(), []
    last, row = "", 0
    worker = GpuWorker(options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        for told in _prepared(paths, Path(folder), options):
            if "verdict" not in told:
                left = options.seconds - (time.monotonic() - begun)
                if row >= options.give_up:
                    told |= {"verdict": "not run", "why": f"{row} failures in a row: {last}"}
                elif left <= 0:
                    told |= {"verdict": "not run", "why": f"{options.seconds} s were over"}
                elif not options.prepare_only:
                    told |= worker.run(told, min(options.each, left))
                    kind = _kind(told)
                    last, row = kind, (row + 1 if kind == last else 1) if kind else 0
                else:
                    told |= {"verdict": "prepared"}
            results.append({k: v for k, v in told.items() if k not in ("record", "cubin")})
            _say(told, sys.stdout)
    worker._end()
    counts = Counter(each["verdict"] for each in results)
    return {
        "device": worker.device,
        "seconds": time.monotonic() - begun,
        "counts": dict(counts),
        "results": sorted(results, key=lambda each: str(each["file"])),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0 if all launches give equal bytes, except the refused launches."""
    parser = argparse.ArgumentParser(prog="python -m tcir.testing.gpu", description=__doc__)
    parser.add_argument(
        "folder", type=Path, nargs="*", help="folders of recorded launches, or files"
    )
    parser.add_argument(
        "--forms",
        type=int,
        default=0,
        metavar="N",
        help="also run N random forms of tcgen05.mma, which the machine executes first",
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first form")
    parser.add_argument("--json", type=Path, help="a report")
    parser.add_argument(
        "--digests", type=Path, help="write digests of the results, as test/hopper/emulation.json"
    )
    parser.add_argument("--only", default="", help="regular expression for file, kernel or test")
    parser.add_argument("--each", type=float, default=20, metavar="SECONDS", help="for one launch")
    parser.add_argument("--seconds", type=float, default=1500, help="for all")
    parser.add_argument(
        "--give-up", type=int, default=5, metavar="N", help="stop after N like failures in a row"
    )
    parser.add_argument("--repeats", type=int, default=1, help="launches of each kernel")
    parser.add_argument(
        "--fuzz",
        type=int,
        default=0,
        metavar="N",
        help="use N seeds (docs/explanation/emulation.md, Fuzz)",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that assemble")
    parser.add_argument("--target", default=EMULATING, help="the GPU's architecture")
    parser.add_argument(
        "--ptxas", help="the assembler; default: the one on PATH, else nvidia-cuda-nvcc's"
    )
    parser.add_argument("--prepare-only", action="store_true", help="rewrite and assemble; no GPU")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(options.worker)
        return 0
    paths = [p for f in options.folder for p in (sorted(f.glob("*.npz")) if f.is_dir() else [f])]
    paths += [Path(f"{seed}{FORM}") for seed in range(options.first, options.first + options.forms)]
    if options.only:
        paths = [p for p in paths if _chosen(p, options.only)]
    report = run(paths, options)
    print(f"{report['counts']} in {report['seconds']:.0f} s on {report['device'] or 'no GPU'}")
    if options.digests:
        options.digests.write_text(json.dumps(_digests(report), indent=0) + "\n")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))
    return int(any(report["counts"].get(bad) for bad in ("differs", "failed", "not run")))


def _digests(report: Fields) -> Fields:
    """Digests of the forms that ran, by number."""
    forms = [each for each in report["results"] if each["file"].endswith(FORM) and "digest" in each]
    return {each["file"].removesuffix(FORM): each["digest"] for each in forms}


def _chosen(path: Path, pattern: str) -> bool:
    if path.suffix == FORM:
        return True
    about = RecordedLaunch.read(path).about
    text = f"{path.name} {about['entry']} {about.get('test', '')}"
    return re.search(pattern, text) is not None


if __name__ == "__main__":
    sys.exit(main())

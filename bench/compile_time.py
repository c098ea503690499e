"""Cold compile time, linalg to cubin for sm_100a, beside Triton and CuTe DSL in the same run.

    python bench/compile_time.py [--repeat 5] [--peers PYTHON]
    python bench/compile_time.py --networks bert4_b8s128,resnet50_b8 [--repeat 1]

Measured is the whole process, from the interpreter's start to the cubin, caches empty:
CPU seconds of it and all its children, and seconds on the clock. Runs are interleaved; printed are
medians, and the ratio of CPU seconds to the faster peer's. ``--peers`` names a Python that has
triton and nvidia-cutlass-dsl; neither needs a GPU here. A peer that is missing is left out.

2026-11-22, 2 cores, nearly idle (load 2), medians of 5, CPU seconds::

    f16    tcir 0.65, Triton 2.04, CuTe DSL 1.90    0.34 x the faster peer
    nvfp4  tcir 0.77, Triton 2.28, CuTe DSL 1.63    0.47 x

Ratios move with the load: the tree of that morning gave 0.57 x and 0.74 x on the idle machine, and
0.53 x and 0.66 x at load 7 to 13.

``--networks`` compiles networks of `networks.py` with tcir and torch.compile, each in a fresh
process with empty caches: seconds from the call to the first result, imports apart, and CPU seconds
meanwhile. A first process of each, on a small network, is not counted: it writes byte code. Without
a GPU tcir compiles for sm_90a, to cubins, and torch.compile is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"


@dataclass
class Case:
    """A command that leaves a cubin, and what its runs took: CPU seconds, seconds on the clock."""

    problem: str
    compiler: str
    command: list[str]
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def run(self, *, keep: bool) -> str | None:
        """Runs it once with empty caches; the last line of its error when it fails."""
        with tempfile.TemporaryDirectory(prefix="tcir-compile-time-") as folder:
            environment = with_empty_caches(folder)
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(
                self.command, cwd=folder, env=environment, capture_output=True, text=True
            )
            wall, after = (
                time.perf_counter() - started,
                resource.getrusage(resource.RUSAGE_CHILDREN),
            )
        if done.returncode:
            return (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        if keep:
            self.wall.append(wall)
            self.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return None


def with_empty_caches(folder: str) -> dict[str, str]:
    """The environment, with all compilers' caches in an empty folder."""
    environment = {
        **os.environ,
        "TRITON_CACHE_DIR": f"{folder}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        "CUTE_DSL_CACHE_DIR": f"{folder}/cute",
        "CUDA_CACHE_PATH": f"{folder}/cuda",
        "TCIR_CACHE_DIR": f"{folder}/tcir",
        "TMPDIR": folder,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have byte code
    return environment


def compiled_network(compiler: str, network: str) -> dict[str, Any]:
    """What `network_cold.py` prints for a fresh process with empty caches; its error ends this
    one."""
    with tempfile.TemporaryDirectory(prefix="tcir-compile-time-") as folder:
        command = [sys.executable, str(HERE / "network_cold.py"), compiler, network]
        done = subprocess.run(
            command, env=with_empty_caches(folder), capture_output=True, text=True
        )
    if done.returncode:
        sys.exit(f"{compiler}, {network}: {done.stderr.strip() or done.returncode}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def networks(names: list[str], repeat: int) -> None:
    """Compiles networks, and prints a line for each: medians, and tcir's seconds by
    torch.compile's."""
    import torch  # not for the comparison of kernels, whose process must stay small

    compilers = ["tcir", *(["torch.compile"] if torch.cuda.is_available() else [])]
    for compiler in compilers:
        compiled_network(compiler, "mlp_16")
    for name in names:
        rows: dict[str, list[dict[str, Any]]] = {compiler: [] for compiler in compilers}
        for _ in range(repeat):
            for compiler in compilers:
                rows[compiler].append(compiled_network(compiler, name))
        took = {c: statistics.median(row["seconds"] for row in rows[c]) for c in compilers}
        words = [
            f"{compiler} {took[compiler]:.1f} s (first call "
            f"{statistics.median(row['first_call'] for row in rows[compiler]):.1f}; CPU "
            f"{statistics.median(row['all'] for row in rows[compiler]):.1f}, of this its process "
            f"{statistics.median(row['own'] for row in rows[compiler]):.1f})"
            for compiler in compilers
        ]
        ratio = f", {took['tcir'] / took['torch.compile']:.2f} x" if len(took) == 2 else ""
        load = os.getloadavg()[0]
        print(f"{name}: {', '.join(words)}{ratio}; load {load:.1f}", flush=True)


def cases(peers: str) -> list[Case]:
    """Ours and the peers', two problems each."""
    tool = [sys.executable, "-m", "tcir.tools.tc_opt", "--emit=cubin", "-o", "kernel.cubin"]
    gemv = str(EXAMPLES / "nvfp4_gemv_7168x2048x4.mlir")
    return [
        Case("f16", "tcir matmul", [*tool, str(EXAMPLES / "matmul.mlir"), "--pipeline=matmul"]),
        Case("f16", "Triton matmul", [peers, str(HERE / "triton_cold.py"), "f16"]),
        Case("f16", "CuTe DSL matmul", [peers, str(HERE / "cute_cold.py"), "f16"]),
        Case("nvfp4", "tcir gemv-padded-n", [*tool, gemv, "--pipeline=gemv-padded-n"]),
        Case("nvfp4", "Triton dot_scaled", [peers, str(HERE / "triton_cold.py"), "nvfp4"]),
        Case("nvfp4", "CuTe DSL block-scaled mma", [peers, str(HERE / "cute_cold.py"), "nvfp4"]),
    ]


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, help="default: 5, of networks 1")
    parser.add_argument("--networks", default="", metavar="NAMES", help="with commas between")
    parser.add_argument("--peers", metavar="PYTHON", default=sys.executable)
    arguments = parser.parse_args()
    if arguments.networks:
        networks(arguments.networks.split(","), arguments.repeat or 1)
        return
    running = []
    for case in cases(arguments.peers):
        error = case.run(keep=False)  # writes byte code
        if error is None:
            running.append(case)
        else:
            print(f"left out: {case.compiler}: {error}")
    for _ in range(arguments.repeat or 5):
        for case in running:
            case.run(keep=True)
    print(f"{'':<34}{'CPU, s':>8}{'wall, s':>9}{'x faster peer (CPU)':>22}")
    for case in running:
        others = [
            statistics.median(other.cpu)
            for other in running
            if other.problem == case.problem and not other.compiler.startswith("tcir")
        ]
        cpu, wall = statistics.median(case.cpu), statistics.median(case.wall)
        ours = case.compiler.startswith("tcir")
        ratio = f"{cpu / min(others):.2f}" if others and ours else ""
        print(f"{case.problem + ' ' + case.compiler:<34}{cpu:>8.2f}{wall:>9.2f}{ratio:>22}")


if __name__ == "__main__":
    main()

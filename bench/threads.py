"""Compiles in threads, in processes that share a cache, and beside forks: the same bytes, no crash.

    python bench/threads.py --compiles 1000 --threads 8 --processes 8 --forks

prints a line for each part and ends with status 1 where a process died, hung or made other code.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import tcir

PROGRAM = """
func.func @f{n}(%a: tensor<16x{k}xf16>, %b: tensor<{k}x16xf16>) -> tensor<16x16xf32> {{
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %z = linalg.fill ins(%c : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %r = linalg.matmul ins(%a, %b : tensor<16x{k}xf16>, tensor<{k}x16xf16>)
    outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}}"""
PROGRAMS = 24
PATIENCE = 120.0
"""Seconds after which a fork counts as hanging."""


def compiled(number: int, cache: bool = False) -> str:
    """Digest of the PTX of a program."""
    text = PROGRAM.format(n=number, k=32 * (1 + number % 4))
    kernel = tcir.compile(text, "gemm", cache=cache)
    return hashlib.sha256(kernel.ptx.encode()).hexdigest()


def in_threads(compiles: int, threads: int, cache: bool) -> list[set[str]]:
    """Compiles each program in threads; returns the digests."""
    found: list[set[str]] = [set() for _ in range(PROGRAMS)]

    def one(job: int) -> None:
        found[job % PROGRAMS].add(compiled(job % PROGRAMS, cache))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(compiles)))
    return found


def fork_and_compile(number: int) -> str:
    """Forks a child that compiles a program; returns how it ended."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            compiled(number)
            status = 0
        finally:
            os._exit(status)
    deadline = time.monotonic() + PATIENCE
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hung"
        time.sleep(0.01)
    return f"status {os.waitstatus_to_exitcode(ended[1])}"


def forking(stop: threading.Event, ends: Counter[str]) -> None:
    """Forks one child after another until `stop` is set."""
    while not stop.is_set():
        ends[fork_and_compile(sum(ends.values()) % PROGRAMS)] += 1


def one_process(args: argparse.Namespace) -> int:
    """Prints the digests of all programs."""
    stop, ends = threading.Event(), Counter[str]()
    forker = threading.Thread(target=forking, args=(stop, ends))
    if args.forks:
        forker.start()
    try:
        digests = in_threads(args.compiles, args.threads, args.cache)
    finally:
        stop.set()
        if args.forks:
            forker.join()
    print(" ".join(",".join(sorted(each)) for each in digests if each))
    print(f"forks: {dict(ends)}", file=sys.stderr)
    return int(any(len(each) > 1 for each in digests) or bool(set(ends) - {"status 0"}))


def processes(args: argparse.Namespace) -> int:
    """Runs several processes of this script on one cache; returns 1 if one fails or produces other
    code."""
    command = [sys.executable, "-X", "faulthandler", __file__, "--cache"]
    command += [f"--compiles={args.compiles}", f"--threads={args.threads}"]
    command += ["--forks"] if args.forks else []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TCIR_CACHE_DIR": folder}
        children = [
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
            for _ in range(args.processes)
        ]
        said = [child.communicate()[0] for child in children]
    statuses = Counter(child.returncode for child in children)
    print(f"{args.processes} processes: statuses {dict(statuses)}, outputs {len(set(said))}")
    return int(set(statuses) != {0} or len(set(said)) != 1)


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiles", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--processes", type=int, default=0, help="that share a cache")
    parser.add_argument("--forks", action="store_true", help="beside the threads")
    parser.add_argument("--cache", action="store_true", help="use the cache")
    parser.add_argument("--often", action="store_true", help="threads change every 10 us")
    args = parser.parse_args()
    if args.often:
        sys.setswitchinterval(1e-5)
    started = time.monotonic()
    status = processes(args) if args.processes else one_process(args)
    print(f"{time.monotonic() - started:.1f} s, status {status}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())

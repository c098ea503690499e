"""Speed of the simulated machine, from PTX, exact numerics, hazards off and on.

    python bench/simulator_speed.py [--size 2048] [--jax-limit 120] [--profile]
    python bench/simulator_speed.py --simt | --matmul | --memory | --growth [--before OTHER/src]

The 56x56x64 -> 56x56x64 convolution (pipeline ``conv-shift-reuse``), a square f16 matmul
(``matmul``; ``--matmul``: 1024^3, 2048^3 and 4096^3 only), and kernels without tensor cores
(``simt.cu``, compiled by the bundled nvcc; ``--simt``: these only). ``--before``: in front of each
row the same with the machine of another source tree (``git worktree add OTHER REVISION``), behind
it the ratio of CPU seconds. ``--memory``: the peak of 64 CTAs of a product and of all of them.
``--growth``: time by CTAs of that product, and by processes (``jobs``) of it, of square products in
lockstep and of a product by pairs of CTAs, which run one after the other; hazards on, by the clock
and by CPU seconds of this process and its workers, as idle cores could give. There numpy's products
take one core in each process, as they do in workers: one core is compared with more of them.
Beside them, in the same run and where jax is installed in the same environment (``pip install jax
absl-py``), JAX's Pallas Mosaic GPU interpret mode on the same product, in the largest size that
ends within ``--jax-limit`` seconds; our machine runs that size too. Where triton is installed, its
interpreter (``TRITON_INTERPRET=1``: numpy, tile by tile, no tensor core, no hazards) on the product
of 1024^3 (``triton_product.py``). What is not installed is said.
Every result is compared with numpy's, bit for bit (inputs are small integers), a softmax to 2e-6.

Each row is a process of its own: its time starts at PTX text and its memory is the process's peak.
``--profile`` prints where the matmul with hazards off spends its time instead of the table.
Exit status: 0 all results are right and the targets met, 1 not, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import dataclasses
import importlib
import importlib.metadata
import importlib.util
import math
import multiprocessing
import os
import pstats
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLE = Path(__file__).parents[1] / "examples" / "resnet50_conv2_3x3.mlir"
MATMUL = """
func.func @matmul(%a: tensor<MxKxf16>, %b: tensor<KxNxf16>) -> tensor<MxNxf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<MxNxf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<MxNxf32>) -> tensor<MxNxf32>
  %out = linalg.matmul ins(%a, %b : tensor<MxKxf16>, tensor<KxNxf16>)
      outs(%init : tensor<MxNxf32>) -> tensor<MxNxf32>
  return %out : tensor<MxNxf32>
}
"""
TARGETS = {
    1024: {"off": 0.4, "report": 0.8},
    2048: {"off": 3.0, "report": 5.0},
    4096: {"off": 30.0},
}
"""Maximum seconds for a product of each size, with hazards off and on (targets of this project, 2
idle cores)."""
FLAT = 1.1
"""Maximum ratio of the peak memory of all CTAs to that of 64, with the same arrays."""
PROCESSES = 1.7
"""Minimum speed-up of two processes for CTAs that run one after the other."""
JAX_RATIO = 10.0
"""Minimum ratio of mma FLOP/s to JAX's interpreter."""
JAX_SIZES = (512, 1024, 2048)


def _workers() -> float:
    """CPU seconds of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class Result:
    """One row. flop: of the problem, 2 per multiply-add; work that tiles add is not counted.

    cpu: of this process; workers: CPU seconds of those that it started and that have ended.
    instructions: warp instructions; None where the interpreter has none. problem: what is wrong.
    """

    name: str
    hazards: str
    flop: float
    seconds: float = 0.0
    cpu: float = 0.0
    workers: float = 0.0
    peak_mib: float = 0.0
    instructions: int | None = None
    problem: str = ""
    limit: float | None = None

    @property
    def flops(self) -> float:
        """mma FLOP per second; 0 if the result is wrong."""
        return self.flop / self.seconds if self.seconds and not self.problem else 0.0

    def measure(self, run: Callable[[], Any]) -> Any:
        """Calls ``run()`` and returns its result; records wall and CPU seconds, and the process's
        peak memory."""
        before, others, start = time.process_time(), _workers(), time.perf_counter()
        value = run()
        self.seconds, self.cpu = time.perf_counter() - start, time.process_time() - before
        self.workers = _workers() - others
        self.peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return value

    def __str__(self) -> str:
        rate = (
            "-" if self.instructions is None else f"{32e-6 * self.instructions / self.seconds:.2f}"
        )
        text = (
            f"{self.name:<38} {self.hazards:<8} {self.seconds:8.2f} {self.cpu:8.2f} {rate:>9} "
            f"{self.flops / 1e6:9.1f} {self.peak_mib:8.0f}"
        )
        if self.problem:
            return f"{text}  FAILED: {self.problem}"
        if self.limit is None:
            return text
        return f"{text}  {'met' if self.seconds <= self.limit else 'MISSED'}: {self.limit:g} s"


HEADER = (
    f"{'from PTX, exact numerics':<38} {'hazards':<8} {'seconds':>8} {'CPU s':>8} {'Mthread/s':>9} "
    f"{'MFLOP/s':>9} {'peak MiB':>8}  target"
)


@dataclass(frozen=True)
class Job:
    """A compiled kernel with its inputs and the right answer: plain data for another process."""

    name: str
    flop: float
    ptx: str = field(repr=False)
    launch: Any = field(repr=False)
    inputs: list[Any] = field(repr=False)
    expected: Any = field(repr=False)
    tolerance: float = 0.0


def compiled(
    name: str, program: str, pipeline: str, expect: Callable[..., Any], flop: float
) -> Job:
    """Compiles a program; inputs are the integers -3 to 3 without 0."""
    import tcir
    from tcir.program.inputs import make_inputs

    kernel = tcir.compile(program, pipeline)
    inputs = make_inputs(kernel.signature.inputs, 0, "integers")
    return Job(name, flop, kernel.ptx, kernel.launch_config, inputs, expect(*inputs))


def convolution() -> Job:
    """ResNet-50's 3x3 layer of conv2_x, batch 1."""

    def expect(x: Any, w: Any) -> Any:
        padded = np.pad(x.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
        return sum(
            padded[:, i : i + 56, j : j + 56] @ w[i, j].astype(np.float32)
            for i in range(3)
            for j in range(3)
        )

    flop = 2.0 * 56 * 56 * 64 * 64 * 9
    name = "conv 56x56x64 3x3 (conv-shift-reuse)"
    return compiled(name, EXAMPLE.read_text(), "conv-shift-reuse", expect, flop)


def product(a: Any, b: Any) -> Any:
    """The exact f32 product of small integers in f16."""
    return a.astype(np.float32) @ b.astype(np.float32)


def matmul(size: int, depth: int | None = None) -> Job:
    """A square product; depth: its K, if it is not square."""
    depth = depth or size
    program = MATMUL
    for name, shape in ("MxK", (size, depth)), ("KxN", (depth, size)), ("MxN", (size, size)):
        program = program.replace(name, "x".join(map(str, shape)))
    name = f"matmul {size}^3 f16 (matmul)" if depth == size else f"matmul {size}^2 x {depth} f16"
    return compiled(name, program, "matmul", product, 2.0 * size * size * depth)


def pairs() -> Job:
    """A product by pairs of CTAs, which run one after the other: clusters are not in lockstep."""
    program = MATMUL
    for name, shape in ("MxK", "2048x1024"), ("KxN", "1024x2048"), ("MxN", "2048x2048"):
        program = program.replace(name, shape)
    name = "pairs 2048^2 x 1024 f16"
    return compiled(name, program, "gemm{cta-group=2}", product, 2.0 * 2048 * 2048 * 1024)


def part(job: Job, ctas: int) -> Job:
    """The part of a product with the first columns."""
    x, y, z = job.launch.grid
    rows = ctas // x
    if z != 1 or ctas % x or y % rows:
        raise SystemExit(f"expected a grid of which {ctas} CTAs are columns, got {job.launch.grid}")
    expected = job.expected.copy()
    expected[:, expected.shape[1] * rows // y :] = np.nan
    return dataclasses.replace(
        job,
        name=f"{job.name}, {ctas} CTAs",
        flop=job.flop * rows / y,
        expected=expected,
        launch=dataclasses.replace(job.launch, grid=(x, rows, z)),
    )


@dataclass(frozen=True)
class SimtLaunch:
    """A kernel of ``simt.cu``, whose last parameter is a size."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    n: int
    dynamic_smem: int = 0

    def arguments(self, inputs: list[Any], outputs: list[Any]) -> list[Any]:
        """Arguments of the kernel."""
        return [*inputs, *outputs, np.int32(self.n)]


def simt() -> list[Job]:
    """The kernels saxpy of 2^22, softmax of 4096 rows, and an f32 product."""
    from tcir.codegen.cuda import compile_cuda

    ptx = compile_cuda(Path(__file__).parent / "simt.cu", "sm_100a")
    rng = np.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        return (rng.integers(1, 4, shape) * rng.choice((-1, 1), shape)).astype(np.float32)

    count, rows, columns, size = 1 << 22, 4096, 1024, 512
    x, y, z = numbers(count), numbers(count), numbers(rows, columns)
    a, b = numbers(size, size), numbers(size, size)
    powers = np.exp(z.astype(np.float64) - z.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)
    tiles = size // 16
    return [
        Job("saxpy 2^22 (nvcc)", 2.0 * count, ptx,
            SimtLaunch("saxpy", (count // 256, 1, 1), (256, 1, 1), count), [x, y], 3 * x + y),
        Job(f"softmax {rows} x {columns} (nvcc)", 5.0 * rows * columns, ptx,
            SimtLaunch("softmax", (rows, 1, 1), (256, 1, 1), columns), [z], shares, 2e-6),
        Job(f"matmul {size}^3 f32, SIMT (nvcc)", 2.0 * size**3, ptx,
            SimtLaunch("sgemm", (tiles, tiles, 1), (16, 16, 1), size), [a, b], a @ b),
    ]  # fmt: skip


def on_machine(job: Job, hazards: str, jobs: int = 1) -> Result:
    """Runs a kernel on the simulated machine, with a line of progress on a terminal."""
    from tcir.run import run_ptx

    row = Result(job.name, "off" if hazards == "off" else "on", job.flop)
    output = np.full(job.expected.shape, np.nan, np.float32)
    start, last = time.monotonic(), 0.0

    def progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if sys.stderr.isatty() and (now - last > 0.2 or done == total):
            last = now
            words = (
                f"{job.name}, hazards {row.hazards}: {done} of {total} CTAs, {now - start:.0f} s"
            )
            print(f"\r{words}\x1b[K", end="\r\x1b[K" if done == total else "", file=sys.stderr)
            sys.stderr.flush()

    report = row.measure(
        lambda: run_ptx(
            job.ptx,
            entry=job.launch.name,
            grid=job.launch.grid,
            block=job.launch.block,
            dynamic_smem=job.launch.dynamic_smem,
            args=job.launch.arguments(job.inputs, [output]),
            hazards=hazards,
            progress=progress,
            **({"jobs": jobs} if jobs > 1 else {}),  # which a tree from before may not have
        )
    )
    row.instructions = report.instructions
    if not report.ok:
        row.problem = str(report).partition("\n")[2]
    elif not np.allclose(output, job.expected, rtol=job.tolerance, atol=0.0, equal_nan=True):
        row.problem = "the result is not numpy's"
    return row


def on_jax(size: int, races: bool) -> Result:
    """The product in JAX's interpreter, by the matmul that JAX ships and interprets in its tests.

    That is a Hopper kernel (wgmma): the interpreter of JAX 0.10 has no rule for tcgen05. It forms
    every wgmma by one numpy.matmul, and checks races of copies and barriers but not of wgmma. The
    tile sizes are those of JAX's own test; the grid has one CTA per tile of 256 x 128, since each
    CTA costs time, idle or not. Tracing is in the seconds: a second call traces again.
    """
    os.environ["JAX_PLATFORMS"] = "cpu"
    jax: Any = importlib.import_module("jax")
    params: Any = importlib.import_module("jax._src.pallas.mosaic_gpu.interpret.params")
    hopper: Any = importlib.import_module("jax.experimental.pallas.ops.gpu.hopper_matmul_mgpu")

    rng = np.random.default_rng(0)
    a, b = (rng.integers(1, 4, (size, size)) * rng.choice((-1, 1), (size, size)) for _ in "ab")
    a, b = a.astype(np.float16), b.astype(np.float16)
    tuning = hopper.TuningConfig(
        tile_m=128,
        tile_n=128,
        tile_k=128,
        max_concurrent_steps=2,
        wg_dimension=hopper.MatmulDimension.M,
    )
    device = jax.sharding.AbstractDevice(
        device_kind="NVIDIA H100 80GB HBM3", platform="gpu", num_cores=size // 256 * (size // 128)
    )
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=device)
    mode = params.InterpretGPUParams(detect_races=races)
    row = Result(f"JAX interpret, matmul {size}^3 f16", "on" if races else "off", 2.0 * size**3)

    def run() -> Any:
        with jax.sharding.use_abstract_mesh(mesh), params.force_gpu_interpret_mode(mode):
            zero = jax.numpy.zeros((size, size), jax.numpy.float32)
            out = hopper.matmul(jax.numpy.asarray(a), jax.numpy.asarray(b), zero, tuning)
            return np.asarray(out)

    if not np.array_equal(row.measure(run), product(a, b)):
        row.problem = "the result is not numpy's"
    return row


def on_triton(size: int) -> Result:
    """The product in Triton's interpreter, which calls the kernel once for each tile of it."""
    os.environ["TRITON_INTERPRET"] = "1"
    multiply = importlib.import_module("triton_product").multiply
    rng = np.random.default_rng(0)
    a, b = (rng.integers(1, 4, (size, size)) * rng.choice((-1, 1), (size, size)) for _ in "ab")
    a, b = a.astype(np.float16), b.astype(np.float16)
    row = Result(f"Triton interpret, matmul {size}^3 f16", "off", 2.0 * size**3)
    if not np.array_equal(row.measure(lambda: multiply(a, b)), product(a, b)):
        row.problem = "the result is not numpy's"
    return row


def _child(pipe: Any, function: Callable[..., Result], arguments: tuple[Any, ...]) -> None:
    with contextlib.suppress(KeyboardInterrupt):  # the parent says so
        try:
            pipe.send(function(*arguments))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")


def alone(
    function: Callable[..., Result],
    *arguments: Any,
    limit: float | None = None,
    source: Path | None = None,
) -> Result | str:
    """Runs ``function`` in a new process that ends after ``limit`` seconds; returns its result, or
    the reason for its absence. source: the tree from which tcir is imported"""
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_child, args=(sender, function, arguments))
    before = list(sys.path)
    if source is not None:
        sys.path.insert(0, str(source))  # what a new process starts with
    process.start()
    sys.path[:] = before
    sender.close()
    try:
        if not receiver.poll(limit):
            return f"not done after {limit:.0f} s"
        result: Result | str = receiver.recv()
        return result
    except EOFError:
        process.join()
        return f"the process ended with status {process.exitcode}"
    finally:
        if process.is_alive():
            process.join(1)
            process.kill()
        process.join()


def jax_rows(limit: float) -> list[Result]:
    """Runs JAX with hazards off in growing sizes while the next is expected within the limit, then
    with hazards on."""
    largest: Result | None = None
    for size in JAX_SIZES:
        if largest is not None:
            expected = 8 * largest.seconds
            if expected > 2 * limit:  # a part of the time does not grow with the size
                print(f"(JAX interpret, {size}^3: up to {expected:.0f} s expected, not run)")
                break
        row = alone(on_jax, size, False, limit=limit)
        if isinstance(row, str):
            print(f"(JAX interpret, {size}^3: {row})")
            break
        print(row, flush=True)
        largest = row
        reached = size
    if largest is None:
        return []
    checked = alone(on_jax, reached, True, limit=limit)
    print(checked if isinstance(checked, Result) else f"(JAX interpret, races: {checked})")
    return [largest, *([checked] if isinstance(checked, Result) else [])]


def triton_row() -> Result | None:
    """The row of Triton's interpreter, for the size of `triton_product`."""
    row = alone(on_triton, 1024)
    print(row if isinstance(row, Result) else f"(Triton interpret: {row})", flush=True)
    return row if isinstance(row, Result) else None


def growth() -> int:
    """Prints seconds by CTAs of a grid, then by processes: of pairs, and of grids in lockstep."""
    print(HEADER)
    times = by_processes(pairs())
    last = matmul(8192, 128)
    for ctas in (64, 256, 1024):
        row = alone(on_one_core, part(last, ctas), 1)
        if isinstance(row, str) or row.problem:
            print(row)
            return 1
        print(f"{row}  {1000 * row.seconds / ctas:.2f} ms a CTA", flush=True)
    others = [by_processes(job) for job in (matmul(2048), matmul(4096), last)]
    if times is None or None in others:
        return 1
    print(f"pairs of CTAs: two processes {times:.2f} x one, target {PROCESSES}")
    return 0 if times >= PROCESSES else 1


def on_one_core(job: Job, jobs: int) -> Result:
    """`on_machine`, hazards on; each process takes one core."""
    from tcir import blas

    blas.one_thread()
    return on_machine(job, "report", jobs)


def by_processes(job: Job) -> float | None:
    """Prints rows of one process and of several; returns the speed-up of two, or None if one
    failed."""
    whole = whole_cpu = times = 0.0
    for jobs in [n for n in (1, 2, 4, 8, 16) if n <= (os.cpu_count() or 1)]:
        row = alone(on_one_core, job, jobs)
        if isinstance(row, str) or row.problem:
            print(row)
            return None
        words = ""
        if jobs == 1:
            whole, whole_cpu = row.seconds, row.cpu
        else:
            idle = row.cpu + row.workers / jobs
            words = (
                f"{jobs} processes: {whole / row.seconds:.2f} x one; of CPU seconds, "
                f"{row.cpu:.2f} + {row.workers:.2f} / {jobs}: {whole_cpu / idle:.2f} x"
            )
            times = times or whole / row.seconds
        print(f"{row}  {words}", flush=True)
    return times


def memory(before: Path | None) -> int:
    """Prints the peak of few and of many CTAs with the same arrays."""
    print(HEADER)
    job, good = matmul(8192, 128), True
    every = math.prod(job.launch.grid)
    for source in (None,) if before is None else (before, None):
        for hazards in ("off", "report"):
            peaks = []
            for ctas in (64, every):
                row = alone(on_machine, part(job, ctas), hazards, source=source)
                print(f"{row}{'  before' * (source is not None)}", flush=True)
                if isinstance(row, str) or row.problem:
                    return 1
                peaks.append(row.peak_mib)
            ratio = peaks[1] / peaks[0]
            good &= source is not None or ratio <= FLAT
            verdict = "met" if ratio <= FLAT else "MISSED"
            print(f"peak memory, {every} CTAs / 64 CTAs = {ratio:.2f}  {verdict}: {FLAT}")
    return 0 if good else 1


def table(
    sizes: list[int], jax_limit: float, before: Path | None, *, simt_rows: bool, others: bool
) -> int:
    """Prints rows as they are measured, then the ratios. others: rows of other kernels and JAX"""
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start; ", end="")
    print("CPU s: of all threads. Mthread/s: 32 per warp instruction, active or not.")
    if importlib.util.find_spec("jax"):
        version = importlib.metadata.version("jax")
        print(f"JAX {version}: its Hopper matmul (wgmma); 'on' is detect_races=True.")
    print(HEADER)
    good = True
    ours: dict[tuple[str, str], Result] = {}

    def run(job: Job, targets: dict[str, float]) -> None:
        nonlocal good
        for hazards, shown in (("off", "off"), ("report", "on")):
            old = None if before is None else alone(on_machine, job, hazards, source=before)
            if old is not None:
                print(f"{old}  before", flush=True)
            row = alone(on_machine, job, hazards)
            if isinstance(row, str):
                row = Result(job.name, shown, job.flop, seconds=float("nan"), problem=row)
            row.limit = targets.get(hazards)
            good &= not row.problem and (row.limit is None or row.seconds <= row.limit)
            ours[job.name, row.hazards] = row
            ratio = f"  {old.cpu / row.cpu:.1f} x before" if isinstance(old, Result) else ""
            print(f"{row}{ratio}", flush=True)

    for job in simt() if simt_rows else ():
        run(job, {})
    if others:
        run(convolution(), {})
    for size in sizes:
        job = matmul(size)
        run(job, TARGETS.get(size, {}))
    if not others:
        return 0 if good else 1
    theirs: list[Result] = []
    if importlib.util.find_spec("jax"):
        theirs = jax_rows(jax_limit)
        good &= bool(theirs) and not any(row.problem for row in theirs)
    else:
        print("no comparison: jax is not installed")
    pairs = [(job.name, row) for row in theirs]
    if theirs and theirs[0].flop != job.flop:
        same = matmul(round((theirs[0].flop / 2) ** (1 / 3)))
        run(same, {})
        pairs += [(same.name, row) for row in theirs]
    for name, row in pairs:
        mine = ours[name, row.hazards]
        if row.flops and mine.flops:
            ratio = mine.flops / row.flops
            size_words = "same size" if mine.flop == row.flop else "another size"
            verdict = "met" if ratio >= JAX_RATIO else "MISSED"
            good &= ratio >= JAX_RATIO
            print(
                f"FLOP/s, hazards {row.hazards:<3}: {name} / {row.name} ({size_words}) = "
                f"{ratio:.1f}  {verdict}: {JAX_RATIO:.0f}"
            )
    if not importlib.util.find_spec("triton"):
        print("no comparison: triton is not installed")
    elif triton := triton_row():
        good &= not triton.problem
        name = "matmul 1024^3 f16 (matmul)"
        if (name, "off") not in ours:
            run(matmul(1024), TARGETS[1024])
        mine = ours[name, "off"]
        if triton.flops and mine.flops:
            ratio = mine.flops / triton.flops
            print(f"FLOP/s, hazards off: {name} / {triton.name} (same size) = {ratio:.1f}")
    return 0 if good else 1


def profile(size: int) -> int:
    """Where a matmul spends its time. Seconds are longer than without the profiler."""
    job = matmul(size)
    profiler = cProfile.Profile()
    row = profiler.runcall(on_machine, job, "off")
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    print(HEADER, row, sep="\n")
    return 1 if row.problem else 0


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=2048, help="of the square matmul (2048)")
    parser.add_argument("--jax-limit", type=float, default=120.0, metavar="SECONDS")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--simt", action="store_true", help="only kernels without tensor cores")
    only.add_argument("--matmul", action="store_true", help="only products, in three sizes")
    only.add_argument("--memory", action="store_true", help="only the memory of many CTAs")
    only.add_argument("--growth", action="store_true", help="only time by CTAs and by processes")
    parser.add_argument("--before", type=Path, metavar="SRC", help="source tree to compare with")
    parser.add_argument("--profile", action="store_true", help="profile the matmul instead")
    options = parser.parse_args()
    try:
        if options.profile:
            return profile(options.size)
        if options.memory:
            return memory(options.before)
        if options.growth:
            return growth()
        sizes = [*TARGETS] if options.matmul else [] if options.simt else [options.size]
        every = not (options.matmul or options.simt)
        return table(
            sizes,
            options.jax_limit,
            options.before,
            simt_rows=not options.matmul,
            others=every,
        )
    except KeyboardInterrupt:
        print("\nsimulator_speed: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())

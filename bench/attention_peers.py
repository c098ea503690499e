"""Attention for sm_100a beside other compilers' forward kernels, all on the machine: a table.

    TCIR_PEERS_FLASH_ATTN=PYTHON python bench/attention_peers.py [KERNEL …] [--gluon=FILE]

A KERNEL is one of `flash-attention-4`, `cutlass` and `gluon`; FlashAttention-4 by default. PYTHON
has flash-attn-4; TCIR_PEERS_NVCC_HEADERS names the one of CUTLASS, whose example 77 is compiled
(`peers/sources.py`). FILE is Triton's example of attention in Gluon
(python/examples/gluon/01-attention-forward.py), which runs in this Python, with torch and triton.
Each kernel has a CTA of two tiles of 128 rows and the numbers of keys of `KEYS`: what a block of
128 keys takes is the difference. Instructions are those of all warps of a CTA, cycles and what is
busiest are modelled (docs/explanation/time.md); registers and spills are ptxas's.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from time_attention import TARGET, Shape  # noqa: E402

import tcir  # noqa: E402
from peers.case import Launch, rng  # noqa: E402
from peers.cases_cutlass import fmha  # noqa: E402
from peers.cases_flash_attn import forward  # noqa: E402
from peers.outcome import values  # noqa: E402
from tcir.codegen import assemble  # noqa: E402
from tcir.machine.events import EventStream, Recording  # noqa: E402
from tcir.program.execution import run_sequence  # noqa: E402
from tcir.run import run_ptx  # noqa: E402
from tcir.run_options import RunOptions  # noqa: E402
from tcir.target import DEFAULT_TARGET  # noqa: E402
from tcir.time.engine import simulate  # noqa: E402

KERNELS = ("flash-attention-4", "cutlass", "gluon")
KEYS = (512, 1024)
ROWS = 256
COMPILE = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import cute_recording, flash_attn_kernels
flash_attn_kernels.FORWARD.clear()
flash_attn_kernels.FORWARD.update(json.loads(sys.argv[3]))
cute_recording.record(
    flash_attn_kernels.FORWARD, flash_attn_kernels.forward, Path(sys.argv[2]), sys.argv[4]
)
"""
RECORD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import cutlass_kernels
name, arguments = sys.argv[3:]
example, _, *rest = cutlass_kernels.EXAMPLES[name]
cutlass_kernels.EXAMPLES[name] = (example, arguments, *rest)
cutlass_kernels.record(name, Path(sys.argv[2]))
"""


@dataclass(frozen=True)
class Measured:
    """One kernel on the machine."""

    stream: EventStream
    instructions: int
    ptx: str

    def cells(self, shorter: Measured) -> str:
        """Cells of the row: instructions and cycles of all keys and of 128 more, then resources."""
        blocks = (KEYS[1] - KEYS[0]) // 128
        timeline, before = (simulate(each.stream, TARGET) for each in (self, shorter))
        cubin = assemble(self.ptx, target=TARGET)
        more = (self.instructions - shorter.instructions) / blocks
        cycles = (timeline.cycles - before.cycles) / blocks
        busy = max(timeline.limits, key=lambda name: timeline.limits[name])
        return (
            f"{self.instructions} | {more:.0f} | {timeline.cycles:.0f} | {cycles:.0f} "
            f"| {busy}, {timeline.limits[busy]:.0%} | {cubin.registers} | {cubin.spill_bytes}"
        )


def of_recorded(folder: Path, name: str, launch_of: Callable[[Any], Launch]) -> Measured:
    """A kernel whose launch was recorded, and whose results are compared with float64."""
    path = folder / f"{name}.json"
    meta = json.loads(path.read_text())
    if "error" in meta:
        raise SystemExit(f"{name}: {meta['error']}")
    launch, recording = launch_of(meta), Recording()
    ptx = path.with_suffix(".ptx").read_text()
    report = run_ptx(
        ptx,
        entry=meta["entry"],
        grid=launch.grid,
        block=launch.block or tuple(meta["block"]),
        cluster=launch.cluster,
        dynamic_smem=launch.dynamic_smem or meta.get("dynamic_smem", 0),
        args=launch.args,
        events=recording,
    )
    if not values(launch).startswith(("exact", "within")):
        raise SystemExit(f"{name}: {values(launch)}")
    return Measured(recording.streams[0], report.instructions, ptx)


def of_flash_attention(
    folder: Path,
    size: int,
    keys: int,
    rows: int = ROWS,
    causal: bool = False,
    target: str = TARGET,
) -> Measured:
    """FlashAttention-4's kernel for a target; rows: those of a CTA. A kernel that `folder` has is
    not compiled again."""
    name = f"{target}_d{size}_{keys}" + ("_causal" if causal else "")
    if not (folder / f"{name}.json").exists():
        compile_flash_attention(folder, name, (1, rows, keys, 1, 1, size), causal, target)
    return of_recorded(folder, name, forward)


def compile_flash_attention(
    folder: Path, name: str, shape: tuple[int, ...], causal: bool, target: str
) -> None:
    """Writes the PTX and the launch of a kernel."""
    more = {"is_static_persistent": False} if target == TARGET else {}
    options = {name: (*shape, "float16", {"is_causal": causal, **more})}
    python = os.environ.get("TCIR_PEERS_FLASH_ATTN", sys.executable)
    command = [python, "-c", COMPILE, str(ROOT / "peers"), str(folder), json.dumps(options), target]
    environment = {**os.environ, "QUACK_ARCH": "sm_100"}
    subprocess.run(command, check=True, env=environment, cwd=folder)


def of_cutlass(folder: Path, size: int, keys: int) -> Measured:
    """CUTLASS's example 77, of one head."""
    name, python = f"77_fmha_{size}", os.environ.get("TCIR_PEERS_NVCC_HEADERS", sys.executable)
    arguments = f"--b=1 --h=1 --q={ROWS} --k={keys} --d={size} --iterations=0"
    command = [python, "-c", RECORD, str(ROOT / "peers"), str(folder), name, arguments]
    subprocess.run(command, check=True)
    return of_recorded(folder, name, partial(fmha, keys=keys, size=size))


def of_gluon(file: Path, folder: Path, size: int, keys: int) -> Measured:
    """Triton's example in Gluon, whose heads have as many queries as keys, 2 x 2 heads (a size of 1
    is no tensor in Triton): each CTA has two tiles."""
    import torch

    from peers.calls.__main__ import door
    from tcir.doors.device import SimulatedDevice
    from tcir.doors.launches import Launches

    seen: list[Any] = []
    ctas = 4 * keys // ROWS
    device = SimulatedDevice(DEFAULT_TARGET, ctas)
    launches = Launches(
        messages=io.StringIO(), trace=folder / "gluon.json", device=device,
        seen=lambda launch, report: seen.append((launch.ptx, report.instructions)),
    )  # fmt: skip
    spec = importlib.util.spec_from_file_location("gluon_attention", file)
    assert spec is not None
    assert spec.loader is not None
    with door(launches):
        example = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = example
        spec.loader.exec_module(example)
        q, k, v = (torch.randn(2, 2, keys, size, dtype=torch.float16) for _ in range(3))
        out, _ = example.attention_forward(q, k, v, False, 1 / math.sqrt(size), False)
    want = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    if (error := float((out - want).abs().max())) > 4e-3:
        raise SystemExit(f"gluon: results differ from float64 by {error}")
    ((ptx, instructions),) = seen
    return Measured(launches.streams[0], instructions // ctas, ptx)


def of_ours(
    size: int, keys: int, rows: int = ROWS, causal: bool = False, target: str = TARGET
) -> Measured:
    """Our kernel; with a mask, the last row has all keys."""
    text = Shape(1, 1, rows, keys, size).text
    if causal:
        text = text.replace("q_layout", f"causal_offset = {keys - rows} : i64, q_layout")
    kernel = tcir.compile(text, f"attention{{rows={rows} split-kv=1}}", target=target)
    r, recording = rng(), Recording()
    shapes = [(1, 1, each, size) for each in (rows, keys, keys)]
    inputs = [r.standard_normal(shape).astype(np.float16) for shape in shapes]
    result = run_sequence(
        kernel.ptx, kernel.launches, inputs, kernel.signature.outputs, RunOptions(events=recording)
    )
    return Measured(recording.streams[0], result.counters["instructions"], kernel.ptx)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels", nargs="*", choices=KERNELS, default=KERNELS[:1])
    parser.add_argument("--gluon", type=Path, help="the example's file")
    given = parser.parse_args()
    print(
        "| elements of a head | kernel | instructions | of 128 keys | cycles | of 128 keys "
        "| busiest | registers | spilled bytes |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rows: dict[str, Callable[[int, int], Measured]] = {
            "flash-attention-4": partial(of_flash_attention, folder),
            "cutlass": partial(of_cutlass, folder),
            "gluon": partial(of_gluon, given.gluon, folder),
        }
        for size in (64, 128):
            for name, measure in [
                *((each, rows[each]) for each in given.kernels),
                ("ours", of_ours),
            ]:
                shorter, longer = (measure(size, keys) for keys in KEYS)
                print(f"| {size} | {name} | {longer.cells(shorter)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

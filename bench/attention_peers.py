"""Attention for sm_100a beside FlashAttention-4's forward kernel, both on the machine: a table.

    TCIR_PEERS_FLASH_ATTN=PYTHON python bench/attention_peers.py

PYTHON has flash-attn-4 (`peers/sources.py`). Both kernels have one CTA of two tiles of 128 rows and
the numbers of keys of `KEYS`: what a block of 128 keys takes is the difference. Instructions are
those of all warps, cycles and what is busiest are modelled (docs/explanation/time.md); registers
and spills are ptxas's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from time_attention import TARGET, Shape  # noqa: E402

import tcir  # noqa: E402
from peers.case import rng  # noqa: E402
from peers.cases_flash_attn import forward  # noqa: E402
from peers.outcome import values  # noqa: E402
from tcir.codegen import assemble  # noqa: E402
from tcir.machine.events import EventStream, Recording  # noqa: E402
from tcir.program.execution import run_sequence  # noqa: E402
from tcir.run import run_ptx  # noqa: E402
from tcir.run_options import RunOptions  # noqa: E402
from tcir.time.engine import simulate  # noqa: E402

KEYS = (512, 1024)
ROWS = 256
COMPILE = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import cute_recording, flash_attn_kernels
flash_attn_kernels.FORWARD.clear()
flash_attn_kernels.FORWARD.update(json.loads(sys.argv[3]))
cute_recording.record(flash_attn_kernels.FORWARD, flash_attn_kernels.forward, Path(sys.argv[2]))
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


def of_flash_attention(folder: Path, name: str) -> Measured:
    """FlashAttention-4's kernel, whose results are compared with float64."""
    path = folder / f"{name}.json"
    meta = json.loads(path.read_text())
    if "error" in meta:
        raise SystemExit(f"{name}: {meta['error']}")
    launch, recording = forward(meta), Recording()
    ptx = path.with_suffix(".ptx").read_text()
    report = run_ptx(
        ptx,
        entry=meta["entry"],
        grid=launch.grid,
        block=launch.block or tuple(meta["block"]),
        cluster=launch.cluster,
        dynamic_smem=meta.get("dynamic_smem", 0),
        args=launch.args,
        events=recording,
    )
    if not values(launch).startswith(("exact", "within")):
        raise SystemExit(f"{name}: {values(launch)}")
    return Measured(recording.streams[0], report.instructions, ptx)


def of_ours(size: int, keys: int) -> Measured:
    """Our kernel."""
    shape = Shape(1, 1, ROWS, keys, size)
    kernel = tcir.compile(shape.text, f"attention{{rows={ROWS} split-kv=1}}", target=TARGET)
    r, recording = rng(), Recording()
    inputs = [
        r.standard_normal((1, 1, rows, size)).astype(np.float16) for rows in (ROWS, keys, keys)
    ]
    result = run_sequence(
        kernel.ptx, kernel.launches, inputs, kernel.signature.outputs, RunOptions(events=recording)
    )
    return Measured(recording.streams[0], result.counters["instructions"], kernel.ptx)


def main() -> int:
    """Prints the table."""
    python = os.environ.get("TCIR_PEERS_FLASH_ATTN", sys.executable)
    names = {
        f"d{size}_{keys}": (1, ROWS, keys, 1, 1, size, "float16", {"is_static_persistent": False})
        for size in (64, 128)
        for keys in KEYS
    }
    print(
        "| elements of a head | kernel | instructions | of 128 keys | cycles | of 128 keys "
        "| busiest | registers | spilled bytes |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = [python, "-c", COMPILE, str(ROOT / "peers"), str(folder), json.dumps(names)]
        environment = {**os.environ, "QUACK_ARCH": "sm_100"}
        subprocess.run(command, check=True, env=environment, cwd=folder)
        for size in (64, 128):
            theirs = [of_flash_attention(folder, f"d{size}_{keys}") for keys in KEYS]
            print(f"| {size} | FlashAttention-4 | {theirs[1].cells(theirs[0])} |", flush=True)
            ours = [of_ours(size, keys) for keys in KEYS]
            print(f"| {size} | ours | {ours[1].cells(ours[0])} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

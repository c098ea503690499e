"""Bytes moved by the NVFP4 GEMV kernels, counted by the machine, and by a plan without overlap.

    python bench/gemv.py [--shape 7168x16384x1]

Runs pipeline gemv-padded-n from PTX (numbers in plain float32, which moves the same bytes) with
both scales in the 128x4 layout, and prints the counts. Times are modelled, from public
figures of a B200 and the assumed latency below; nothing here was measured on one.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from functools import cached_property

import ml_dtypes
import numpy as np

import tcir
from tcir.passes.gemv.ranges import SMS, Ranges
from tcir.program.execution import run_sequence
from tcir.run_options import RunOptions
from tcir.target import DEFAULT_TARGET
from tcir.time.constants import Constants

SHAPES = ("7168x16384x1", "4096x7168x8", "7168x2048x4")
CONSTANTS = Constants(DEFAULT_TARGET.name)
PEAK, ACHIEVED = CONSTANTS["hbm-peak"] * 1e9, CONSTANTS["hbm"] * 1e9
"""Bytes per second of HBM: by its pins, and as loads reached."""
LATENCY = 1.0e-6
"""Assumed: seconds from a load to its arrival under load."""
SM_BYTES, CTA_BYTES = DEFAULT_TARGET.smem_per_sm, DEFAULT_TARGET.smem_reserved
"""Shared memory of an SM, and what the system reserves per CTA."""


@dataclass(frozen=True)
class Plan:
    """The traffic and resources of one way to compute the product."""

    name: str
    requested: int
    partials: int
    ctas: int
    busy: int
    in_flight: int
    balance: float

    def seconds(self, achieved: float = ACHIEVED) -> float:
        """Modelled: the slowest SM's bytes at the rate that the bytes in flight allow."""
        rate = min(achieved, self.in_flight * self.busy / LATENCY)
        share = max(self.balance, 1.0) if rate == achieved else 1.0
        return (self.requested * share + self.partials) / rate


def program(m: int, k: int, batch: int) -> str:
    """The program with one vector per batch, both scales blocked, and an f16 result."""
    of = f"{batch}x" if batch > 1 else ""
    blocks = -(-k // 64)
    a, sa = f"tensor<{of}{m}x{k}xf4E2M1FN>", f"tensor<{of}{-(-m // 128)}x{blocks}x512xf8E4M3FN>"
    b, sb = f"tensor<{of}{k}xf4E2M1FN>", f"tensor<{of}1x{blocks}x512xf8E4M3FN>"
    c = f"tensor<{of}{m}xf16>"
    return f"""func.func @gemv(%a: {a}, %sa: {sa}, %b: {b}, %sb: {sb}) -> {c} {{
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {{block = 16 : i64,
    a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}} : ({a}, {sa}, {b}, {sb}) -> {c}
  return %c : {c}
}}"""


@dataclass(frozen=True)
class Compiled:
    """Our kernel, and the properties that its text has before it runs. options: of the pipeline"""

    m: int
    k: int
    batch: int
    options: str = ""

    @cached_property
    def kernel(self) -> tcir.Kernel:
        """The compiled program."""
        pipeline = f"gemv-padded-n{{{self.options}}}"
        return tcir.compile(program(self.m, self.k, self.batch), pipeline)

    @property
    def ranges(self) -> Ranges:
        """The work of each CTA: the grid, and the stages of a tile by the width of A's box."""
        ctas = int(np.prod(self.kernel.launches.launches[0].grid))
        return Ranges(-(-self.m // 128) * self.batch, -(-self.k // (2 * self.box)), ctas)

    @cached_property
    def box(self) -> int:
        """Bytes of a row of A in a stage."""
        tiled = self.kernel.ir["tile-gemv-padded-n"]
        return int(re.search(r"box = array<i64: (\d+), 128, 1>", tiled)[1])  # type: ignore[index]

    @property
    def requested(self) -> int:
        """Bytes that all stages request: 128 rows of A and one of b; 512 bytes of scales per 4 of
        each row of A, 16 per 4 of b."""
        blocks = self.box // 32
        return self.ranges.total * (129 * self.box + blocks * (512 + 16))

    @property
    def stages_in_flight(self) -> int:
        """Slots of the rings of all CTAs that an SM holds."""
        text = self.kernel.ir["multi-buffer"]
        ring = r"!tc\.ring<(\d+) : i64, !tc\.smem<array<i64: 128, \d+>, i8"
        slots = int(re.search(ring, text)[1])  # type: ignore[index]
        smem = self.kernel.launches.launches[0].dynamic_smem + CTA_BYTES
        return slots * min(-(-self.ranges.ctas // SMS), SM_BYTES // smem)

    def plan(self, requested: int) -> Plan:
        """The plan with the bytes that the machine counted."""
        ranges = self.ranges
        partials = sum(self.kernel.launches.workspaces.sizes)
        return Plan(
            "gemv-padded-n", requested, 2 * partials, ranges.ctas, len(ranges.shares()),
            self.stages_in_flight * (requested // ranges.total), ranges.balance(),
        )  # fmt: skip

    def counted(self) -> Plan:
        """Runs the kernel from PTX and returns its plan."""
        rng = np.random.default_rng(0)
        inputs = []
        for spec in self.kernel.signature.inputs:
            if spec.dtype == ml_dtypes.float4_e2m1fn:
                codes = rng.integers(0, 256, (*spec.shape[:-1], spec.shape[-1] // 2))
                inputs.append(codes.astype(np.int8))
            else:
                scales = rng.integers(0x30, 0x40, spec.shape).astype(np.uint8)
                inputs.append(scales.view(spec.dtype))
        outcome = run_sequence(
            self.kernel.ptx,
            self.kernel.launches,
            inputs,
            self.kernel.signature.outputs,
            RunOptions(hazards="off", numerics="fast"),
        )
        return self.plan(outcome.counters["global_to_shared_read"])


def unique_bytes(m: int, k: int, batch: int) -> int:
    """Bytes of A, b and their scales, each once."""
    return batch * (m + 1) * (k // 2 + k // 16)


def without_overlap(m: int, k: int, batch: int) -> Plan:
    """The plan of 256 rows per CTA that loads the vector and its scales sixteen times, one K step
    of 64 at a time."""
    step = 256 * 32 + 16 * 32 + 256 * 4 + 16 * 4
    ctas = -(-m // 256) * batch
    busy = min(ctas, SMS)
    balance = -(-ctas // SMS) * SMS / ctas
    return Plan("256 rows, N = 16", ctas * (k // 64) * step, 0, ctas, busy, step, balance)


def main() -> None:
    """Prints a table per shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, action="append")
    for name in parser.parse_args().shape or SHAPES:
        m, k, batch = map(int, name.split("x"))
        unique = unique_bytes(m, k, batch)
        print(
            f"\n(M, K, L) = ({m}, {k}, {batch}): {unique} unique bytes; "
            f"bound {unique / PEAK * 1e6:.2f} us at {PEAK / 1e12:.2f} TB/s, modelled"
        )
        for plan in (Compiled(m, k, batch).counted(), without_overlap(m, k, batch)):
            print(
                f"  {plan.name:<18} requested {plan.requested / unique:6.4f} of that"
                f" + {plan.partials} B partials, {plan.ctas} CTAs on {plan.busy} of {SMS} SMs, "
                f"{plan.in_flight / 1024:.1f} KiB in flight per SM, "
                f"largest/mean share {plan.balance:.3f}, {plan.seconds() * 1e6:.1f} us (modelled)"
            )


if __name__ == "__main__":
    main()

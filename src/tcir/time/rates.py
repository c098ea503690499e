"""Peak rates of tensor cores by kind, computed from the products per cycle.

NVIDIA's table for Blackwell gives M x N x K per cycle of one tensor core; an SM has four tensor
cores. The rates of earlier generations are vendor data. The rates are modelled for a stated clock,
and were not measured by this project.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcir.time.constants import Constants, target_of

TENSOR_CORES = 4
"""Tensor cores of an SM."""


@dataclass(frozen=True)
class Rate:
    """Rate of one tensor core: m * n * k products per cycle.

    block: number of elements that share a scale, and the type of the scale; 0 without scales
    """

    kind: str
    m: int
    n: int
    k: int
    block: int = 0
    scales: str = ""
    ocp: bool = False

    @property
    def flop_per_cycle(self) -> int:
        """FLOPs of one SM per cycle; a product and its addition count as two."""
        return 2 * self.m * self.n * self.k * TENSOR_CORES


def _rates(m: int, **depth: int) -> dict[str, Rate]:
    return {kind: Rate(kind, m, 4 if m == 8 else 8, k) for kind, k in depth.items()}


RATES_BY_KIND: dict[str, dict[str, Rate]] = {
    "sm_80": _rates(8, tf32=4, f16=8, i8=16),
    "sm_90": _rates(8, tf32=8, f16=16, f8f6f4=32, i8=32),
    "sm_100a": {
        rate.kind: rate
        for rate in (
            Rate("tf32", 8, 8, 8),
            Rate("f16", 8, 8, 16),
            Rate("i8", 8, 8, 32),
            Rate("f8f6f4", 8, 8, 32),
            Rate("mxf8f6f4", 8, 8, 32, 32, "ue8m0", True),
            Rate("mxf4", 8, 8, 64, 32, "ue8m0", True),
            Rate("mxf4nvf4", 8, 8, 64, 16, "ue4m3"),
        )
    },
}
"""Target -> kind of ``tcgen05.mma`` -> its rate; f16 includes bf16, and on sm_90 f8f6f4 is fp8
only."""

_BEFORE = {"mxf8f6f4": "f8f6f4", "mxf4": "f8f6f4", "mxf4nvf4": "f8f6f4"}
"""Kind that Hopper lacks -> the kind it uses instead."""


def pflops(kind: str, target: str, clock_ghz: float | None = None) -> float:
    """Dense peak rate of all SMs in PFLOP/s (or POP/s), at the default clock unless another clock
    is given.
    """
    clock = clock_ghz or Constants(target)["clock"]
    chip = target_of(target)
    return RATES_BY_KIND[chip.name][kind].flop_per_cycle * chip.sms * clock / 1e6


def ratio_to_hopper(kind: str, target: str) -> float:
    """Rate per SM and cycle, relative to the rate of the widest kind of Hopper that can represent
    the type.
    """
    here = RATES_BY_KIND[target_of(target).name][kind]
    return here.flop_per_cycle / RATES_BY_KIND["sm_90"][_BEFORE.get(kind, kind)].flop_per_cycle


def rate_table() -> str:
    """Returns a Markdown table of every kind of every target, with the ratio to Hopper."""
    lines = [
        "| target | kind | per tensor core and cycle | FLOP per SM and cycle | PFLOP/s | at GHz "
        "| to Hopper | scales |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for target, rates in RATES_BY_KIND.items():
        clock = Constants(target)["clock"]
        for rate in rates.values():
            shape = f"{rate.m}x{rate.n}x{rate.k}"
            ocp = " (OCP)" if rate.ocp else ""
            scales = f"{rate.scales}, one per {rate.block}{ocp}" if rate.block else "none"
            lines.append(
                f"| {target} | {rate.kind} | {shape} | {rate.flop_per_cycle} | "
                f"{pflops(rate.kind, target):.2f} | {clock:g} | "
                f"{ratio_to_hopper(rate.kind, target):g} | {scales} |"
            )
    return "\n".join(lines)

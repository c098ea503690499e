"""The roofline of a program: the least time that its FLOPs and its bytes can take on a target.

The inputs are numbers, from a compiler or from a user; the output is a line of text. The times are
modelled, from `tcir.time.constants` and `tcir.time.rates`; nothing is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

from tcir.target import TARGETS
from tcir.time.constants import Constants
from tcir.time.rates import RATES_BY_KIND

CUDA_CORES = "CUDA cores"
"""Kind of FLOPs that no tensor core of a target executes."""


@dataclass(frozen=True)
class ExecutedWork:
    """Work of a program's kernels, summed over all CTAs; padding and repeated loads are included.

    ctas:          number of CTAs of the launch that keeps the most SMs busy, on average over its
                   waves
    tensor_cycles: cycles of all mma for which the model has a number
    products:      number of products of all mma
    to_sms:        bytes loaded from L2 into SMs
    """

    ctas: int
    tensor_cycles: int
    products: int
    to_sms: int


@dataclass(frozen=True)
class RooflineTime:
    """The time of a program by the event-driven model, and the resource that limits its longest
    launch.
    """

    microseconds: float
    bound: str


@dataclass(frozen=True)
class Roofline:
    """A program's FLOPs and bytes, and the minimum times that they take.

    flops:     FLOPs by kind of the tensor core, or `CUDA_CORES`; a product and its addition count
               as two
    hbm_bytes: bytes that must cross between HBM and the chip: each input, constant and result once
    moved:     bytes of the buffers that launches access, workspaces included; 0: not known
    executed:  work of the kernels; None: the program was not executed, or not by kernels
    modelled:  modelled time; None: the program was not executed, or has operations without
               constants
    """

    target: str
    flops: Mapping[str, int]
    hbm_bytes: int
    moved: int = 0
    executed: ExecutedWork | None = None
    modelled: RooflineTime | None = None
    choices: Mapping[str, str] = field(default_factory=dict)

    @property
    def constants(self) -> Constants:
        """Constants of the target."""
        return Constants(self.target, self.choices)

    @property
    def intensity(self) -> float:
        """FLOPs per byte of HBM."""
        return sum(self.flops.values()) / self.hbm_bytes if self.hbm_bytes else 0.0

    @property
    def ridge(self) -> float:
        """Intensity, in FLOPs per byte, above which the tensor pipe and not HBM is the limit."""
        work = self.flops or {"f16": 1}
        rate = sum(work.values()) / sum(n / self._peak(kind) for kind, n in work.items())
        return rate * TARGETS[self.target].sms * self.constants["clock"] / self.constants["hbm"]

    @property
    def limits(self) -> dict[str, float]:
        """Minimum time, in microseconds, that each resource of the whole chip needs."""
        chip = TARGETS[self.target].sms * self.constants["clock"]
        found = {"HBM": self.hbm_bytes / self.constants["hbm"] / 1000}
        for kind, count in self.flops.items():
            name = kind if kind == CUDA_CORES else f"tensor pipe, {kind}"
            found[name] = count / self._peak(kind) / chip / 1000
        return found

    @property
    def microseconds(self) -> float:
        """The bound in microseconds: no kernel for this program can be faster."""
        return max(self.limits.values())

    @property
    def bound(self) -> str:
        """The resource that determines the bound."""
        return _longest(self.limits)

    @property
    def executed_limits(self) -> dict[str, float]:
        """Minimum time, in microseconds, that each resource needs for the executed work, on the SMs
        on which it ran.
        """
        if self.executed is None:
            return {}
        did, clock = self.executed, self.constants["clock"]
        chip = self.concurrent_sms * clock
        fastest = max(map(self._peak, self.flops), default=0)
        multiplied = 2 * did.products / fastest if fastest else 0
        return {
            "HBM": self.limits["HBM"],
            "tensor pipe": max(did.tensor_cycles, multiplied) / chip / 1000,
            "L2 to SM": did.to_sms / self.constants["l2-port"] / chip / 1000,
        }

    @property
    def concurrent_sms(self) -> float:
        """Number of busy SMs, averaged over the waves of the launch that `ExecutedWork.ctas`
        describes.
        """
        assert self.executed is not None
        ctas = max(self.executed.ctas, 1)
        return ctas / ceil(ctas / TARGETS[self.target].sms)

    @property
    def share(self) -> float | None:
        """The bound divided by the modelled time, or by the minimum time of the executed work if
        that is all that is known; None if neither time is known.
        """
        if self.modelled is not None:
            return self.microseconds / self.modelled.microseconds
        longest = max(self.executed_limits.values(), default=0)
        return self.microseconds / longest if longest else None

    def __str__(self) -> str:
        kinds = ", ".join(self.flops) or "no products"
        work = scaled(sum(self.flops.values()), "FLOP")
        moved = self.moved if self.moved > self.hbm_bytes else 0
        launches = f" ({scaled(moved, 'B')} by its launches)" if moved else ""
        text = (
            f"{work} ({kinds}), {scaled(self.hbm_bytes, 'B')} of HBM{launches}, "
            f"{self.intensity:.3g} FLOP/B: at least {self.microseconds:.3g} us ({self.bound})"
        )
        if self.share is None:
            return text
        share = f"{100 * self.share:.0f} % of the roofline"
        if self.modelled is not None:
            took = self.modelled
            return f"{text}; takes {took.microseconds:.3g} us ({took.bound}), {share}"
        limits = self.executed_limits
        return (
            f"{text}; as executed at least {max(limits.values()):.3g} us ({_longest(limits)}, "
            f"{self.concurrent_sms:.0f} SMs): at most {share}"
        )

    def as_dict(self) -> dict[str, object]:
        """Returns the roofline as the JSON object of a report."""
        return {
            "flops": dict(self.flops),
            "hbm_bytes": self.hbm_bytes,
            "moved_bytes": self.moved,
            "flop_per_byte": self.intensity,
            "limits_us": self.limits,
            "bound": self.bound,
            "executed_limits_us": self.executed_limits,
            "modelled_us": self.modelled and self.modelled.microseconds,
            "limited_by": self.modelled and self.modelled.bound,
            "share": self.share,
        }

    def _peak(self, kind: str) -> float:
        """Returns the FLOPs of one SM in a cycle."""
        rate = RATES_BY_KIND[self.target].get(kind)
        return rate.flop_per_cycle if rate is not None else self.constants["cuda-cores"]


def by_kind(target: str, flops: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sums FLOPs by kind; kinds that the target's tensor cores do not have run on CUDA cores."""
    found: dict[str, int] = {}
    for kind, count in flops:
        name = kind if kind in RATES_BY_KIND[target] else CUDA_CORES
        found[name] = found.get(name, 0) + count
    return found


def scaled(number: float, unit: str) -> str:
    """Formats a number with a metric prefix and three digits: ``66.1 MB``."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {prefix}{unit}"
    return f"{number:.3g} {unit}"


def _longest(limits: Mapping[str, float]) -> str:
    return max(limits, key=lambda name: limits[name])

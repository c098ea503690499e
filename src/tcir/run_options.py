"""Options of an execution that are independent of the kernel's text and of its launch."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from tcir.errors import LaunchError, check_flags

if TYPE_CHECKING:
    from tcir.machine.assumptions import Assumptions
    from tcir.machine.events import Recording
    from tcir.machine.numerics.products import Products
    from tcir.machine.sample import Sample

DEFAULT_MAX_INSTRUCTIONS = 500_000_000
"""Limit of executed warp instructions."""


_WORDS = {
    "hazards": ("report", "off"),
    "numerics": ("exact", "fast"),
    "ordering": ("silicon", "isa"),
    "placement": ("usual", "adverse"),
}
"""Allowed values of the options that are strings."""


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral)


@dataclass(frozen=True)
class RunOptions:
    """Options of one execution; the public functions pass them on to the simulated machine.

    order_seed:  seed of the completion order of asynchronous operations and of the warp order;
                 None: order of issue
    hazards:     "report" or "off"
    numerics:    "exact" (the tensor core's fused sums) or "fast" (float32, not bit-exact)
    max_instructions: limit of warp instructions (at the tile level: of loop iterations). A run that
        exceeds it ends with a `tcir.machine.MachineError` that names the loop
    assumptions: answers to open questions about the hardware; None: the defaults
    ordering:    the profile that decides which findings are errors: "silicon" (by the documents and
                 by evidence from kernels in production) or "isa" (by the documents alone: findings
                 "not promised by PTX ISA …" are errors, and the assumption pipe_order is "listed")
    products:    cache of results of tensor-core products, shared by all executions that use the
                 same object; None: not shared
    lockstep:    whether CTAs that behave like the first one are executed together; affects only
                 speed
    repeats:     records of lockstep launches, which are shared by executions of the same launches
                 under other orders that use the same object; None: no records are kept
    sample:      selects the CTAs to execute; None: all. A kernel whose CTAs communicate is always
                 executed whole
    events:      records the events of some CTAs; None: no events are recorded
    placement:   "usual": buffers at multiples of 256 bytes, tensor memory at the lowest columns,
                 the lowest lane elected, unless a seed draws otherwise; "adverse": each buffer at
                 the least alignment that its parameter promises, the highest columns and lane
    jobs:        maximum number of processes among which a grid is divided; affects only speed

    Raises `tcir.LaunchError` for a value that is not allowed.
    """

    order_seed: int | None = None
    hazards: str = "report"
    numerics: str = "exact"
    max_instructions: int = DEFAULT_MAX_INSTRUCTIONS
    assumptions: Assumptions | None = None
    ordering: str = "silicon"
    products: Products | None = None
    lockstep: bool = True
    repeats: dict[bytes, Any] | None = None
    jobs: int = 1
    sample: Sample | None = None
    events: Recording | None = None
    placement: str = "usual"

    def __post_init__(self) -> None:
        limit, seed = self.max_instructions, self.order_seed
        if not _is_integer(limit) or limit < 1:
            raise LaunchError(f"max_instructions: expected an integer of at least 1, got {limit!r}")
        if not _is_integer(self.jobs) or self.jobs < 1:
            raise LaunchError(f"jobs: expected an integer of at least 1, got {self.jobs!r}")
        if seed is not None and (not _is_integer(seed) or seed < 0):
            raise LaunchError(f"order_seed: expected an integer of at least 0, got {seed!r}")
        for name, words in _WORDS.items():
            given = getattr(self, name)
            if not isinstance(given, str) or given not in words:
                expected = " or ".join(map(repr, words))
                raise LaunchError(f"{name}: expected {expected}, got {given!r}")
        check_flags(lockstep=self.lockstep)
        if self.sample is not None and not hasattr(self.sample, "of"):
            got = type(self.sample).__name__
            raise LaunchError(f"sample: expected tcir.machine.sample.Sample, got {got}")
        if self.events is not None and not hasattr(self.events, "streams"):
            got = type(self.events).__name__
            raise LaunchError(f"events: expected tcir.machine.events.Recording, got {got}")
        if self.assumptions is not None and not hasattr(self.assumptions, "under"):
            got = type(self.assumptions).__name__
            raise LaunchError(f"assumptions: expected tcir.machine.Assumptions, got {got}")

    def conditions(self) -> list[str]:
        """Options that differ from their defaults, in the words of a report's first line."""
        words = [] if self.hazards == "report" else ["hazards off"]
        words += ["numerics fast (not bit-exact)"] if self.numerics == "fast" else []
        words += [f"ordering {self.ordering}"] if self.ordering != "silicon" else []
        words += [f"placement {self.placement}"] if self.placement != "usual" else []
        words += [f"assumption {name}={answer}" for name, answer in self.changed_answers().items()]
        if self.max_instructions != DEFAULT_MAX_INSTRUCTIONS:
            words.append(f"at most {self.max_instructions} instructions")
        return words

    def changed_answers(self) -> dict[str, str]:
        """The assumptions whose answer differs from the default, by name."""
        return {} if self.assumptions is None else self.assumptions.changes()


DEFAULT_OPTIONS = RunOptions()

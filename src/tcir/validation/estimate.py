"""Estimate of a validation's time and memory, printed before it starts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcir.program.capacity import check_arrays, gigabytes, host_memory
from tcir.program.signature import Signature

START = 2.0
"""Seconds of any validation: loading, compiling."""
PER_POINT = 9e-9
"""Seconds for a product of a contraction, all states of a pipeline together."""
PER_ELEMENT = 1.4e-6
"""Seconds for an element of an input or a result."""
PER_ORDER = 1 / 8
"""Cost of one more completion order, relative to the first (docs/explanation/lockstep.md)."""
BASE = 300 << 20
"""Bytes of a process that has loaded everything."""
KEPT, PER_PRODUCT = 256 << 20, 1 / 4
"""Bytes of products that are kept for the next state: at most, and for each."""
ELEMENT = 110
"""Bytes for an element of an input or a result: values, records of accesses, copies."""
WORTH_SAYING = 10.0
"""Seconds from which on a user wants to know."""


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of a validation of all states down to PTX, accurate within a factor of about
    three.

    The estimate uses times that were measured on one core of a server, with exact numerics and
    hazard detection: times per product for f16, and times per element for f32 on CUDA cores.
    """

    seconds: float
    nbytes: int
    points: int
    elements: int
    budget: float | None = None

    @staticmethod
    def of(signature: Signature, points: int, orders: int, budget: float | None = None) -> Estimate:
        """Estimates the cost of a validation.

        points: iterations of the loops of the input's reductions
        budget: in seconds; None: unlimited
        """
        elements = sum(math.prod(s.shape) for s in (*signature.inputs, *signature.outputs))
        nbytes = BASE + ELEMENT * elements + min(KEPT, int(PER_PRODUCT * points))
        seconds = START + Estimate.once(points, elements, orders)
        return Estimate(seconds, nbytes, points, elements, budget)

    @staticmethod
    def once(points: int, elements: int, orders: int) -> float:
        """Estimated seconds for the products, inputs and results of a launch."""
        return (PER_POINT * points + PER_ELEMENT * elements) * (1 + PER_ORDER * (orders - 1))

    def check(self, signature: Signature) -> None:
        """Raises IncompleteError if this machine has too little memory for the program's arrays."""
        check_arrays(signature.inputs, signature.outputs, f"would take {duration(self.seconds)}")

    @property
    def long(self) -> bool:
        """Whether the estimate is printed, because the validation takes long or executes only a
        share of the CTAs.
        """
        return self.seconds >= WORTH_SAYING or self.share < 1

    @property
    def share(self) -> float:
        """Fraction of the CTAs that the budget allows."""
        return min(1.0, (self.budget or self.seconds) / self.seconds)

    def __str__(self) -> str:
        has = host_memory()
        return (
            f"estimate: {duration(self.seconds)} and {gigabytes(self.nbytes)} of memory to execute "
            f"all states ({self.points:.3g} products, {self.elements:.3g} elements)"
            + (f"; this machine has {gigabytes(has)}" if self.nbytes > has else "")
            + (f"; the budget is {self.budget:g} s: a sample of CTAs" if self.share < 1 else "")
        )


def duration(seconds: float) -> str:
    """Formats an approximate duration, in the largest unit that gives a number of at least two."""
    for unit, size in (("years", 365 * 86400), ("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {seconds:.0f} s"

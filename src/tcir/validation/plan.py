"""Plans a validation before anything is executed: which programs, at which levels, with which
options.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcir.machine.sample import Sample
from tcir.passes.emit.calls import inlined
from tcir.program.access import reduction_points
from tcir.program.memory_image import PACKED_BITS
from tcir.program.signature import Signature, signature_of
from tcir.validation.estimate import Estimate
from tcir.validation.settings import Settings
from tcir.validation.work import Work

if TYPE_CHECKING:
    from tcir._mlir import ir


@dataclass(frozen=True)
class Plan:
    """How one input program is validated, and the estimated cost of the validation.

    points: iterations of the loops of the program's reductions
    """

    settings: Settings
    signature: Signature
    points: int
    estimate: Estimate

    @staticmethod
    def of(module: ir.Module, settings: Settings | None = None) -> Plan:
        """The plan for an input program. Raises IncompleteError if memory is too small for it."""
        module, settings = inlined(module), settings or Settings()
        signature = signature_of(module)
        points = reduction_points(module) if signature.level == "tensor" else 0
        packed = any(s.dtype in PACKED_BITS for s in signature.outputs)
        # CTAs may share bytes of packed results.
        budget = None if packed or settings.kinds else settings.budget
        estimate = Estimate.of(signature, points, settings.orders, budget)
        estimate.check(signature)
        return Plan(settings, signature, points, estimate)

    @property
    def sample(self) -> Sample | None:
        """Selects the CTAs to execute as a sample; None: all CTAs."""
        share = self.estimate.share
        return Sample(share, self.settings.seed) if share < 1 else None

    def instructions(self, level: str, before: Work) -> int:
        """Maximum number of instructions that a kernel at `level` may execute; the limit ends
        endless loops. before: work of the previous state
        """
        if self.settings.max_instructions is not None:
            return self.settings.max_instructions
        specs = (*self.signature.inputs, *self.signature.outputs)
        nbytes = sum(math.prod(spec.shape) * spec.dtype.itemsize for spec in specs)
        return before.budget(level, nbytes, self.points)

"""Settings of the executions of a validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from tcir.errors import InputError
from tcir.run_options import DEFAULT_MAX_INSTRUCTIONS, RunOptions

if TYPE_CHECKING:
    from tcir.machine.assumptions import Assumptions
    from tcir.machine.events import Recording
    from tcir.machine.numerics.products import Products
    from tcir.machine.sample import Sample
    from tcir.program.inputs import Kind
    from tcir.validation.report import Line


class ValidateOptions(TypedDict, total=False):
    """Options of `tcir.validate`: the fields of `Settings`, and `on_line`."""

    seed: int
    inputs: Kind
    orders: int
    numerics: str
    max_instructions: int | None
    ordering: str
    assumptions: Assumptions | None
    jobs: int
    budget: float | None
    strict: bool
    kinds: bool
    on_line: Callable[[Line], None] | None


@dataclass(frozen=True)
class Settings:
    """How programs are executed.

    seed:     seed of the inputs, and of the first completion order
    inputs:   "integers" (all sums are exact, so results must be equal) or "random"
    orders:   number of completion orders tried at each asynchronous level; the first is the issue
              order
    numerics: "exact" or "fast" (not bit-exact)
    max_instructions: limit of one execution in instructions (at the tile level: in loop
                      iterations);
              None: in proportion to the level before, or to the input's arrays
              (`tcir.validation.work`)
    jobs:     number of processes. They may run blocks of a grid, from the thread level on; if there
              are several orders, they may run the orders instead, at every level
    skip:     number of completion orders, after the order of issue, that are left to other
              validations
    events:   whether the events of some CTAs are recorded, at the PTX level, in the order of issue
    budget:   in seconds; a validation that is estimated to take longer executes a sample of the
              CTAs
    kinds:    whether only one launch of each kind is executed (`tcir.validation.kinds`); the budget
              then leaves out whole kinds, and states (`tcir.validation.budget`)
    strict:   whether "small numbers" is a verdict of its own, which does not count as passed
    ordering: "silicon" or "isa"; ordering and assumptions: see `tcir.run_options.RunOptions`
    """

    seed: int = 0
    inputs: Kind = "integers"
    orders: int = 1
    numerics: str = "exact"
    max_instructions: int | None = None
    ordering: str = "silicon"
    assumptions: Assumptions | None = None
    jobs: int = 1
    budget: float | None = None
    events: Recording | None = None
    skip: int = 0
    strict: bool = False
    kinds: bool = False

    def __post_init__(self) -> None:
        for name in ("orders", "seed"):
            if not hasattr(getattr(self, name), "__index__"):
                raise InputError(f"{name}: expected an integer, got {getattr(self, name)!r}")
        for name in ("orders", "seed", "max_instructions", "budget", "strict", "kinds"):
            if hasattr(getattr(self, name), "__len__"):
                raise InputError(f"{name}: expected one value, got {getattr(self, name)!r:.80}")
        if self.orders < 1:
            raise InputError(f"expected at least 1 completion order, got {self.orders}")
        if self.seed < 0:
            raise InputError(f"expected a seed of at least 0, got {self.seed}")
        most = self.max_instructions
        if most is not None and most < 1:
            raise InputError(f"expected max_instructions of at least 1, got {most}")
        if self.budget is not None and not self.budget > 0:
            raise InputError(f"budget: expected seconds above 0, got {self.budget!r}")
        self.options()

    def options(
        self,
        order: int | None = None,
        budget: int | None = None,
        products: Products | None = None,
        repeats: dict[bytes, Any] | None = None,
        sample: Sample | None = None,
    ) -> RunOptions:
        """Options of one execution, in the completion order drawn from `order`."""
        return RunOptions(
            order_seed=order,
            numerics=self.numerics,
            max_instructions=budget or self.max_instructions or DEFAULT_MAX_INSTRUCTIONS,
            assumptions=self.assumptions,
            repeats=repeats,
            jobs=self.jobs,
            sample=sample,
            ordering=self.ordering,
            products=products,
            placement="adverse",
        )

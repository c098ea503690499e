"""The kinds of input that a validation covered, which its verdict takes into account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FULL_RANGE, SPECIAL_VALUES = "full range", "special values"


@dataclass(frozen=True)
class Coverage:
    """Names of the kinds of input that were executed, and the reason why others were left out.

    executed: "full range": magnitudes up to both ends of the inputs' types; "special values": NaN,
              infinities, zeros of both signs, subnormal numbers, as far as the types have them
    small:    reason why a kind of input was left out; "" if none was
    """

    executed: Sequence[str] = ()
    small: str = ""

    def __str__(self) -> str:
        left_out = [f"equal on small numbers: {self.small}"] if self.small else []
        return "; ".join([*self.executed, *left_out])

    def as_dict(self) -> dict[str, list[str] | str | None]:
        """The coverage in the JSON report."""
        return {"executed": list(self.executed), "small_numbers": self.small or None}

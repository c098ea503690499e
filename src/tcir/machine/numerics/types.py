"""Element types of a tensor-core product: the fields of an instruction descriptor on which the
arithmetic depends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class ProductTypes(Protocol):
    """Element types of A, B and D, and the signs of the operands."""

    @property
    def a_type(self) -> str: ...
    @property
    def b_type(self) -> str: ...
    @property
    def d_type(self) -> str: ...
    @property
    def negate_a(self) -> bool: ...
    @property
    def negate_b(self) -> bool: ...


class ScaledTypes(ProductTypes, Protocol):
    """Element types of a block-scaled product, and the type of its scales."""

    @property
    def kind(self) -> str: ...
    @property
    def scale_type(self) -> str: ...


@dataclass(frozen=True)
class MmaTypes:
    """Element types of a warp-level product (mma.sync), which has no descriptor."""

    a_type: str
    b_type: str
    d_type: str = "f32"
    negate_a: bool = False
    negate_b: bool = False

"""The products of `tcir.machine.numerics` with types as keywords."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tcir.machine.numerics import block_scaled, fused
from tcir.machine.numerics.types import MmaTypes

TYPES = ("a_type", "b_type", "d_type", "negate_a", "negate_b")


@dataclass(frozen=True)
class Scaled(MmaTypes):
    kind: str = ""
    scale_type: str = ""


def _taken(given: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given.pop(name) for name in names if name in given}


def fused_mma(a: Any, b: Any, d: Any, **given: Any) -> Any:
    return fused.fused_mma(a, b, d, MmaTypes(**_taken(given, TYPES)), **given)


def fast_mma(a: Any, b: Any, d: Any, **given: Any) -> Any:
    return fused.fast_mma(a, b, d, MmaTypes(**_taken(given, TYPES)), **given)


def block_scaled_mma(a: Any, b: Any, d: Any, scale_a: Any, scale_b: Any, **given: Any) -> Any:
    types = {"a_type": "e2m1", "b_type": "e2m1"}
    types |= _taken(given, (*TYPES, "kind", "scale_type"))
    constants = given.pop("fp4", block_scaled.DEFAULT_FP4)
    if "params" in given:
        constants = replace(constants, fused=given.pop("params"))
    scales = scale_a, scale_b
    return block_scaled.block_scaled_mma(
        a, b, d, scales, Scaled(**types), constants=constants, **given
    )

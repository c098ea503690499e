"""Fields of a tensor map that were checked against the driver's limits, and the map that the TMA
engine executes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcir.machine.tma.tensor_fields import Fields
from tcir.machine.tma.tensor_limits import check_address, check_fields


@dataclass(frozen=True)
class MapFields(Fields):
    """`Fields` that were checked against the driver's limits. Raises TensorMapError, which names
    the field, the allowed range and the reason.
    """

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class DecodedMap:
    """A tensor map in the form that the TMA engine executes: its fields, and the global byte
    address of element 0.
    """

    fields: MapFields
    address: int

    def __post_init__(self) -> None:
        check_address("global address", self.fields, self.address)

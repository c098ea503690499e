"""Fields of a tensor map within the driver's limits, and the map that the engine executes."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.machine.tma.tensor_fields import Fields
from tcir.machine.tma.tensor_limits import check_address, check_fields


@dataclass(frozen=True)
class MapFields(Fields):
    """`Fields` checked against the driver's limits; TensorMapError names field, range, reason."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class DecodedMap:
    """A tensor map as the engine executes it: fields and the global byte address of element 0."""

    fields: MapFields
    address: int

    def __post_init__(self) -> None:
        check_address("global address", self.fields, self.address)

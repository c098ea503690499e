"""Errors of the functions that model one rule of the hardware: values that the hardware or the
driver rejects.
"""

from __future__ import annotations

from tcir.errors import InputError


class Refusal(InputError, ValueError):
    """A value that the hardware or the driver rejects.

    code:    short kebab-case name
    field:   name of the value
    value:   the value itself
    allowed: the allowed values, as text
    reason:  why, with the document that states it
    """

    code = "refused"

    def __init__(self, field: str, value: object, allowed: str, reason: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        self.reason = reason
        super().__init__(f"{field}: expected {allowed}, got {value}; {reason}")


class ElementTypeError(Refusal):
    """An element type that is unknown, or that the operation does not support."""

    code = "bad-element-type"


class DescriptorError(Refusal):
    """An illegal instruction descriptor or shared-memory matrix descriptor."""

    code = "bad-descriptor"


class TmemError(Refusal):
    """An illegal tensor-memory shape or address."""

    code = "bad-tmem-access"


class TensorMapError(Refusal):
    """A tensor map that the driver's encode functions reject, or bytes that are no tensor map."""

    code = "bad-tensor-map"

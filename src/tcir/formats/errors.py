"""The error of this package."""

from __future__ import annotations

from tcir.errors import InputError


class FormatError(InputError, ValueError):
    """A value, shape or type that a number format or its layout does not support."""

    def __init__(self, what: str, got: object, allowed: str, reason: str) -> None:
        super().__init__(f"{what}: expected {allowed}, got {got}; {reason}")

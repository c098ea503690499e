"""A module of MLIR's bindings, to type checkers: no stubs of them are complete, so any name is any
object or type. At run time nothing uses it."""

from typing import Any


def __getattr__(name: str) -> Any:
    raise AttributeError(name)

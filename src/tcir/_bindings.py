"""A module of MLIR's bindings, for type checkers: the bindings have no complete stubs, so any name
is any object or type. Nothing uses this module at run time."""

from typing import Any


def __getattr__(name: str) -> Any:
    raise AttributeError(name)

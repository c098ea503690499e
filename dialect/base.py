"""The dialect object every op, type and attribute of ``tc`` hangs on, and how to load it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tcir._mlir import ext, ir, root

if TYPE_CHECKING:
    # What type checkers cannot see: the facility makes these classes at run time.
    class _Declared:
        _fields: list[Any]

        def __init_subclass__(cls, name: str = "", traits: list[Any] | None = None) -> None: ...
        def __init__(self, *fields: Any, **named: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        @classmethod
        def get(cls, *parameters: Any) -> Any: ...

    class TC:
        DIALECT_NAMESPACE: str
        operations: list[Any]
        types: list[Any]

        class Operation(_Declared):
            OPERATION_NAME: str

        class Type(_Declared):
            type_name: str

        @classmethod
        def load(cls) -> None: ...
else:

    class TC(ext.Dialect, name="tc"):
        """Blackwell's tensor memory, the tcgen05 instructions and the schedules built on them."""


# The bindings look for a module of this name for every op they meet, until there is one.
sys.modules.setdefault(f"{root()}.dialects.tc", sys.modules[__name__])


def load(context: ir.Context | None = None) -> None:
    """Load ``tc`` into ``context`` (default: the current one).

    Python-defined dialects live in one context each, so every context that parses or builds
    ``tc`` IR needs this once; calling it again is harmless.
    """
    context = context or ir.Context.current
    if context.is_dialect_loaded(TC.DIALECT_NAMESPACE):
        return
    with context:
        TC.load()

"""Dialects defined in Python (``tc`` and the dialects of plugins), and how they are loaded into an
MLIR context."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tcir._mlir import built_once, ext, ir, root
from tcir.errors import InputError
from tcir.threads import LOCK

if TYPE_CHECKING:
    # What type checkers cannot see: the facility makes these classes at run time.
    class _Declared:
        _fields: list[Any]

        def __init_subclass__(cls, **keywords: Any) -> None: ...
        def __init__(self, *fields: Any, **named: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        @classmethod
        def get(cls, *parameters: Any) -> Any: ...

    class Dialect:
        DIALECT_NAMESPACE: str
        operations: list[Any]
        _mlir_module: object | None
        types: list[Any]

        def __init_subclass__(cls, name: str) -> None: ...

        class Operation(_Declared):
            OPERATION_NAME: str

        class Type(_Declared):
            type_name: str

        @classmethod
        def load(cls) -> None: ...
else:

    class Dialect(ext.Dialect, name=""):
        """A dialect whose ops and types are Python classes. It is loaded into every MLIR context.

        A plugin declares its own dialect, ``class My(Dialect, name="my")``, and adds ops to it with
        ``class MyOp(Op, dialect=My, name="…")``.
        """

        def __init_subclass__(cls, name: str) -> None:
            super().__init_subclass__(name)
            DIALECTS[name] = cls

        _emit_module = built_once(ext.Dialect._emit_module)


DIALECTS: dict[str, type[Dialect]] = {}
"""Every dialect declared so far, by namespace."""


class TC(Dialect, name="tc"):
    """The dialect ``tc``: Blackwell's tensor memory, the tcgen05 instructions, and the schedules
    that use them."""


def load(context: ir.Context | None = None) -> None:
    """Loads ``tc`` and the dialects of plugins into ``context`` (default: the current one).

    A Python-defined dialect belongs to one context, so every context that parses or builds ``tc``
    IR needs this call once; further calls do nothing. Ops that are declared after a context was
    created do not exist in that context.
    """
    context = context or ir.Context.current
    # The bindings keep the module that declares a dialect, and the classes of its ops and types,
    # for the whole process: another thread's declaration would take the place of this one.
    with LOCK, context:
        for name, dialect in list(DIALECTS.items()):
            if not context.is_dialect_loaded(name):
                # The bindings look for a module of this name for every op, until there is one.
                sys.modules.setdefault(f"{root()}.dialects.{name}", sys.modules[__name__])
                try:
                    dialect.load()
                except (TypeError, ValueError, AttributeError) as error:
                    raise InputError(
                        f"dialect '{name}': expected ops whose fields are ext.Operand[TYPE], "
                        f"ext.Result[TYPE] or attributes (tcir.mlir), got one that MLIR cannot "
                        f"declare: {error}; such as x: ext.Operand[ir.RankedTensorType]"
                    ) from error
                dialect._mlir_module = None  # else it goes with its context in another thread

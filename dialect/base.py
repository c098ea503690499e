"""The dialect object every op, type and attribute of ``tc`` hangs on, and how to load it."""

from __future__ import annotations

from tcir._mlir import ext, ir


class TC(ext.Dialect, name="tc"):
    """Blackwell's tensor memory, the tcgen05 instructions and the schedules built on them."""


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

"""What a pass has to say without refusing: which schedule it chose, what it could not serve.

MLIR's bindings emit errors only, so remarks take a way of their own: to whoever collects
diagnostics (`tcir.program.source.collect_diagnostics`, hence tc-opt, which prints them as
``file:line:col: remark: …`` and knows ``expected-remark``), else to the logger ``tcir``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Sink = Callable[[Any, str], None]
_SINK: ContextVar[Sink | None] = ContextVar("tcir_remarks", default=None)


def remark(op: Any, message: str) -> None:
    """Says `message` at the location of `op`."""
    sink = _SINK.get()
    if sink is None:
        logging.getLogger("tcir").info("%s: remark: %s", op.location, message)
    else:
        sink(op.location, message)


@contextmanager
def remarks_to(sink: Sink) -> Iterator[None]:
    """Meanwhile ``sink(location, message)`` gets every remark."""
    token = _SINK.set(sink)
    try:
        yield
    finally:
        _SINK.reset(token)

"""Remarks that passes emit, for example about the schedule that was chosen or a fallback that was
taken.

MLIR's bindings can only emit errors, so remarks use a mechanism of their own. They go to the active
collector of diagnostics (`tcir.program.source.collect_diagnostics`, used by tc-opt, which prints
remarks as ``file:line:col: remark: …`` and checks ``expected-remark``). If there is no active
collector, they go to the logger ``tcir``.
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
    """Emits `message` at the location of `op`."""
    sink = _SINK.get()
    if sink is None:
        logging.getLogger("tcir").info("%s: remark: %s", op.location, message)
    else:
        sink(op.location, message)


@contextmanager
def remarks_to(sink: Sink) -> Iterator[None]:
    """Context in which every remark is passed to ``sink(location, message)``."""
    token = _SINK.set(sink)
    try:
        yield
    finally:
        _SINK.reset(token)

"""One lock for all state that the threads of a process share and that a fork must not copy half
written.

MLIR's bindings keep tables for the whole process, LLVM and numba compile for one thread at a time,
and Python holds a lock on each module that is being imported. A fork copies locks in their current
state, so that in the child a lock may be held by a thread that does not exist there. Therefore all
such state is protected by this one lock, and a fork waits until the lock is free.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, overload

LOCK = threading.RLock()
"""Held by a thread that writes process-wide state of native libraries, or that imports modules."""

Value = TypeVar("Value")
_IMPORTED: set[str] = set()
_LEFT_OUT = ("__main__", "tcir.machine.jit.compiling")
"""Modules that `import_whole` leaves out: scripts, and numba, which few processes import, and only
a thread that holds `LOCK`."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )


def import_whole(*packages: str) -> None:
    """If this process has several threads, imports packages; of tcir's packages it imports all
    modules.

    Otherwise an import on first use would run concurrently with these threads, and if one of them
    forked, the child would wait forever for the end of the import. A process with one thread
    imports modules on first use.
    """
    if threading.active_count() == 1 or _IMPORTED.issuperset(packages):
        return
    with LOCK:
        for package in packages:
            if package not in _IMPORTED:
                for name in _modules(package):
                    importlib.import_module(name)
                _IMPORTED.add(package)


def _modules(name: str) -> Iterator[str]:
    yield name
    found = importlib.import_module(name)
    if name.startswith("tcir.") and hasattr(found, "__path__"):
        for each in pkgutil.walk_packages(found.__path__, f"{name}."):
            if not each.name.endswith(_LEFT_OUT):
                yield each.name


class cached_property(Generic[Value]):
    """Like `functools.cached_property`, but without a lock that all instances of a class share and
    that a fork would copy while it is held. Two threads may both compute the value.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[Value] | Value:
        if instance is None:
            return self
        value: Value = instance.__dict__.setdefault(self.name, self.function(instance))
        return value

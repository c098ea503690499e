"""Runs functions before or after the execution of a module that a script imports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TypeAlias

Execute: TypeAlias = Callable[[ModuleType], None]
Around: TypeAlias = Callable[[ModuleType, Execute], None]
"""Called instead of a module's execution, with the module and what executes it. An extension
module's library is loaded at that time."""


@contextmanager
def around_imports(work: Mapping[str, Around]) -> Iterator[None]:
    """Context in which modules are executed by the functions `work` when they are imported; `work`
    maps module names to functions.
    """
    finder = _Finder(dict(work))
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def __init__(self, work: dict[str, Around]) -> None:
        self.work = work

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Spec of a module that `work` names, with this class's loader in place of the real one."""
        around = self.work.pop(name, None)
        if around is None:
            return None
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, around)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Loader, around: Around) -> None:
        self.loader, self.around = loader, around

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Creates the module as the real loader does."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Executes the module by its function of `work`."""
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        self.around(module, self.loader.exec_module)

"""The import graph of a package, read from its sources; no module is imported."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path


class ImportGraph:
    """Imports between the modules of a package, including those inside functions and for type
    checkers.

    Modules are named by their path inside the package: ``passes/conv/rows``.
    """

    def __init__(self, package: str, files: Mapping[Path, ast.Module]) -> None:
        self._package = package
        self._modules = {module_of(path) for path in files}
        self.edges: dict[str, set[str]] = {
            module_of(path): set(self._imports(path, tree)) for path, tree in files.items()
        }

    def _imports(self, path: Path, tree: ast.Module) -> Iterator[str]:
        for name, _ in imported(tree):
            target = self._target(name)
            if target is not None and target != module_of(path):
                yield target

    def _target(self, name: str) -> str | None:
        """The module, or else the folder, that contains a dotted name of the package."""
        root, *rest = name.split(".")
        if root != self._package:
            return None
        while rest and "/".join(rest) not in self._modules:
            rest.pop()
        return "/".join(rest)

    def rooms(self, folder: str) -> Counter[tuple[str, str]]:
        """Imports between the sub-folders of a folder; a file on its own counts as a folder."""
        found: Counter[tuple[str, str]] = Counter()
        for source, targets in self.edges.items():
            for target in targets:
                rooms = _room(source, folder), _room(target, folder)
                if all(rooms) and rooms[0] != rooms[1]:
                    found[rooms] += 1
        return found

    def cycles(self, folder: str) -> list[list[str]]:
        """Cycles of imports between the modules below a folder; the folder's own ``__init__.py`` is
        not counted."""
        inside = {name for name in self.edges if name.startswith(f"{folder}/")}
        edges = {name: self.edges[name] & inside for name in inside}
        return [sorted(group) for group in _components(edges) if len(group) > 1]

    def floors(self) -> dict[str, int]:
        """The floor of each room (folder or file) of the package. A room that imports no other room
        is on floor 0; any other room is one floor above the highest room that it imports."""
        edges: dict[str, set[str]] = {room: set() for name in self.edges if (room := _room(name))}
        for source, target in self.rooms(""):
            edges[source].add(target)
        floors: dict[str, int] = {}
        for group in _components(edges):  # what is imported comes first
            below = {target for room in group for target in edges[room]} - set(group)
            floor = 1 + max((floors[room] for room in below), default=-1)
            floors.update(dict.fromkeys(group, floor))
        return floors


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Dotted names that a module imports, also inside functions, and the names to which it binds
    them. Only statements are visited, because there are far fewer of them than of expression nodes.
    """
    if isinstance(tree, ast.Import | ast.ImportFrom) and not getattr(tree, "level", 0):
        module = f"{tree.module}." if isinstance(tree, ast.ImportFrom) else ""
        yield from ((f"{module}{each.name}", each.asname or each.name) for each in tree.names)
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(tree, block, ()):
            yield from imported(inner)


def module_of(path: Path) -> str:
    """The name of a file's module: its path or, for ``__init__.py``, the path of its folder."""
    return path.parent.as_posix() if path.stem == "__init__" else path.with_suffix("").as_posix()


def _room(module: str, folder: str = "") -> str:
    """The first name of a module's path below a folder; "" for modules elsewhere."""
    prefix = f"{folder}/" if folder else ""
    return module.removeprefix(prefix).split("/")[0] if module.startswith(prefix) else ""


def _components(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan), each after the components that it reaches."""
    found: list[list[str]] = []
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(stack[at:])
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found

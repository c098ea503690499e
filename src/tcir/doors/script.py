"""Executes a script as Python does."""

from __future__ import annotations

import ast
import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from tcir.errors import InputError


def run_script(path: Path, arguments: list[str], sizes: Mapping[int, int]) -> None:
    """Runs a file as ``__main__``.

    sizes: integer literals of the script that are replaced in this run, except in its kernels

    Raises InputError for an integer that the script does not contain.
    """
    try:
        source = path.read_bytes()
        tree = ast.parse(source, str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    resize = _Resize(sizes)
    code = compile(resize.visit(tree), str(path), "exec", dont_inherit=True)
    if unused := sizes.keys() - resize.met:
        raise InputError(
            f"--size: expected integers that occur in {path} outside its kernels, got "
            f"{', '.join(map(str, sorted(unused)))}"
        )
    module = ModuleType("__main__")
    module.__file__ = str(path)
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules["__main__"] = module  # for good, as what the script leaves behind may use it
    exec(code, module.__dict__)


def run_module(name: str, arguments: list[str]) -> None:
    """Runs a module as ``python -m`` does."""
    sys.argv = [name, *arguments]
    sys.path.insert(0, os.getcwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def run_named(
    name: str, is_module: bool, arguments: list[str], sizes: Mapping[int, int] | None = None
) -> None:
    """Runs a module, or the file of a script (`run_script`)."""
    if is_module:
        run_module(name, arguments)
    else:
        run_script(Path(name), arguments, sizes or {})


class _Resize(ast.NodeTransformer):
    """Replaces integer literals, except in kernels and their decorators."""

    def __init__(self, sizes: Mapping[int, int]) -> None:
        self.sizes, self.met = sizes, set[int]()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node if any(map(_is_jit, node.decorator_list)) else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is not int or node.value not in self.sizes:
            return node
        self.met.add(node.value)
        return ast.copy_location(ast.Constant(self.sizes[node.value]), node)


def _is_jit(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(called, "attr", getattr(called, "id", "")) == "jit"

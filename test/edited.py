"""Source code with a mistake in it, for one test."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType

import pytest


def edit(patch: pytest.MonkeyPatch, place: str, old: str, new: str) -> None:
    """Has a function compute something else, wherever it is referred to.

    place: ``module:function`` or ``module:Class.method``; old: of its source, where it stands once;
    new: what is there instead
    """
    name, _, path = place.partition(":")
    found: object = importlib.import_module(name)
    for each in path.split("."):
        found = inspect.getattr_static(found, each)
    found = getattr(found, "__func__", found)
    assert callable(found)
    function = inspect.unwrap(found)
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{place}: expected once: {old}"
    patch.setattr(function, "__code__", _compiled(source.replace(old, new), function))


def _compiled(source: str, function: Callable[..., object]) -> CodeType:
    tree = ast.parse(source)
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    names = function.__code__.co_freevars
    outer = ast.parse(f"def outer({', '.join(names)}):\n  pass\n  return None")
    shell = outer.body[0]
    assert isinstance(shell, ast.FunctionDef)
    shell.body = [definition]
    module = compile(outer, function.__code__.co_filename, "exec", flags=0x1000000)  # annotations
    return next(
        each
        for code in module.co_consts
        if isinstance(code, CodeType)
        for each in code.co_consts
        if isinstance(each, CodeType)
    )

"""How the machine is put together: units keep their privates, an agent has no other base."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tcir.errors import Error, IncompleteError, InputError
from tcir.machine import Agent, MachineError, NotModelled
from tcir.machine.refusal import Refusal

SOURCES = Path(__file__).parents[2] / "src/tcir"
FOLDERS = ("machine", "interp/ptx", "interp/tile", "debug")


def private_accesses(source: str) -> Iterator[str]:
    """`x._y` where x is neither the object itself nor a class of the same file."""
    tree = ast.parse(source)
    own = {"self", "cls"} | {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        private = node.attr.startswith("_") and not node.attr.startswith("__")
        if private and ast.unparse(node.value) not in own:
            yield ast.unparse(node)


@pytest.mark.parametrize("folder", FOLDERS)
def test_nobody_reaches_into_the_privates_of_another_object(folder: str) -> None:
    found = {
        f"{path.relative_to(SOURCES)}: {access}"
        for path in (SOURCES / folder).rglob("*.py")
        for access in private_accesses(path.read_text())
        if access not in ("sys._getframe", "os._exit")
    }
    assert not found


def test_the_check_sees_private_accesses() -> None:
    found = private_accesses("agent._at(1); self.cta._x; self._y; cls._z; a.__class__")
    assert sorted(found) == ["agent._at", "self.cta._x"]


def test_an_agent_is_made_of_units() -> None:
    assert Agent.__mro__ == (Agent, object)


def test_the_errors_are_of_one_family() -> None:
    """And still of the standard classes they always were."""
    assert issubclass(MachineError, Error) and issubclass(MachineError, RuntimeError)
    assert issubclass(NotModelled, IncompleteError) and issubclass(NotModelled, RuntimeError)
    assert issubclass(Refusal, InputError) and issubclass(Refusal, ValueError)
    assert [e.exit_code for e in (MachineError, NotModelled, Refusal)] == [1, 2, 3]

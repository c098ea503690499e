"""Mistakes planted in the doors of JAX and ONNX, one at a time: the first line of `validate` says
so, or a comparison with the function."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("jax") is None or importlib.util.find_spec("onnx") is None:
    pytest.skip("jax and onnx are not both installed", allow_module_level=True)

import jax.numpy as jnp
import onnx
from jax import lax
from onnx import TensorProto, helper

import tcir
import tcir.imported.program
import tcir.jax
import tcir.onnx
from tcir.validation.report import Line, Report

sys.path.insert(0, str(Path(__file__).parents[1]))
from edited import edit
from tiers import slow

WIDENING, REWRITES, PROGRAM = "tcir.jax.widening", "tcir.jax.rewrites", "tcir.imported.program"
X = np.arange(12, dtype=np.float32).reshape(3, 4)
NARROW = np.ones((2, 512), np.float16)


def running(x: Any) -> Any:
    """Each row times a half of what was before."""
    return lax.scan(lambda carry, row: (carry / 2 + row, carry), x[0], x)


def backwards(x: Any) -> Any:
    return lax.scan(lambda carry, row: (carry / 2 + row, carry), x[0], x, reverse=True)


def branches(x: Any, n: Any) -> Any:
    return lax.switch(n, [lambda x: x, lambda x: x * 2, lambda x: x * 3], x)


IMPORTED = [
    ("cumulated sums of f16 are of f16", f"{WIDENING}:_bound", "narrow and name in SUMS", "False",
     lambda x: lax.cumsum(x, 1), (NARROW[:1],)),
    ("of the branches the next is taken", f"{WIDENING}:_chosen", "branch <= number",
     "branch < number", branches, (X, np.int32(1))),
    ("a scan forgets what it carries", f"{REWRITES}:unrolled", "carry = list(found[:carried])",
     "list(found[:carried])", running, (X,)),
    ("a scan in reverse leaves its results so", f"{REWRITES}:unrolled", "made.reverse()",
     "made.copy()", backwards, (X,)),
    ("a part begins one later", f"{REWRITES}:_concatenate", "place >= start", "place > start",
     lambda x: jnp.concatenate([x, x * 2], 1), (X,)),
    ("a choice is the other one", f"{REWRITES}:_select", "*cases)", "*cases[::-1])",
     lambda x: jnp.where(x > 0.5, x, -x), (X,)),
]  # fmt: skip
CALLED = [
    ("results come the other way round", "tcir.jax.compiled:Compiled.__call__",
     "[*found, ", "[*found[::-1], ", "results"),
    ("numbers are not compared", "tcir.jax.calls:Call.checked",
     "type(mine) is not type(leaf) or mine != leaf", "False", "numbers"),
    ("shapes are not compared", f"{PROGRAM}:check_array",
     "found.shape != tuple(shape) or found.dtype != dtype", "False", "shapes"),
    ("types are not compared", f"{PROGRAM}:check_array", " or found.dtype != dtype", "", "types"),
    ("bytes are numbers with a sign", "tcir.onnx.compiled:Compiled.__call__",
     "result.view(value.dtype) if", "result if", "bytes"),
    ("outputs have each other's names", "tcir.onnx.compiled:Compiled.__call__",
     "zip(self.outputs, results, strict=True)", "zip(self.outputs, results[::-1], strict=True)",
     "names"),
    ("inputs are taken in the order given", "tcir.onnx.compiled:Compiled._given",
     "named[value.name]", "list(named.values())[names.index(value.name)]", "names"),
]  # fmt: skip
"""What is broken, the place, its source, what is there instead, and a check."""


def imported(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], args: Any) -> Line:
    """The first line of `validate`, without the others."""
    monkeypatch.setattr(tcir.imported.program, "validate", lambda *_, **__: Report("", ""))
    return compiled(function, *args).validate().passes[0]


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    return tcir.jax.compile(function, *args, pipeline="layers")


def _results() -> None:
    def both(x: Any) -> Any:
        return x + 1, x * 2

    for mine, right in zip(compiled(both, X)(X), both(X), strict=True):
        assert np.array_equal(mine, right)


def refuses(call: Callable[[], object]) -> None:
    with pytest.raises(tcir.InputError, match="compile again"):
        call()


def _model(kind: int) -> onnx.ModelProto:
    a, b, d, s = (helper.make_tensor_value_info(name, kind, (3, 4)) for name in "abds")
    nodes = [helper.make_node("Sub", ["a", "b"], ["d"]), helper.make_node("Add", ["a", "b"], ["s"])]
    graph = helper.make_graph(nodes, "pair", [a, b], [d, s])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])


def _names() -> None:
    found = tcir.onnx.compile(_model(TensorProto.FLOAT))({"b": X * 2, "a": X})
    assert np.array_equal(found["d"], -X) and np.array_equal(found["s"], 3 * X)


def _bytes() -> None:
    given = np.full((3, 4), 200, np.uint8)
    found = tcir.onnx.compile(_model(TensorProto.UINT8))({"a": given, "b": given - 199})
    assert found["d"].dtype == np.uint8 and np.array_equal(found["d"], given - 1)


CHECKS: dict[str, Callable[[], None]] = {
    "results": _results,
    "numbers": lambda: refuses(lambda: compiled(lambda x, n: x * n, X, 2)(X, 3)),
    "shapes": lambda: refuses(lambda: compiled(lambda x: x + 1, X)(X[:2])),
    "types": lambda: refuses(lambda: compiled(lambda x: x + 1, X)(X.astype(np.float16))),
    "names": _names,
    "bytes": _bytes,
}


def _what(broken: Any) -> str:
    return str(broken[0])


def cases(breaks: list[Any]) -> list[Any]:
    """The first is quick."""
    return [breaks[0], *map(slow, breaks[1:])]


@pytest.mark.parametrize("broken", cases(IMPORTED), ids=_what)
def test_validate_says_it(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, place, old, new, function, args = broken
    assert imported(monkeypatch, function, args).verdict == "within bound"
    edit(monkeypatch, place, old, new)
    line = imported(monkeypatch, function, args)
    assert line.verdict == "different" and "result " in line.compared, line.compared


@pytest.mark.parametrize("broken", cases(CALLED), ids=_what)
def test_a_call_says_it(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, place, old, new, check = broken
    CHECKS[check]()
    edit(monkeypatch, place, old, new)
    with pytest.raises((AssertionError, pytest.fail.Exception, tcir.Error)):
        CHECKS[check]()

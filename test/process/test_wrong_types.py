"""Arguments of a wrong type are the caller's error, named, and not one of Python's from inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.layout import Layout

PTX = (Path(__file__).parents[1] / "runtime" / "saxpy.ptx").read_text()
ARRAY = np.zeros(64, np.float32)


def ptx(**more: Any) -> Any:
    return tcir.run_ptx(PTX, grid=1, block=1, **more)


def tiled(**more: Any) -> tcir.TensorMap:
    sizes = {"dims": [64], "strides_bytes": [], "box": [4]}
    return tcir.TensorMap.tiled(ARRAY, **{"dtype": "f32", **sizes, **more})


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "layout of text": (lambda: Layout("text"), "expected an int or a tuple of ints"),  # type: ignore[arg-type]
    "layout of a nested text": (lambda: Layout((4, ("a",))), "tuple of ints"),  # type: ignore[arg-type]
    "layout of None": (lambda: Layout(None), "got None"),  # type: ignore[arg-type]
    "layout of a float": (lambda: Layout(1.5), r"got 1\.5"),  # type: ignore[arg-type]
    "strides of text": (
        lambda: Layout(4, "a"),
        "expected an int or a tuple of ints, nested or not, got 'a'",
    ),  # type: ignore[arg-type]
    "no arguments": (lambda: ptx(args=None), "args: expected a list with one argument"),
    "a number of arguments": (lambda: ptx(args=5), "args: expected a list"),
    "arguments as text": (lambda: ptx(args="abcd"), "args: expected a list"),
    "no arguments, twice": (lambda: ptx(args=None, again=True), "args: expected a list"),
    "an output that is none": (lambda: tcir.Uninitialized(5), "expected a numpy array, got int"),  # type: ignore[arg-type]
    "dims as text": (lambda: tiled(dims="a"), "dims: expected an integer, got 'a'"),
    "no dims": (lambda: tiled(dims=None), "dims: expected a sequence of integers, got None"),
    "dims as floats": (lambda: tiled(dims=[1.5]), r"dims: expected an integer, got 1\.5"),
    "a number of strides": (lambda: tiled(strides_bytes=5), "strides_bytes: expected a sequence"),
    "a type as a number": (lambda: tiled(dtype=5), "dtype"),
    "nothing to prove": (lambda: tcir.prove(None), "prove: expected a kernel"),  # type: ignore[arg-type]
    "a pipeline as a number": (lambda: tcir.named_pipeline(5), "expected the name of a pipeline"),  # type: ignore[arg-type]
    "passes as a number": (lambda: tcir.Pipeline(5), "expected a list of passes, got 5"),  # type: ignore[arg-type]
    "no text": (lambda: tcir.Pipeline.parse(None), "expected the text of a pipeline"),  # type: ignore[arg-type]
    "prefixes as text": (
        lambda: tcir.compile("module {}", "gemm", debug_prefix_map="a=b"),  # type: ignore[arg-type]
        "debug_prefix_map: expected a mapping",
    ),
}


@pytest.mark.parametrize(("call", "words"), WRONG.values(), ids=WRONG)
def test_an_argument_of_a_wrong_type(call: Callable[[], object], words: str) -> None:
    with pytest.raises(tcir.InputError, match=words):
        call()


def test_those_of_the_right_type() -> None:
    assert Layout((4, (2, 2))).size == 16
    assert tiled(dims=np.array([64]), box=(np.int64(4),)).fields.box == (4,)
    args = [np.float32(1), ARRAY.copy(), tcir.Uninitialized(ARRAY.copy()), np.zeros(1, np.uint32)]
    assert ptx(args=tuple(args)).errors == []

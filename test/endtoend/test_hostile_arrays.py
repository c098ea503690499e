"""1,000 hostile calls of tcir.compile_matmul and its like end in `tcir.Error` only.

What they found, all mended:

| argument | seen before |
|---|---|
| an image of 2^31 rows, without its memory | conv2d took hours: it tried each number of parts |
| an array or a list as activation, out, target, global_scales, pipeline | TypeError, ValueError |
| an array, a complex number, a list as stages or n_tile | TypeError, ValueError |
| a result of 2 TiB, on a computer that has less | MemoryError |
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir import formats

sys.path.insert(0, str(Path(__file__).parents[1]))
from hostile_values import Draw, array, relaid, value

COUNT, QUICK, BATCH = 1000, 40, 96
RESULTS = [None, "float16", "bfloat16", np.float32]


def _matmul(draw: Draw) -> tuple[Any, list[Any], dict[str, Any]]:
    kind = draw.choice([np.float16, np.float32, np.int8, ml_dtypes.bfloat16])
    return tcir.compile_matmul, [np.ones((16, 64), kind), np.ones((64, 32), kind)], {}


def _conv(draw: Draw) -> tuple[Any, list[Any], dict[str, Any]]:
    given = [np.ones((1, 8, 8, 16), np.float16), np.ones((3, 3, 16, 16), np.float16)]
    more = {name: draw.choice([1, 2, (1, 2)]) for name in ("stride", "padding", "dilation")}
    return tcir.compile_conv2d, given, more


def _scaled(draw: Draw) -> tuple[Any, list[Any], dict[str, Any]]:
    name = draw.choice(["nvfp4", "mxfp4", "mxfp8_e4m3", "mxfp6_e2m3"])
    given = [formats.quantise(np.ones((n, 64), np.float32), name) for n in (16, 32)]
    pairs = [
        (np.ones((n, 64), ml_dtypes.float8_e4m3fn), np.ones((n, 2), ml_dtypes.float8_e8m0fnu))
        for n in (16, 32)
    ]
    return tcir.compile_block_scaled_matmul, draw.choice([given, pairs]), {}


def drawn(seed: int) -> tuple[Any, list[Any], dict[str, Any], list[Any] | None]:
    """A sound call with a few arguments changed, and what its kernel is run with."""
    draw = Draw(seed)
    function, given, more = draw.choice([_matmul, _conv, _scaled])(draw)
    for _ in range(draw.choice([0, 1, 1, 1, 2])):
        place = draw.randrange(2)
        if isinstance(given[place], tuple):
            pair = list(given[place])
            pair[draw.randrange(2)] = value(draw)
            given[place] = tuple(pair)
        elif isinstance(given[place], np.ndarray) and draw.random() < 0.6:
            given[place] = relaid(given[place], draw)
        else:
            given[place] = value(draw)
    names = [
        "bias",
        "residual",
        "activation",
        "out",
        "pipeline",
        "target",
        "stages",
        "n_tile",
        "no_such",
        *more,
        *(["global_scales"] if function is tcir.compile_block_scaled_matmul else []),
    ]
    for name in draw.sample(names, draw.choice([0, 0, 1, 1, 2])):
        more[name] = value(draw)
    inputs = None if draw.random() < 0.5 else [array(draw) for _ in range(draw.choice([0, 1, 2]))]
    return function, given, more, inputs


def wrong(seed: int) -> str:
    """What is wrong with the way that a call ended; "" if nothing is."""
    function, given, more, inputs = drawn(seed)
    begun, sound = time.process_time(), ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = function(*given, **more)
            if inputs is not None:
                kernel.run(*inputs)
    except tcir.Error as error:
        sound = "" if str(error).strip() else "says nothing"
        sound = "is of 0:0" if ":0:0" in str(error) else sound
    except Exception as error:
        sound = f"{type(error).__name__}: {str(error)[:300]}"
    spent = time.process_time() - begun
    return sound or (f"{spent:.0f} s" if spent > 60 else "")


def _all_of(seeds: range) -> list[str]:
    found = [(seed, wrong(seed)) for seed in seeds]
    return [f"seed {seed}: {what}" for seed, what in found if what]


def test_some_hostile_calls() -> None:
    found = _all_of(range(QUICK))
    assert not found, "\n".join(found)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(QUICK, COUNT, BATCH))
def test_hostile_calls(first: int) -> None:
    found = _all_of(range(first, first + BATCH))
    assert not found, "\n".join(found)


def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a call that ends with Python's error."""
    monkeypatch.setattr(tcir, "compile_matmul", lambda *_, **__: {}["x"])
    seed = next(seed for seed in range(99) if drawn(seed)[0] is tcir.compile_matmul)
    assert wrong(seed) == "KeyError: 'x'"


WRONG = [np.ones(3), np.array(["a", "b"]), ["a"], {}]
"""Values that no option takes, whose ``==``, truth or hash is not that of one value."""
OPTIONS = {
    "compile_conv2d": ("stride", "padding", "dilation", "activation", "out", "pipeline", "target"),
    "compile_attention": (
        "scale", "causal", "window", "softcap", "lse", "factors", "out", "pipeline", "target",
    ),
    "compile": (
        "entry", "pipeline", "target", "validate", "cache", "tune", "seed", "orders",
        "max_instructions", "budget", "assembler",
    ),
    "validate": ("strict", "kinds"),
    "run": ("hazards", "numerics", "ordering", "placement", "order_seed", "lockstep", "jobs"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_are_arrays_lists_or_mappings(name: str) -> None:
    """Each option refuses each of them with its name or what it expects."""
    half = np.float16
    text = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    given: dict[str, list[Any]] = {
        "compile_conv2d": [np.ones((1, 8, 8, 16), half), np.ones((3, 3, 16, 16), half)],
        "compile_attention": [np.ones((1, 2, 16, 64), half)] * 3,
        "compile": [text],
        "validate": [text],
        "run": [np.ones((16, 64), half), np.ones((64, 32), half)],
    }
    call = tcir.compile_matmul(*given[name]).run if name == "run" else getattr(tcir, name)
    base = {"pipeline": "gemm"} if given[name] == [text] else {}
    for option in OPTIONS[name]:
        for one in WRONG:
            if (option, type(one)) == ("factors", np.ndarray) and one.dtype.kind == "f":
                continue  # three numbers
            with pytest.raises(tcir.Error, match=r"expected|unknown"):
                call(*given[name], **base | {option: one})

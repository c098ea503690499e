"""Several public functions in one module: the program is the one that is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.errors import InputError, PassError

from .test_mixed_modules import BF16, CALLS, F32, whole
from .test_specialise import LINEAR

PUBLIC = CALLS.replace("func.func private", "func.func")
"""@layer, and @twice, which calls it twice."""


def layer(x: np.ndarray[Any, Any], w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (x.astype(float) @ w.astype(float)).astype(F32).astype(BF16)


def test_each_beside_numpy() -> None:
    generator = np.random.default_rng(1)
    x, w, v = (whole(generator, *shape) for shape in ((40, 32), (32, 32), (32, 32)))
    out = np.full((40, 32), 7, BF16)
    one = tcir.compile(PUBLIC, "gemm", entry="layer")
    one(x, w, out)
    assert (one.name, len(one.launches.launches)) == ("layer", 1)
    assert (out == layer(x, w)).all()
    both = tcir.compile(PUBLIC, "gemm", entry="twice")
    both(x, w, v, out)
    assert [each.title for each in both.launches.launches] == ["twice_0_matmul", "twice_1_matmul"]
    assert (out == layer(layer(x, w), v)).all()


@pytest.mark.parametrize("entry", ["layer", "twice"])
def test_each_at_every_level(entry: str) -> None:
    report = tcir.validate(PUBLIC, "gemm", entry=entry)
    assert report.ok, str(report)
    assert report.program == entry


def test_sizes_of_one() -> None:
    other = (
        "func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {\n  return %x : tensor<8xf32>\n}\n"
    )
    kernels = tcir.specialise(LINEAR + other, "gemm", [3], entry="linear").kernels
    assert kernels[3].name == "linear" and kernels[3].signature.inputs[0].shape == (3, 32)


def test_none_is_chosen_quietly() -> None:
    with pytest.raises(InputError, match=r"got @layer, @twice; choose the program by --entry=lay"):
        tcir.compile(PUBLIC, "gemm")
    with pytest.raises(InputError, match=r"entry: expected .* @layer, @twice, got 'twise'; did"):
        tcir.validate(PUBLIC, "gemm", entry="twise")
    lowered = tcir.compile(PUBLIC, "gemm", entry="layer").ir["reconcile-unrealized-casts"]
    with pytest.raises(InputError, match=r"entry: expected .* there is none, got 'layer'"):
        tcir.validate(lowered, entry="layer")


def test_private_functions_that_nobody_calls_are_no_launches() -> None:
    start, end = CALLS.index("  %h = func.call"), CALLS.index("  return %y")
    alone = CALLS[:start] + CALLS[CALLS.index("  %zero") : CALLS.index("  return %h")] + CALLS[end:]
    kernel = tcir.compile(alone.replace("return %y", "return %h"), "gemm")
    assert kernel.launch_config.name == "twice"


def test_one_of_several_launches_is_no_program() -> None:
    launches = tcir.compile(CALLS, "gemm").ir["split-layers"]
    with pytest.raises(
        InputError, match=r"got @twice_0_matmul, one launch of several \(tc.order\)"
    ):
        tcir.validate(launches, entry="twice_0_matmul")


def test_a_pass_that_numbers_buffers_takes_one() -> None:
    x = "tensor<40x32xbf16>"
    two = CALLS.replace("func.func private", "func.func").replace(
        "func.func @twice",
        f"func.func @same(%x: {x}) -> {x} {{\n  return %x : {x}\n}}\nfunc.func @twice",
    )
    with pytest.raises(PassError, match=r"got @layer, @same, @twice; choose .* --entry=twice"):
        tcir.Pipeline.parse("builtin.module(split-layers)").passes[0].apply(_module(two))


def _module(text: str) -> Any:
    from tcir.program.source import load_module, mlir_context

    with mlir_context() as context:
        return load_module(text, context)

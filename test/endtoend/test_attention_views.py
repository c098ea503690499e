"""Attention whose queries, keys and values are in the memory of other tensors: one launch, which
loads them where they are. Beside numpy; offsets, strides and coordinates, broken once each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.passmanager.pipeline import Pipeline, as_pipeline
from tcir.validation.report import Line

from .attention_text import Attention
from .breaking import Broken, Edit, change_operand, noticed, set_attribute

Array = np.ndarray[Any, Any]
TARGETS = ("sm_90a", "sm_100a")


@dataclass(frozen=True)
class Packed:
    """Attention of parts of one tensor.

    shape: of the tensor; moves: ops from it to queries, keys and values, and the shapes of their
    results; of: the same in numpy, to [b, h, m, d]; layout: of them
    """

    shape: tuple[int, ...]
    moves: tuple[tuple[str, tuple[int, ...]], ...]
    of: Callable[[Array, int], Array]
    layout: str = "bmhd"
    launches: int = 1

    def text(self) -> str:
        """The program."""
        source, lines = kind(self.shape), []
        for at in range(3):
            value, type_ = "%x", source
            for number, (op, shape) in enumerate(self.moves):
                name, result = f"%{'qkv'[at]}{number}", kind(shape)
                low = {size: at * size for size in self.shape + shape}
                words = op.format(low=low, value=value, type=type_, result=result, name=name)
                lines.append(words)
                value, type_ = name, result
        q, k, v = (f"%{name}{len(self.moves) - 1}" for name in "qkv")
        keys, sizes = self.layout.replace("m", "n"), dict(zip(self.layout, self.moves[-1][1]))
        lse = kind(tuple(sizes[letter] for letter in "bhm"), "f32")
        return f"""
        func.func @packed(%x: {source}) -> {type_} {{
          {chr(10).join(lines)}
          %o, %lse = "tc.attention"({q}, {k}, {v}) ({{}}) {{scale = 0.25 : f32,
              q_layout = "{self.layout}", kv_layout = "{keys}", out_layout = "{self.layout}",
              causal_offset = 0 : i64}} : ({type_}, {type_}, {type_}) -> ({type_}, {lse})
          return %o : {type_}
        }}
        """

    def wanted(self, x: Array) -> Array:
        """The result in float64, in its layout."""
        q, k, v = (self.of(x.astype(np.float64), at) for at in range(3))
        scores = q @ k.swapaxes(-1, -2) * 0.25
        rows = np.arange(q.shape[2])
        scores = np.where(rows[:, None] >= rows, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out = weights / weights.sum(-1, keepdims=True) @ v
        return out if self.layout == "bhmd" else out.swapaxes(1, 2)


def kind(shape: tuple[int, ...], element: str = "f16") -> str:
    """The type of a tensor."""
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def parts_of(shape: tuple[int, ...], size: int, dim: int) -> str:
    """Queries, keys or values by a slice of one dimension: `size` indices each."""
    low = ["0"] * len(shape)
    low[dim] = f"{{low[{size}]}}"
    sizes = [size if n == dim else each for n, each in enumerate(shape)]
    return (
        f"{{name}} = tensor.extract_slice {{value}}[{', '.join(low)}] "
        f"[{', '.join(map(str, sizes))}] [{', '.join('1' * len(shape))}] : {{type}} to {{result}}"
    )


EXPAND = "{name} = tensor.expand_shape {value} %s output_shape %s : {type} into {result}"
COLLAPSE = "{name} = tensor.collapse_shape {value} %s : {type} into {result}"
TRANSPOSE = (
    "{name}e = tensor.empty() : {result}\n{name} = linalg.transpose ins({value} : {type}) "
    "outs({name}e : {result}) permutation = %s"
)
CASES = {
    "columns of rows": Packed(
        (2, 40, 96),
        (
            (parts_of((2, 40, 96), 32, 2), (2, 40, 32)),
            (EXPAND % ("[[0], [1], [2, 3]]", "[2, 40, 2, 16]"), (2, 40, 2, 16)),
        ),
        lambda x, at: x.reshape(2, 40, 3, 2, 16)[:, :, at].swapaxes(1, 2),
    ),
    "parts of heads": Packed(
        (2, 40, 2, 48),
        ((parts_of((2, 40, 2, 48), 16, 3), (2, 40, 2, 16)),),
        lambda x, at: x.reshape(2, 40, 2, 3, 16)[:, :, :, at].swapaxes(1, 2),
    ),
    "rows before batches": Packed(
        (20, 2, 96),
        (
            (EXPAND % ("[[0], [1], [2, 3]]", "[20, 2, 3, 32]"), (20, 2, 3, 32)),
            (TRANSPOSE % "[2, 0, 1, 3]", (3, 20, 2, 32)),
            (parts_of((3, 20, 2, 32), 1, 0), (1, 20, 2, 32)),
            (COLLAPSE % "[[0], [1], [2, 3]]", (1, 20, 64)),
            (EXPAND % ("[[0], [1], [2, 3]]", "[1, 20, 4, 16]"), (1, 20, 4, 16)),
        ),
        lambda x, at: x.reshape(20, 2, 3, 2, 16)[:, :, at].reshape(1, 20, 4, 16).swapaxes(1, 2),
    ),
    "heads transposed": Packed(
        (1, 3, 40, 2, 16),
        (
            (
                parts_of((1, 3, 40, 2, 16), 1, 1).replace("{result}", kind((1, 40, 2, 16))),
                (1, 40, 2, 16),
            ),
            (TRANSPOSE % "[0, 2, 1, 3]", (1, 2, 40, 16)),
        ),
        lambda x, at: x[:, at].swapaxes(1, 2),
        layout="bhmd",
    ),
    "rows from the middle": Packed(
        (1, 100, 2, 16),
        ((parts_of((1, 100, 2, 16), 30, 1), (1, 30, 2, 16)),),
        lambda x, at: x[:, 30 * at : 30 * (at + 1)].swapaxes(1, 2),
    ),
    "strides of 8 bytes": Packed(
        (1, 40, 100),
        (
            (parts_of((1, 40, 100), 32, 2), (1, 40, 32)),
            (EXPAND % ("[[0], [1], [2, 3]]", "[1, 40, 2, 16]"), (1, 40, 2, 16)),
        ),
        lambda x, at: x[..., 32 * at : 32 * (at + 1)].reshape(1, 40, 2, 16).swapaxes(1, 2),
        launches=4,
    ),
}


def _inputs(case: Packed) -> Array:
    return np.random.default_rng(0).standard_normal(case.shape).astype(np.float16)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_operands_in_the_memory_of_one_tensor(name: str, target: str) -> None:
    case = CASES[name]
    kernel = tcir.compile(case.text(), "layers", target=target)
    assert len(kernel.launches.launches) == case.launches
    x = _inputs(case)
    out = np.asarray(kernel.run(x), np.float64)
    np.testing.assert_allclose(out, case.wanted(x), atol=2e-3, rtol=2e-3)


def plus(number: int) -> Callable[[Any], Any]:
    """Adds to an index."""
    return lambda value: arith.addi(value, arith.constant(ir.IndexType.get(), number))


BREAKS: list[tuple[str, Edit]] = [
    ("the next head of queries", change_operand("tc.tma_load", 2, plus(1), 0)),
    ("values are keys", change_operand("tc.tma_load", 2, plus(-2), 2)),
    ("rows of a third", set_attribute("tc.make_tensor_map", "strides", "array<i64: 32, 64, 7680>")),
    ("keys of the first batch", set_attribute("tc.make_tensor_map", "strides",
                                              "array<i64: 32, 192, 192>", 1)),
    ("keys without their places", set_attribute("tc.make_tensor_map", "dims",
                                                "array<i64: 16, 2, 40, 2>", 1)),
]  # fmt: skip


def tiled(edit: Edit | None) -> Pipeline:
    """The pipeline up to tile-attention, which an edit breaks."""
    whole = as_pipeline("layers")
    passes = list(whole.passes)[: whole.index("tile-attention") + 1]
    return Pipeline([*passes[:-1], Broken(passes[-1], edit)] if edit else passes)


@pytest.mark.parametrize(("what", "edit"), [("", None), *BREAKS])
def test_breaks_are_caught(what: str, edit: Edit | None) -> None:
    found = noticed(CASES["columns of rows"].text(), tiled(edit), "sm_90a")
    assert bool(found) == (edit is not None), found
    assert not found or found.at == "tile-attention", found.text


def test_inputs_that_show_a_lost_key_are_written_into_the_one_tensor() -> None:
    lines: list[Line] = []
    tcir.validate(
        CASES["parts of heads"].text(), tiled(None), target="sm_90a", on_line=lines.append
    )
    assert "rows of one key, maxima that rise" in lines[0].compared


TWICE = """
  %empty = tensor.empty() : tensor<1x2x64xf32>
  %twice = linalg.generic {
      indexing_maps = [affine_map<(b, h, m) -> (b, h, m)>, affine_map<(b, h, m) -> (b, h, m)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%lse : tensor<1x2x64xf32>) outs(%empty : tensor<1x2x64xf32>) {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %x : f32
      linalg.yield %z : f32
  } -> tensor<1x2x64xf32>
  return %o, %twice : """


@pytest.mark.parametrize(
    ("returned", "launches", "factor"),
    [("return %o, %lse : ", ["attention"], 1), (TWICE, ["attention", "addf"], 2)],
    ids=["returned", "read"],
)
def test_logarithms_are_results_of_the_same_launch(
    returned: str, launches: list[str], factor: int
) -> None:
    """Whether they are returned or read by another launch: attention is computed once."""
    case = Attention(h=2, m=64, n=128, d=32)
    text = case.text.replace("return %o, %lse : ", returned)
    kernel = tcir.compile(text, "layers", target="sm_90a")
    assert [each.name.rpartition("_")[2] for each in kernel.launches.launches] == launches
    draw = np.random.default_rng(0)
    operands = [draw.standard_normal(case.shapes[name]).astype(np.float16) for name in "qkv"]
    out, lse = kernel.run(*operands)
    want, logarithms = case.computed(*operands)
    assert np.abs(out - want).max() < 2e-3
    assert np.abs(lse - factor * logarithms).max() < 1e-4

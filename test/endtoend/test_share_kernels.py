"""Identical layers are launches of one kernel, each of which is executed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.errors import InputError, PassError
from tcir.passes.emit.gpu_module import insert_launch
from tcir.passmanager.pipeline import as_pipeline
from tcir.program.programs import find_programs
from tcir.program.repeats import REPEATS
from tcir.session.timeline import timelines

from .breaking import Edit, run_broken
from .layers_text import perceptron

SUM = """
  %f{n} = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s{n} = linalg.reduce ins(%{x} : tensor<8x8xf32>) outs(%f{n} : tensor<8xf32>) dimensions = [{dim}]
    (%a: f32, %b: f32) {{ %c = arith.addf %a, %b : f32
      linalg.yield %c : f32 }}"""
SUMS = f"""func.func @f(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
{SUM.format(n=0, x="x", dim=1)}{SUM.format(n=1, x="w", dim=1)}{SUM.format(n=2, x="x", dim=0)}
  return %s0, %s1, %s2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}}"""
"""Sums of the rows of two matrices, and of the columns of one."""


def test_two_of_three_launches_are_of_one_kernel() -> None:
    kernel = tcir.compile(SUMS, "simt-elementwise")
    assert kernel.ptx.count(".entry") == 2
    first, second, third = kernel.launches.launches
    assert first.name == second.name != third.name
    assert first.title == first.name and second.title != first.title
    assert (first.buffers, second.buffers) == ((0, 2), (1, 3))
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    found = kernel.run(x, x * 2)
    for got, right in zip(found, (x.sum(1), 2 * x.sum(1), x.sum(0)), strict=True):
        assert np.array_equal(got, right)
    rows = kernel.launch_table.rows
    assert [row.work.computes for row in rows] == [("addf",)] * 3
    assert len({row.name for row in rows}) == 3


def test_each_launch_is_executed_after_each_pass() -> None:
    report = tcir.validate(SUMS, "simt-elementwise")
    assert report.verdict == "held"
    names = [line.name for line in report.passes]
    assert names.index("share-kernels") < names.index("convert-to-simt")


def of_other_buffers(name: str, place: int, number: int) -> Edit:
    """Gives the first repeat another buffer."""

    def edit(module: ir.Module) -> None:
        (entry,) = module.operation.attributes[REPEATS]
        repeats = [{each.name: each.attr for each in entry}]
        numbers = list(repeats[0][name])
        numbers[place] = number
        repeats[0][name] = ir.DenseI64ArrayAttr.get(numbers)
        made = [ir.DictAttr.get(each) for each in repeats]
        module.operation.attributes[REPEATS] = ir.ArrayAttr.get(made)

    return edit


@pytest.mark.parametrize("at", ["share-kernels", "convert-to-simt"])
def test_a_launch_of_another_buffer_is_found(at: str) -> None:
    """The second launch reads what the first one does."""
    caught = run_broken(
        SUMS,
        as_pipeline("simt-elementwise"),
        at,
        of_other_buffers("args", 0, 0),
        orders=1,
    )
    assert caught and caught.at == at and caught.by == "difference", caught


def test_attributes_that_no_pass_writes() -> None:
    text = tcir.compile(SUMS, "simt-elementwise").ir["share-kernels"]
    for pattern, other, said in (
        (r"of = array<i64: \d+, ", "of = array<i64: ", "with a one-to-one mapping of buffers"),
        (r"name = ", "names = ", "expected launches as share-kernels writes them"),
        (r"kernel = 0", "kernel = 7", "of a function with tc.order"),
    ):
        with ir.Context() as context:
            context.allow_unregistered_dialects = True
            module = ir.Module.parse(re.sub(pattern, other, text, count=1))
            with pytest.raises(InputError, match=said):
                find_programs(module)


def test_no_launch_is_added_behind_it() -> None:
    with ir.Context():
        module = ir.Module.parse(tcir.compile(SUMS, "simt-elementwise").ir["share-kernels"])
        with pytest.raises(PassError, match="run share-kernels after this pass"):
            insert_launch(module, 1)


def test_one_launch_of_a_kernel_alone() -> None:
    launches = tcir.compile(SUMS, "simt-elementwise").launches.launches
    for given, count in ((None, 3), (launches[0].title, 1), (launches[1].title, 1)):
        assert len(timelines(SUMS, "simt-elementwise", entry=given)) == count


def test_equal_layers_of_tensor_cores() -> None:
    text = perceptron(24, [32, 32, 32, 32])
    kernel = tcir.compile(text, "layers")
    assert len(kernel.launches.launches) == 3 and kernel.ptx.count(".entry") == 2
    assert tcir.validate(text, "layers").verdict == "held"

"""share-kernels: turns equal launches on different buffers into launches of one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect.attributes import integers
from tcir.passes.emit.builders import i64, i64s
from tcir.passes.emit.gpu_module import launch_order, numbered_launches
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.program.repeats import REPEATS

_OF_A_LAUNCH = ("sym_name", "tc.order", "tc.args")
"""Attributes of a function that say which launch it is, and nothing about what it computes."""


@register_pass
@dataclass(frozen=True)
class ShareKernels(Pass):
    """Keeps only one function out of several that differ only in name, position and buffers.

    Before (two layers of a model, each with weights of its own)::

        func.func @f_0(%x, %w) attributes {tc.order = 0, tc.args = array<i64: 0, 1, 4>} { … }
        func.func @f_1(%x, %w) attributes {tc.order = 1, tc.args = array<i64: 4, 2, 3>} { … }

    After: one function, and the buffers of its other launches::

        builtin.module attributes {tc.repeats = [{args = array<i64: 4, 2, 3>, name = "f_1",
                                                  of = array<i64: 0, 1, 4>, order = 1, kernel = 0}]}
        func.func @f_0(%x, %w) attributes {tc.order = 0, tc.args = array<i64: 0, 1, 4>} { … }

    So identical layers are tiled, lowered and assembled once. ``kernel`` is the `tc.order` of the
    function, whose buffer ``of[i]`` is buffer ``args[i]`` in this launch. Every launch is executed
    as before (`tcir.program.programs`). The source locations are those of the first function. Two
    functions stay separate if one reads the same buffer twice where the other reads two different
    buffers. Preserves every value, bit for bit.
    """

    name: ClassVar[str] = "share-kernels"

    def run(self, module: ir.Module) -> None:
        kept: dict[str, func.FuncOp] = {}
        repeats: list[ir.Attribute] = []
        for function in numbered_launches(module):
            first = kept.setdefault(_computation(function), function)
            if first is not function:
                repeats.append(_repeat(function, first))
                remark(first, f"@{function.name.value} is another launch of it")
                function.operation.erase()
        if repeats:
            attributes = module.operation.attributes
            before = list(attributes[REPEATS]) if REPEATS in attributes else []
            attributes[REPEATS] = ir.ArrayAttr.get([*before, *repeats])


def _computation(function: func.FuncOp) -> str:
    """Key of a function's computation: its text without names of its launch, and which of its
    buffers are equal."""
    alone = function.operation.clone(ip=False)
    for name in _OF_A_LAUNCH[1:]:
        del alone.attributes[name]
    alone.attributes["sym_name"] = ir.StringAttr.get("f")
    text = alone.get_asm(assume_verified=True)
    return f"{_places(integers(function, 'tc.args'))}\n{text}"


def _places(numbers: Sequence[int]) -> list[int]:
    return [numbers.index(number) for number in numbers]


def _repeat(function: func.FuncOp, first: func.FuncOp) -> ir.Attribute:
    return ir.DictAttr.get(
        {
            "name": function.name,
            "kernel": i64(launch_order(first) or 0),
            "order": i64(launch_order(function) or 0),
            "of": i64s(integers(first, "tc.args")),
            "args": i64s(integers(function, "tc.args")),
        }
    )

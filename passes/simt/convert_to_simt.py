"""convert-to-simt: turns launches without tensor cores into kernels; each kind of launch has its
own rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

from tcir._mlir import func, ir
from tcir.passes.analysis.buffers import unwritten_arguments
from tcir.passes.emit import simt
from tcir.passes.emit.gpu_module import launch_order, launches_of
from tcir.passes.emit.tensor_functions import functions_with_body
from tcir.passes.simt import (
    block_scaled,
    codes,
    combine_parts,
    elementwise,
    quantise,
    repack,
    scales,
    streamed,
    streamed_narrow,
    sums,
)
from tcir.passmanager.pipeline import Pass, register_pass

Rule: TypeAlias = Callable[[ir.Module, func.FuncOp], bool]
"""Appends the kernel of a function to the module if the function is the rule's; returns whether."""

RULES: tuple[Rule, ...] = (
    repack.convert,  # tc.repack
    scales.convert,  # tc.scales_to_blocked
    codes.convert,  # tc.pack_codes, tc.unpack_codes
    sums.convert,  # tc.sum_parts and its tc.epilogue
    combine_parts.convert,  # tc.combine_parts
    elementwise.convert,  # functions with the attribute tc.simt
    quantise.convert,  # tc.quantise_blocks
)
"""In the order of the kernels in the module; that of ``tc.quantise_blocks`` is last."""


@register_pass
@dataclass(frozen=True)
class ConvertToSimt(Pass):
    """Turns each launch without tensor cores into a kernel for CUDA cores, by the rule of its kind.

    programmatic: whether launches may start before the previous launch has ended, for which they
        then wait; several: whether only in programs of several launches
    quantise_apart: as in split-launches; false leaves ``tc.quantise_blocks`` to products
    streamed: whether products with few rows or columns become kernels whose warps read the matrix
        once (`tcir.passes.simt.streamed`); false leaves these products to other passes
    rows:  rows of A per warp of a ``tc.block_scaled_matmul``; 0 leaves products as they are
    warps: warps per CTA of a ``tc.block_scaled_matmul``

    Before::

        func.func @f_repack0(%x: tensor<1x224x224x3xf16>) -> tensor<1x224x224x8xf16>

    After::

        gpu.module @kernels { llvm.func @f_repack0(%x: !llvm.ptr<1>, %out: !llvm.ptr<1>) … }

    The rules in `RULES` are in modules of their own, which describe each kernel and the values that
    it preserves. Other functions stay as they are; with `rows` the pass rejects them.
    """

    name: ClassVar[str] = "convert-to-simt"
    programmatic: bool = False
    several: bool = False
    quantise_apart: bool = True
    streamed: bool = False
    rows: int = 0
    warps: int = 4

    def run(self, module: ir.Module) -> None:
        rules = RULES if self.quantise_apart else RULES[:-1]
        if self.streamed:
            unwritten = unwritten_arguments(module)
            both = streamed.convert, streamed_narrow.convert
            rules = (*(partial(each, unwritten=unwritten) for each in both), *rules)
        for rule in rules:
            for function in functions_with_body(module):
                if rule(module, function):
                    function.operation.erase()
        for kernel in launches_of(module) if self.programmatic else ():
            alone = launch_order(kernel) is None
            if "nvvm.kernel" in kernel.attributes and not (self.several and alone):
                simt.wait_for_previous(kernel)
        if self.rows:
            for function in [op for op in module.body.operations if isinstance(op, func.FuncOp)]:
                block_scaled.convert(module, function, self.rows, self.warps)
                function.operation.erase()

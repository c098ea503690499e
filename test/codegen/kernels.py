"""Shared by the tests of code generation and of the thread level."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.nvvm.convert_tc_to_nvvm import ConvertTcToNvvm
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.passmanager.pipeline import Pipeline


@contextmanager
def parsed(text: str) -> Iterator[ir.Module]:
    """A module in a context of its own that knows `tc`."""
    with ir.Context() as context, ir.Location.unknown():
        tc.load(context)
        yield ir.Module.parse(text)


def convert(module: ir.Module) -> None:
    """To threads."""
    ConvertTcToNvvm().apply(module)
    module.operation.verify()


def lower(module: ir.Module) -> None:
    """To llvm and nvvm."""
    convert(module)
    Pipeline(LOWER_TO_LLVM).run(module)

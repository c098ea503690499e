"""The numbers of a session's roofline, as its steps make them known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil, prod
from typing import TYPE_CHECKING

from tcir.passes.build.calls import inlined
from tcir.program.launch_table import launch_table
from tcir.program.memory_image import image_spec
from tcir.target import TARGETS
from tcir.time.constants import CONSTANTS
from tcir.time.roofline import Executed, Roofline, by_kind

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.interp import OutputSpec
    from tcir.program.launch import LaunchSequence
    from tcir.program.signature import Signature
    from tcir.validation.report import Line

_HELD = ("equal", "within bound")


def of_input(module: ir.Module, signature: Signature, target: str) -> Roofline | None:
    """Of a program on tensors, whose inputs and results cross HBM once; None of any other, and of
    a target for which there are no constants."""
    from tcir.program.flops import flops_in

    if signature.level != "tensor" or target not in CONSTANTS["hbm"].figures:
        return None
    flops = by_kind(target, flops_in(inlined(module)))
    return Roofline(target, flops, _nbytes((*signature.inputs, *signature.outputs)))


def of_launches(roofline: Roofline, launches: LaunchSequence, signature: Signature) -> Roofline:
    """With constants, and the buffers that the launches read and write."""
    table = launch_table(launches, signature, {})
    unique = roofline.hbm_bytes + table.constants
    return replace(roofline, hbm_bytes=unique, moved=sum(table.total))


def as_executed(roofline: Roofline, launches: LaunchSequence, line: Line) -> Roofline:
    """With what the machine counted; as it was unless all CTAs were executed and held."""
    if line.verdict not in _HELD or not launches.launches:
        return roofline
    sms, counted = TARGETS[roofline.target].sms, line.counters
    grids = (prod(launch.grid) for launch in launches.launches)
    done = Executed(
        ctas=max(grids, key=lambda ctas: ctas / ceil(ctas / sms)),
        tensor_cycles=counted.get("tensor_cycles", 0),
        products=counted.get("products", 0),
        to_sms=counted.get("global_to_shared_read", 0) + counted.get("global_load", 0),
    )
    return replace(roofline, executed=done)


def _nbytes(specs: Iterable[OutputSpec]) -> int:
    images = map(image_spec, specs)
    return sum(prod(image.shape) * image.dtype.itemsize for image in images)

"""The numbers of a session's roofline; each step of the session adds some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil, prod
from typing import TYPE_CHECKING

from tcir.dialect.walk import nested
from tcir.errors import LaunchError
from tcir.passes.emit.calls import inlined
from tcir.program.launch_table import launch_table
from tcir.program.memory_image import image_spec
from tcir.target import TARGETS
from tcir.time import in_sequence, modelled_time
from tcir.time.constants import is_timed, target_of
from tcir.time.roofline import ExecutedWork, Roofline, RooflineTime, by_kind

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.interp import OutputSpec
    from tcir.machine.events import EventStream
    from tcir.program.launch import LaunchSequence
    from tcir.program.signature import Signature
    from tcir.validation.report import Line

_RAN = ("equal", "within bound", "sampled")


def of_input(module: ir.Module, signature: Signature, target: str) -> Roofline | None:
    """Roofline of a program on tensors, under the assumption that each input and result crosses HBM
    once. None for other programs, for programs with loops (whose products are not counted), and for
    a target without constants in the time model.
    """
    from tcir.program.flops import flops_in

    if signature.level != "tensor" or not is_timed(target):
        return None
    if any(op.operation.name.startswith("scf.") for op in nested(module.operation)):
        return None
    chip = target_of(target).name
    flops = by_kind(chip, flops_in(inlined(module)))
    return Roofline(chip, flops, _nbytes((*signature.inputs, *signature.outputs)))


def of_launches(roofline: Roofline, launches: LaunchSequence, signature: Signature) -> Roofline:
    """Returns the roofline with the bytes of the constants and of the buffers that the launches
    access.
    """
    table = launch_table(launches, signature, {})
    unique = roofline.hbm_bytes + table.constants
    return replace(roofline, hbm_bytes=unique, moved=sum(table.total))


def after_run(
    roofline: Roofline,
    launches: LaunchSequence,
    signature: Signature,
    line: Line,
    streams: Sequence[EventStream],
) -> Roofline:
    """Returns the roofline with the counters of the simulated machine, if it executed all CTAs, and
    with the modelled time of recorded events, if there are any. The roofline is returned unchanged
    unless the execution gave a right result.
    """
    if line.verdict not in _RAN or not launches.launches:
        return roofline
    sms, counted = TARGETS[roofline.target].sms, line.counters
    grids = [prod(launch.grid) for launch in launches.launches]
    done = ExecutedWork(
        ctas=max(grids, key=lambda ctas: ctas / ceil(ctas / sms)),
        tensor_cycles=counted.get("tensor_cycles", 0),
        products=counted.get("products", 0),
        to_sms=counted.get("global_to_shared_read", 0) + counted.get("global_load", 0),
    )
    unique = [sum(row.bytes) for row in launch_table(launches, signature, {}).rows]
    modelled = None
    if len(streams) == len(grids):
        with suppress(LaunchError):  # an operation for which the target has no constants
            times = [
                modelled_time(stream, roofline.target, ctas, unique_bytes=nbytes)
                for stream, ctas, nbytes in zip(streams, grids, unique, strict=True)
            ]
            modelled = RooflineTime(*in_sequence(times))
    executed = done if line.verdict != "sampled" else None
    return replace(roofline, executed=executed, modelled=modelled)


def _nbytes(specs: Iterable[OutputSpec]) -> int:
    images = map(image_spec, specs)
    return sum(prod(image.shape) * image.dtype.itemsize for image in images)

"""Modelled time of a compiled program; nothing was measured on a GPU.

A sample of each launch's CTAs is executed. The time model (`tcir.time`) receives the events of the
first cluster and the number of CTAs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tcir.errors import IncompleteError
from tcir.interp.types import Array
from tcir.machine.events import EventStream, Recording
from tcir.machine.sample import Sample
from tcir.program.inputs import poison
from tcir.program.launch import Call, LaunchSequence
from tcir.program.launch_table import launch_table
from tcir.program.memory_image import image_spec
from tcir.program.signature import Signature
from tcir.run import run_ptx
from tcir.time import ModelledTime, in_sequence, modelled_time

MOVED = ("global_to_shared_read", "global_load", "shared_to_global", "global_store")
"""The machine's counters of bytes that move between global memory and the SMs."""


@dataclass(frozen=True)
class Modelled:
    """Modelled time of a program.

    microseconds: time of all launches, with the gaps between them
    bound:        the bottleneck of the longest launch
    bytes:        bytes that all CTAs move between global memory and the SMs
    """

    microseconds: float
    bound: str
    bytes: int


def modelled(
    ptx: str, launches: LaunchSequence, signature: Signature, target: str, registers: int
) -> Modelled:
    """Modelled time of a program's launches.

    registers: registers per thread, from ptxas
    """
    inputs = [np.zeros(s.shape, s.dtype) for s in map(image_spec, signature.inputs)]
    results = [poison(image_spec(spec)) for spec in signature.outputs]
    spaces = [np.zeros(size, np.uint8) for size in launches.workspaces.sizes]
    arrays: list[Array] = [*inputs, *launches.constants, *results, *spaces]
    first = len(inputs) + len(launches.constants)
    rows = launch_table(launches, signature, {}).rows
    times: list[ModelledTime] = []
    moved = 0.0
    for row, call in zip(rows, launches.calls(arrays, range(first, len(arrays))), strict=True):
        stream, nbytes = _executed(ptx, call)
        stream.registers = registers
        ctas = math.prod(call[0].grid)
        times.append(modelled_time(stream, target, ctas, unique_bytes=sum(row.bytes)))
        moved += nbytes
    microseconds, bound = in_sequence(times)
    return Modelled(microseconds, bound, round(moved))


def _executed(ptx: str, call: Call) -> tuple[EventStream, float]:
    """Executes a sample of a launch; returns the events of its first cluster, and the bytes that
    all its CTAs move."""
    launch, arguments = call
    recording = Recording()
    report = run_ptx(
        ptx,
        entry=launch.name,
        grid=launch.grid,
        block=launch.block,
        cluster=launch.cluster,
        dynamic_smem=launch.dynamic_smem,
        programmatic=launch.programmatic,
        args=arguments,
        hazards="off",
        numerics="fast",
        sample=Sample(0.0, 0),
        events=recording,
    )
    if report.incomplete:
        raise IncompleteError(f"@{launch.name}: no rule for {report.incomplete[0]}")
    if report.errors:
        raise report.errors[0]
    ctas = math.prod(launch.grid)
    (stream,) = recording.streams
    counted = sum(report.counters[name] for name in MOVED)
    return stream, counted * ctas / (report.executed or ctas)

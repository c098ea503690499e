"""Modelled time of a compiled program, launch by launch; nothing is measured on a GPU.

A sample of each launch's CTAs is executed on the simulated machine. The time model (`tcir.time`)
receives the events of the first cluster and the number of CTAs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tcir.errors import IncompleteError
from tcir.interp.types import Array
from tcir.machine.events import EventStream, Recording
from tcir.machine.sample import Sample
from tcir.program.inputs import poison
from tcir.program.launch import Call, Launch, LaunchSequence
from tcir.program.launch_table import LaunchOps, LaunchRow, launch_table
from tcir.program.memory_image import image_spec
from tcir.program.signature import Signature
from tcir.run import run_ptx
from tcir.time import ModelledTime, in_sequence, modelled_time
from tcir.time.roofline import Roofline, by_kind

MOVED = ("global_to_shared_read", "global_load", "shared_to_global", "global_store")
"""The machine's counters of bytes that move between global memory and the SMs."""


@dataclass(frozen=True)
class ModelledLaunch:
    """A launch and its modelled time.

    ctas:   number of CTAs of the launch
    moved:  bytes that all CTAs move between global memory and the SMs
    stream: events of the first cluster
    """

    row: LaunchRow
    time: ModelledTime
    ctas: int
    moved: int
    stream: EventStream = field(repr=False, compare=False)

    @property
    def bytes(self) -> int:
        """Bytes of the buffers that the launch reads and writes, each counted once."""
        return sum(self.row.bytes)

    @property
    def roofline(self) -> Roofline:
        """Minimum time for the launch's products and its `bytes`."""
        return Roofline(
            self.time.target, by_kind(self.time.target, self.row.work.flops), self.bytes, self.bytes
        )


@dataclass(frozen=True)
class ModelledProgram:
    """The launches of a program with their modelled times; its `str` is a table."""

    launches: tuple[ModelledLaunch, ...]

    @property
    def microseconds(self) -> float:
        """Time of all launches, with the gaps between them."""
        return in_sequence([each.time for each in self.launches])[0]

    @property
    def bound(self) -> str:
        """The resource that limits the launch that takes longest."""
        return in_sequence([each.time for each in self.launches])[1]

    @property
    def moved(self) -> int:
        """Bytes that all CTAs move between global memory and the SMs."""
        return sum(each.moved for each in self.launches)

    def trace(self) -> bytes:
        """A trace for Perfetto with the modelled timeline of each launch's first cluster.

        Needs the package perfetto (extra ``trace``).
        """
        from tcir.time.trace import trace

        streams = [each.stream for each in self.launches]
        return trace(streams, self.launches[0].time.target if streams else "")

    def __str__(self) -> str:
        if not self.launches:
            return "modelled: no launches"
        rows = [("launch", "computes", "CTAs", "MB", "roof us", "us", "limited by")]
        for each in self.launches:
            work = ", ".join((*each.row.work.computes, *each.row.work.fused))
            rows.append(
                (
                    each.row.name,
                    work if len(work) <= WIDE else f"{work[: WIDE - 1]}…",
                    str(each.ctas),
                    f"{each.bytes / 1e6:.2f}",
                    f"{each.roofline.microseconds:.2f}",
                    f"{each.time.microseconds:.2f}",
                    each.time.bound,
                )
            )
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                f"{cell:>{width}}" if 2 <= n <= 5 else f"{cell:<{width}}"
                for n, (cell, width) in enumerate(zip(row, wide, strict=True))
            ).rstrip()
            for row in rows
        ]
        first = self.launches[0].time
        count = len(self.launches)
        total = (
            f"modelled: {self.microseconds:.2f} us for {count} launch{'es' * (count > 1)} on "
            f"{first.target} at {first.clock_ghz:g} GHz"
        )
        return "\n".join([*lines, total])


WIDE = 40
"""Characters of a table's column that names operations."""


def modelled(
    ptx: str,
    launches: LaunchSequence,
    signature: Signature,
    target: str,
    *,
    works: Mapping[str, LaunchOps] | None = None,
    registers: int = 0,
) -> ModelledProgram:
    """Models the time of a program's launches. Launches that are equal are executed once.

    works:     operations of each launch, for the table
    registers: registers per thread, as ptxas reports them; 0: registers do not limit the number of
        resident CTAs

    Raises `LaunchError` for operations without constants in the time model, and `IncompleteError`
    for instructions that the simulated machine does not support.
    """
    inputs = [np.zeros(s.shape, s.dtype) for s in map(image_spec, signature.inputs)]
    results = [poison(image_spec(spec)) for spec in signature.outputs]
    spaces = [np.zeros(size, np.uint8) for size in launches.workspaces.sizes]
    arrays: list[Array] = [*inputs, *launches.constants, *results, *spaces]
    first = len(inputs) + len(launches.constants)
    rows = launch_table(launches, signature, works or {}).rows
    known: dict[Hashable, tuple[EventStream, float]] = {}
    found = []
    for row, call in zip(rows, launches.calls(arrays, range(first, len(arrays))), strict=True):
        launch = call[0]
        key = _like(launch, arrays)
        if key not in known:
            known[key] = _executed(ptx, call)
        stream, moved = known[key]
        stream.registers = registers
        ctas = math.prod(launch.grid)
        time = modelled_time(stream, target, ctas, unique_bytes=sum(row.bytes))
        found.append(ModelledLaunch(row, time, ctas, round(moved), stream))
    return ModelledProgram(tuple(found))


def _like(launch: Launch, arrays: Sequence[Array]) -> Hashable:
    """Key that launches with the same events have in common."""
    sizes = [(arrays[n].shape, arrays[n].dtype.str) for n in launch.buffers]
    parameters: list[Any] = [
        {name: value for name, value in each.items() if name != "arg"} for each in launch.params
    ]
    return launch.name, launch.grid, launch.cluster, repr(sizes), repr(parameters)


def _executed(ptx: str, call: Call) -> tuple[EventStream, float]:
    """Executes a sample of a launch; returns the events of its first cluster, and the bytes that
    all its CTAs move."""
    launch, arguments = call
    recording = Recording()
    report = run_ptx(
        ptx, entry=launch.name, grid=launch.grid, block=launch.block, cluster=launch.cluster,
        dynamic_smem=launch.dynamic_smem, programmatic=launch.programmatic, args=arguments,
        hazards="off", numerics="fast", sample=Sample(0.0, 0), events=recording,
    )  # fmt: skip
    if report.incomplete:
        raise IncompleteError(f"@{launch.name}: no rule for {report.incomplete[0]}")
    if report.errors:
        raise report.errors[0]
    ctas = math.prod(launch.grid)
    (stream,) = recording.streams
    counted = sum(report.counters[name] for name in MOVED)
    return stream, counted * ctas / (report.executed or ctas)

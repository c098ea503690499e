"""Modelled timelines of a program's launches: compiles the program, executes its PTX on the
simulated machine, and simulates the time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tcir.errors import InputError
from tcir.machine.events import Recording
from tcir.machine.sample import Sample
from tcir.program.memory_image import image_spec
from tcir.run import run_ptx
from tcir.session.entry import compile
from tcir.target import DEFAULT_TARGET
from tcir.time.recorded import RecordedTimeline

FIRST = Sample(0.0, 0)
"""The smallest sample that contains the first CTA."""


def timelines(
    program: str | Path, pipeline: str, target: str = DEFAULT_TARGET.name, entry: str | None = None
) -> list[RecordedTimeline]:
    """Timelines of all launches in order, or of the launch called `entry`. Inputs are zeros,
    because the timing of a kernel seldom depends on their values.
    """
    kernel = compile(program, pipeline=pipeline, target=target)
    inputs, outputs = (
        [np.zeros(image.shape, image.dtype) for image in map(image_spec, specs)]
        for specs in (kernel.signature.inputs, kernel.signature.outputs)
    )
    sequence = kernel.launches
    names = [launch.title for launch in sequence.launches]
    if entry is not None and entry not in names:
        raise InputError(f"--entry: expected one of {', '.join(names)}, got {entry!r}")
    arrays = [*inputs, *sequence.constants, *outputs]
    arrays += [np.zeros(size, np.uint8) for size in sequence.workspaces.sizes]
    streams = []
    for launch, args in sequence.calls(arrays, ()):
        if entry in (None, launch.title):
            report = run_ptx(
                kernel.ptx,
                entry=launch.name,
                grid=launch.grid,
                block=launch.block,
                cluster=launch.cluster,
                dynamic_smem=launch.dynamic_smem,
                programmatic=launch.programmatic,
                args=args,
                hazards="off",
                numerics="fast",
                sample=FIRST,
                events=Recording(),
            ).check()
            assert report.events is not None
            streams.append(report.events)
    return RecordedTimeline.all(streams, target)

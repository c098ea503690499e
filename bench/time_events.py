"""The events of a compiled kernel's first CTAs, and its modelled time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tcir.codegen import assemble
from tcir.machine.events import EventStream, Recording
from tcir.machine.sample import Sample
from tcir.program.execution import run_sequence
from tcir.program.memory_image import image_spec
from tcir.run_options import RunOptions
from tcir.time import Constants, ModelledTime, modelled_time


class FirstCta(Sample):
    """The first cluster of a grid, for recording."""

    def of(self, grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> Sequence[int]:
        return range(1)


def streams(kernel: Any) -> list[EventStream]:
    """Records for each launch the events of its first CTA or cluster on zeros, with ptxas'
    registers."""
    specs = [image_spec(spec) for spec in kernel.signature.inputs]
    inputs = [np.zeros(spec.shape, spec.dtype) for spec in specs]
    recording = Recording()
    options = RunOptions(hazards="off", events=recording, sample=FirstCta(share=0, seed=0))
    run_sequence(kernel.ptx, kernel.launches, inputs, kernel.signature.outputs, options)
    registers = assemble(kernel.ptx, target=kernel.target).registers
    for stream in recording.streams:
        stream.registers = registers
    return recording.streams


def unique_bytes(kernel: Any) -> int:
    """Bytes of inputs and results, each once."""
    specs = map(image_spec, (*kernel.signature.inputs, *kernel.signature.outputs))
    return sum(prod(spec.shape) * np.dtype(spec.dtype).itemsize for spec in specs)


def modelled(stream: EventStream, constants: Constants, nbytes: int) -> ModelledTime:
    """Modelled time of the whole launch of `stream`."""
    return modelled_time(stream, constants, prod(stream.grid), unique_bytes=nbytes)

"""Bundles of programs in MLIR: compiled, with inputs made from a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tcir
from tcir.interp import OutputSpec
from tcir.program.inputs import Kind, make_inputs, poison
from tcir.program.memory_image import image_spec, images
from tcir.runtime.bundle import Call, carry, check_new, pack
from tcir.target import DEFAULT_TARGET


def write_program(
    folder: Path,
    program: str,
    pipeline: str,
    *,
    seed: int = 0,
    inputs: Kind = "integers",
    target: str = DEFAULT_TARGET.name,
    **options: Any,
) -> None:
    """Compiles an MLIR file with a named pipeline, makes inputs from `seed`, writes the bundle.

    `options` are those of the pipeline. A program of several launches becomes one bundle.
    """
    check_new(folder)
    name = Path(program).name
    pack_program(
        folder, program, pipeline, seed=seed, inputs=inputs, target=target, name=name, **options
    )
    carry(folder)


def pack_program(
    folder: Path,
    program: str,
    pipeline: str,
    *,
    name: str,
    seed: int = 0,
    inputs: Kind = "integers",
    target: str = DEFAULT_TARGET.name,
    **options: Any,
) -> None:
    """The same without what makes the folder run; program: a path or the text; name: its own."""
    kernel = tcir.compile(program, pipeline, target=target, **options)
    signature, sequence = kernel.signature, kernel.launches
    arrays = [*images(make_inputs(signature.inputs, seed, inputs)), *sequence.constants]
    byte = np.dtype(np.uint8)
    workspaces = [poison(OutputSpec((size,), byte)) for size in sequence.workspaces.sizes]
    buffers = [*arrays, *(poison(image_spec(spec)) for spec in signature.outputs), *workspaces]
    calls = [
        Call(
            launch.name,
            launch.grid,
            launch.block,
            launch.cluster,
            launch.dynamic_smem,
            given,
            launch.programmatic,
        )
        for launch, given in sequence.calls(buffers, range(len(arrays), len(buffers)))
    ]
    pack(
        folder,
        kernel.ptx,
        calls,
        workspaces=workspaces,
        target=kernel.target,
        origin={
            "program": name,
            "pipeline": pipeline,
            "options": options,
            "inputs": inputs,
            "seed": seed,
            "tcir": tcir.__version__,
        },
    )

"""Bundles of MLIR programs, which are compiled and get inputs drawn from a seed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import tcir
from tcir.interp import OutputSpec
from tcir.program.inputs import Kind, make_inputs, poison
from tcir.program.memory_image import image_spec, images
from tcir.program.source import load_module, mlir_context
from tcir.runtime.bundle import BundledLaunch, Near, carry, check_new, pack
from tcir.target import DEFAULT_TARGET
from tcir.validation.reference import Reference, reference_of
from tcir.validation.settings import Settings


def write_program(
    folder: Path,
    program: str,
    pipeline: str,
    *,
    seed: int = 0,
    inputs: Kind = "integers",
    target: str = DEFAULT_TARGET.name,
    emulate: bool = False,
    **options: Any,
) -> None:
    """Compiles an MLIR file with a named pipeline, draws inputs from `seed`, and writes the bundle.

    options: options of the pipeline
    emulate: see `tcir.runtime.bundle.pack`

    A program of several launches becomes one bundle.
    """
    check_new(folder)
    name = Path(program).name
    pack_program(
        folder, program, pipeline, seed=seed, inputs=inputs, target=target, emulate=emulate,
        name=name, **options,
    )  # fmt: skip
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
    emulate: bool = False,
    **options: Any,
) -> None:
    """Writes the data of a bundle as `write_program` does, without the files that run it.

    program: path or text of the program
    name:    name of the program

    Results that approximate functions influence have an error bound; raises InputError if no bound
    is known.
    """
    kernel = tcir.compile(program, pipeline, target=target, **options)
    signature, sequence = kernel.signature, kernel.launches
    known: Reference | None = None
    if re.search(r"^\s*[^/]*\.approx\b", kernel.ptx, re.MULTILINE):
        with mlir_context() as context:
            known = reference_of(load_module(program, context), Settings(seed, inputs))
    given = known.inputs if known else images(make_inputs(signature.inputs, seed, inputs))
    arrays = [*given, *sequence.constants]
    byte = np.dtype(np.uint8)
    workspaces = [poison(OutputSpec((size,), byte)) for size in sequence.workspaces.sizes]
    results = [poison(image_spec(spec)) for spec in signature.outputs]
    buffers = [*arrays, *results, *workspaces]
    calls = [
        BundledLaunch(
            launch.name,
            launch.grid,
            launch.block,
            launch.cluster,
            launch.dynamic_smem,
            passed,
            launch.programmatic,
        )
        for launch, passed in sequence.calls(buffers, range(len(arrays), len(buffers)))
    ]
    pack(
        folder,
        kernel.ptx,
        calls,
        workspaces=workspaces,
        near=list(map(Near, results, known.results, known.errors)) if known else [],
        target=kernel.target,
        emulate=emulate,
        origin={
            "program": name,
            "pipeline": pipeline,
            "options": options,
            "inputs": inputs,
            "seed": seed,
            "tcir": tcir.__version__,
        },
    )

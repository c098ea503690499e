"""Writes the kernels of the self-test as bundles. The bytes that another computer's GPU writes show
which alternative of an assumption is right.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tcir.codegen.cubin import assemble
from tcir.errors import InputError
from tcir.machine import REGISTRY, Assumptions
from tcir.runtime.bundle import BufferTable, digest, raw, save
from tcir.runtime.cubin import triple
from tcir.runtime.micro_kernel import MicroKernel
from tcir.runtime.selftest import FAULT, launch_on_machine
from tcir.target import DEFAULT_TARGET


def write_questions(folder: Path, name: str, kernel: MicroKernel) -> list[Path]:
    """Writes the launches that test the assumption `name`, each as a bundle ``ask-NAME``."""
    written = []
    for number, launch in enumerate(kernel.launches(), 1):
        place = folder / f"ask-{name}{f'-{number}' if number > 1 else ''}"
        _write(place, name, launch)
        written.append(place)
    return written


def _write(folder: Path, name: str, launch: MicroKernel) -> None:
    entry = next(item for item in REGISTRY if item.name == name)
    answers = {}
    for alternative in entry.alternatives:
        found = launch_on_machine(launch, Assumptions(**{name: alternative}))
        answers[str(alternative)] = "fault" if found == FAULT else hashlib.sha256(found).hexdigest()
    args, outputs = launch.make()
    table = BufferTable()
    params = [table.describe(argument) for argument in args]
    places = [n for n, a in enumerate(table.arrays) if len(outputs) == 1 and a is outputs[0]]
    if not places:
        raise InputError(f"{name}: expected a kernel with one array to look at, got {len(outputs)}")
    data = {f"before{n}": raw(array) for n, array in enumerate(table.arrays)}
    buffers = [
        {
            "dtype": array.dtype.name,
            "shape": array.shape,
            "bytes": array.nbytes,
            "before_sha256": digest(data[f"before{n}"]),
            "written": False,
            "workspace": False,
        }
        for n, array in enumerate(table.arrays)
    ]
    sizes = {k: triple(v) for k, v in launch.sizes.items() if k != "dynamic_smem"}
    sizes_and_params = {
        "kernel": "ask", **sizes, "dynamic_smem": launch.dynamic_smem, "params": params
    }  # fmt: skip
    save(
        folder, launch.ptx, assemble(launch.ptx).data, data,
        {
            "target": DEFAULT_TARGET.name,
            "launches": [sizes_and_params],
            "buffers": buffers,
            "origin": {"assumption": name, "question": entry.question},
            "question": {
                "name": name, "assumed": str(entry.default), "answers": answers,
                "buffer": places[0],
            },
        },
    )  # fmt: skip

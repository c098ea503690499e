"""Several kernels launched one after the other: what each reads, writes, and leaves to the next.

Buffers are numbered: the program's inputs, its results, then workspaces. A kernel writes the
buffers that it has and that no kernel before it wrote, whole; the others it reads. So a sequence is
a straight-line program of functions from arrays to arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tcir.errors import InputError
from tcir.interp import Outcome, OutputSpec
from tcir.program.memory_image import image_spec

Array = np.ndarray[Any, Any]
RunStep = Callable[[Sequence[int], Sequence[Array], Sequence[OutputSpec]], Outcome]


@dataclass(frozen=True)
class Step:
    """A kernel, the numbers of its buffers, and how to run it: ``run(numbers, inputs, outputs)``.

    views: shape and type in which the kernel has a workspace, by number; default: as bytes.
    """

    name: str
    buffers: tuple[int, ...]
    run: RunStep
    views: Mapping[int, OutputSpec] = field(default_factory=dict)


def run_in_order(
    steps: Sequence[Step],
    inputs: Sequence[Array],
    outputs: Sequence[OutputSpec],
    workspaces: Mapping[int, int],
) -> Outcome:
    """Runs the kernels; `workspaces` are sizes in bytes by number. Counters are sums."""
    known: dict[int, Array] = dict(enumerate(inputs))
    specs = {len(inputs) + n: spec for n, spec in enumerate(outputs)}
    specs |= {n: OutputSpec((size,), np.dtype(np.uint8)) for n, size in workspaces.items()}
    total = Outcome([], "")
    counters: Counter[str] = Counter()
    sites: dict[int, Any] = {}
    for step in steps:
        reads = [n for n in step.buffers if n in known]
        writes = [n for n in step.buffers if n not in known]
        strange = [n for n in writes if n not in specs]
        if strange or not writes:
            raise InputError(
                f"@{step.name}: expected a kernel that writes a result or a workspace which no "
                f"kernel before it wrote, got buffers {list(step.buffers)}, written so far "
                f"{sorted(known)}"
                + (f", and no size for workspace {strange[0]}" if strange else "")
            )
        arrays = [as_view(known[n], step.views.get(n)) for n in reads]
        wanted = [step.views.get(n, specs[n]) if n in workspaces else specs[n] for n in writes]
        outcome = step.run([*reads, *writes], arrays, wanted)
        total.findings += outcome.findings
        total.level = outcome.level
        if outcome.incomplete:
            total.incomplete = outcome.incomplete
            return total
        counters.update(outcome.counters)
        for place, number in enumerate(writes):
            known[number] = outcome.outputs[place]
            if place in outcome.sites:
                sites[number - len(inputs)] = outcome.sites[place]
    missing = [n for n in range(len(outputs)) if len(inputs) + n not in known]
    if missing:
        raise InputError(f"expected a kernel that writes result {missing[0]}, got none")
    total.outputs = [known[len(inputs) + n] for n in range(len(outputs))]
    total.counters = dict(counters)
    total.sites = {n: site for n, site in sites.items() if n < len(outputs)}
    return total


def as_view(array: Array, view: OutputSpec | None) -> Array:
    """The bytes of `array` as the kernel has them; the array itself where sizes disagree.

    Elements of 4 and 6 bits are packed (`tcir.program.memory_image`).
    """
    view = view and image_spec(view)
    if view is None or (array.shape, array.dtype) == (view.shape, view.dtype):
        return array
    if array.nbytes != int(np.prod(view.shape)) * view.dtype.itemsize:
        return array
    return np.ascontiguousarray(array).reshape(-1).view(view.dtype).reshape(view.shape)

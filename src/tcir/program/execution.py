"""Executes PTX kernels on the simulated machine, one kernel or several in sequence.

Buffers are numbered: first the program's inputs, then its results, then the workspaces. A kernel
writes every element of those of its buffers that no earlier kernel wrote, and reads its other
buffers. So a sequence is a straight-line program of functions from arrays to arrays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from tcir.errors import InputError
from tcir.interp import Outcome, OutputSpec
from tcir.program.capacity import check_workspaces
from tcir.program.inputs import poison
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.memory_image import image_spec, in_memory
from tcir.program.workspaces import Workspaces
from tcir.run_options import DEFAULT_OPTIONS, RunOptions

Array = np.ndarray[Any, Any]
RunStep = Callable[[Sequence[int], Sequence[Array], Sequence[OutputSpec]], Outcome]


@dataclass(frozen=True)
class KernelStep:
    """A kernel, the numbers of its buffers, and a function that executes it: ``run(numbers, inputs,
    outputs)``.

    views: shape and type that a workspace has in this kernel, by number of the buffer; default:
    bytes
    """

    name: str
    buffers: tuple[int, ...]
    run: RunStep
    views: Mapping[int, OutputSpec] = field(default_factory=dict)


def run_in_order(
    steps: Sequence[KernelStep],
    inputs: Sequence[Array],
    outputs: Sequence[OutputSpec],
    spaces: Workspaces,
) -> Outcome:
    """Runs the kernels in order; the outcome's counters are summed over the kernels."""
    first = len(inputs) + len(outputs)
    workspaces = dict(enumerate(spaces.sizes, first))
    check_workspaces(workspaces, spaces.arena)
    spaces.check([(step.name, step.buffers) for step in steps], first)
    known: dict[int, Array] = dict(enumerate(inputs))
    specs = {len(inputs) + n: spec for n, spec in enumerate(outputs)}
    specs |= {n: OutputSpec((size,), np.dtype(np.uint8)) for n, size in workspaces.items()}
    known |= {n: poison(spec) for n, spec in specs.items() if 0 in spec.shape}
    total = Outcome([], "none")
    counters: Counter[str] = Counter()
    sites: dict[int, Any] = {}
    ran, sampled = 0, False
    for step in steps:
        reads = [n for n in step.buffers if n in known]
        writes = [n for n in step.buffers if n not in known]
        strange = [n for n in writes if n not in specs]
        if strange or not writes:
            raise InputError(
                f"@{step.name}: expected a kernel that writes a result or a workspace which no "
                f"earlier kernel wrote, got buffers {list(step.buffers)}, written so far "
                f"{sorted(known)}"
                + (f", and no size for workspace {strange[0]}" if strange else "")
            )
        _check_views(step, workspaces)
        arrays = [as_view(known[n], step.views.get(n)) for n in reads]
        wanted = [
            step.views.get(n, specs[n]) if n in workspaces else viewed(specs[n], step.views.get(n))
            for n in writes
        ]
        outcome = step.run([*reads, *writes], arrays, wanted)
        back_from_views(outcome, {p: specs[n] for p, n in enumerate(writes) if n not in workspaces})
        total.findings += outcome.findings
        total.level = outcome.level
        if outcome.incomplete:
            total.incomplete = outcome.incomplete
            return total
        counters.update(outcome.counters)
        total.followers += outcome.followers
        total.together = "; ".join(filter(None, (total.together, outcome.together)))
        total.meets |= outcome.meets
        total.left += outcome.left
        total.whole = "; ".join(filter(None, (total.whole, outcome.whole)))
        ran += outcome.executed or outcome.counters.get("ctas", 0)
        sampled = sampled or outcome.executed > 0
        for place, number in enumerate(writes):
            known[number] = outcome.outputs[place]
            if place in outcome.stored:
                total.stored[number - len(inputs)] = outcome.stored[place]
            if place in outcome.sites:
                sites[number - len(inputs)] = outcome.sites[place]
    missing = [n for n in range(len(outputs)) if len(inputs) + n not in known]
    if missing:
        raise InputError(f"expected a kernel that writes result {missing[0]}, got none")
    total.outputs = [known[len(inputs) + n] for n in range(len(outputs))]
    total.counters = dict(counters) | {"workspaces": spaces.arena}
    total.executed = ran if sampled else 0
    total.sites = {n: site for n, site in sites.items() if n < len(outputs)}
    return total


def _check_views(step: KernelStep, workspaces: Mapping[int, int]) -> None:
    """Raises InputError if a kernel's workspace does not have its size in the program."""
    for number, view in step.views.items():
        if number in workspaces and number in step.buffers:
            image = image_spec(view)
            size = math.prod(image.shape) * image.dtype.itemsize
            if size != workspaces[number]:
                raise InputError(
                    f"@{step.name}: expected workspace {number} of {size} bytes "
                    f"({view.dtype.name}{list(view.shape)}), got {workspaces[number]} bytes in "
                    "tc.workspaces"
                )


def as_view(array: Array, view: OutputSpec | None) -> Array:
    """Returns the bytes of `array` in the shape and type of the kernel's view, or the array itself
    if the sizes differ.

    Elements of 4 and 6 bits are packed (`tcir.program.memory_image`).
    """
    view = view and image_spec(view)
    if view is None or (array.shape, array.dtype) == (view.shape, view.dtype):
        return array
    if array.nbytes != int(np.prod(view.shape)) * view.dtype.itemsize:
        return array
    return np.ascontiguousarray(array).reshape(-1).view(view.dtype).reshape(view.shape)


def viewed(spec: OutputSpec, view: OutputSpec | None) -> OutputSpec:
    """Returns the spec of a result with the shape of the kernel's view, if both have the same size
    and type.
    """
    view = view and image_spec(view)
    if view is None or math.prod(view.shape) != math.prod(spec.shape) or view.dtype != spec.dtype:
        return spec
    return view


def back_from_views(outcome: Outcome, specs: Mapping[int, OutputSpec]) -> None:
    """Restores the program's shapes of the results. Afterwards, the outcome's `sites` map indices
    in these shapes to indices in the kernel's shapes.
    """
    for place, spec in specs.items():
        if place >= len(outcome.outputs) or outcome.outputs[place].shape == spec.shape:
            continue
        inside = outcome.outputs[place].shape
        outcome.outputs[place] = as_view(outcome.outputs[place], spec)
        site = outcome.sites.get(place)
        if site is not None:
            outcome.sites = {**outcome.sites, place: _of_view(site, spec.shape, inside)}


def _of_view(site: Any, shape: tuple[int, ...], inside: tuple[int, ...]) -> Any:
    def words(index: tuple[int, ...]) -> Any:
        number = int(np.ravel_multi_index(index, shape))
        return site(tuple(int(n) for n in np.unravel_index(number, inside)))

    return words


def run_kernel(
    ptx: str,
    launch: Launch,
    inputs: Sequence[np.ndarray[Any, Any]],
    outputs: Iterable[OutputSpec],
    options: RunOptions = DEFAULT_OPTIONS,
    *,
    whole: Collection[int] = (),
    variables: dict[str, Array] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Executes PTX text on the simulated machine over copies of `inputs`; results start as poison.

    A changed byte of an input is an error finding. Results in `whole` are read by another kernel:
    an unwritten byte of such a result is an error finding, unless the launch is one that leaves
    elements unwritten. variables, progress: see `run_ptx`.
    Raises `tcir.machine.MachineError` on an illegal operation, which ends the run.
    """
    from tcir.debug import LastWriters
    from tcir.run import run_ptx

    if whole and options.sample is not None:
        options = replace(options, sample=None)
        others = f"@{launch.title}: another launch reads its results"
    else:
        others = ""
    writers = LastWriters()
    results = [poison(spec) for spec in outputs]
    copies = [np.array(a, order="C") for a in inputs]
    report = run_ptx(
        ptx,
        entry=launch.name,
        grid=launch.grid,
        block=launch.block,
        cluster=launch.cluster,
        dynamic_smem=launch.dynamic_smem,
        programmatic=launch.programmatic,
        args=launch.arguments(copies, results),
        observer=writers,
        variables=variables,
        progress=progress,
        **vars(options),
    )
    if report.errors:
        raise report.errors[0]
    sizes = {"instructions": report.instructions, "ctas": math.prod(launch.grid)}
    return Outcome(
        outputs=results,
        level="ptx",
        findings=[
            *report.findings,
            *_holes(launch.title, writers, results, () if launch.unwritten else whole),
            *overwritten(launch.title, inputs, copies, lambda n: writers.finder(copies[n])),
        ],
        counters=report.counters | sizes,
        incomplete=[str(item) for item in report.incomplete],
        sites={n: writers.finder(result) for n, result in enumerate(results)},
        followers=report.lockstep,
        executed=report.executed,
        stored=_stored(writers, results) if report.executed else {},
        whole=f"@{launch.title}: {report.whole}" if report.whole else others,
        together=f"@{launch.title}: {report.together}" if report.together else "",
        meets=report.meets,
        left=report.left,
    )


def _stored(writers: Any, results: Sequence[Array]) -> dict[int, Array]:
    """Mask of the elements of each result that were stored to, at least in part."""
    return {
        n: writers.stored(result).reshape(-1, result.itemsize).any(axis=1)
        for n, result in enumerate(results)
    }


def _holes(
    name: str, writers: Any, results: Sequence[np.ndarray[Any, Any]], whole: Collection[int]
) -> list[Any]:
    from tcir.machine import Finding

    holes = [(n, writers.unwritten(results[n])) for n in whole]
    return [
        Finding(
            "error",
            "workspace-never-written",
            f"@{name}",
            f"workspace of {results[n].nbytes} bytes",
            f"a store to {missing} of them",
        )
        for n, missing in holes
        if missing
    ]


def overwritten(
    name: str,
    inputs: Sequence[Array],
    after: Sequence[Array],
    writer: Callable[[int], Callable[[tuple[int, ...]], str]],
) -> list[Any]:
    """Returns an error finding for each read-only buffer that the kernel `name` changed.

    inputs, after: the buffers before and after the run
    writer: for a buffer's number, returns a function that finds the last writer of an element
    """
    from tcir.machine import Finding

    findings = []
    for n, (a, b) in enumerate(zip(inputs, after, strict=True)):
        before = np.ascontiguousarray(a).reshape(-1).view(np.uint8)
        changed = np.flatnonzero(before != b.reshape(-1).view(np.uint8))
        if not changed.size:
            continue
        element = np.unravel_index(changed[0] // a.itemsize, a.shape) if a.ndim else ()
        index = tuple(int(i) for i in element)
        findings.append(
            Finding(
                "error",
                "input-overwritten",
                writer(n)(index),
                f"buffer {n} of @{name}, element [{', '.join(map(str, index))}] (byte "
                f"{changed[0]}): expected {a[index]}, got {b[index]}",
                f"a buffer that the kernel only reads must keep its bytes; {changed.size} of "
                f"{before.size} changed",
            )
        )
    return findings


def run_sequence(
    ptx: str,
    sequence: LaunchSequence,
    inputs: Sequence[np.ndarray[Any, Any]],
    outputs: Iterable[OutputSpec],
    options: RunOptions = DEFAULT_OPTIONS,
    variables: dict[str, Array] | None = None,
    progress: Callable[[int, int], None] | None = None,
    instead: Callable[[Launch], RunStep | None] = lambda _: None,
) -> Outcome:
    """Executes the kernels of PTX text one after the other, each as `run_kernel` does.

    variables: the module's variables by name, as an earlier execution left them; missing variables
               are added
    progress:  called with the number of finished CTAs of all launches, and their total
    instead:   for one launch of several, returns a function that computes it without the machine;
               None: the launch is executed
    """
    variables = {} if variables is None else variables
    inputs, results = [*inputs, *sequence.constants], list(outputs)
    if len(sequence.launches) == 1 and not sequence.workspaces.sizes:
        only = sequence.only
        return in_memory(
            results,
            lambda specs: run_kernel(
                ptx, only, inputs, specs, options, variables=variables, progress=progress
            ),
        )
    told = iter(_of_all(sequence, progress))
    first = len(inputs) + len(results)

    def step(launch: Launch) -> KernelStep:
        def run(numbers: Sequence[int], arrays: Sequence[Any], wanted: Sequence[OutputSpec]) -> Any:
            writes = numbers[len(arrays) :]
            whole = [place for place, n in enumerate(writes) if n >= first]
            local = launch.renumbered(numbers)
            return run_kernel(
                ptx, local, arrays, wanted, options, whole=whole, variables=variables,
                progress=next(told),
            )  # fmt: skip

        return KernelStep(launch.title, launch.buffers, instead(launch) or run)

    steps = [step(launch) for launch in sequence.launches]
    return in_memory(results, lambda specs: run_in_order(steps, inputs, specs, sequence.workspaces))


def _of_all(
    sequence: LaunchSequence, progress: Callable[[int, int], None] | None
) -> Iterator[Callable[[int, int], None] | None]:
    """Yields a progress function per launch, which counts the launch's CTAs among those of all
    launches."""
    *before, total = accumulate((math.prod(each.grid) for each in sequence.launches), initial=0)
    for done in before:
        yield None if progress is None else partial(_tell, progress, done, total)


def _tell(progress: Callable[[int, int], None], before: int, total: int, done: int, _: int) -> None:
    progress(before + done, total)

"""Modelled time of a compiled program: the cost by which schedules of convolutions are chosen,
applied to what the machine counts.

The rules are those of `tcir.passes.conv.cost`, which gets its counts from shapes. Here a sample of
each launch's CTAs is executed and the counters are scaled to the grid, so any kernel has a time.
Nothing was measured on a GPU. Depth of pipelines is not seen: of two kernels that differ in it
alone, the times are equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tcir.errors import IncompleteError
from tcir.interp import OutputSpec
from tcir.machine.sample import Sample
from tcir.passes.build.limits import ceil_div
from tcir.passes.conv.cost import CTA_LATENCY, TMEM_COLUMNS_PER_CYCLE
from tcir.program.inputs import poison
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.launch_table import launch_table
from tcir.program.memory_image import image_spec
from tcir.program.signature import Signature
from tcir.run import run_ptx
from tcir.run_options import RunOptions
from tcir.target import RATES, TARGETS

_LANES = 4 * 32
_REGISTER = 4
_SIMT_PRODUCTS = 128
"""Multiplications of an SM's CUDA cores in a cycle (CUDA C++ Programming Guide)."""


@dataclass(frozen=True)
class Modelled:
    """Of a program.

    microseconds: of all launches, one after the other; bound: what limits the longest
    bytes: that all CTAs move between global memory and the SMs
    """

    microseconds: float
    bound: str
    bytes: int


def modelled_time(
    ptx: str, launches: LaunchSequence, signature: Signature, target: str
) -> Modelled | None:
    """None where a target has no rates."""
    if target not in RATES:
        return None
    rows = launch_table(launches, signature, {}).rows
    counted = _counted(ptx, launches, signature)
    each = [
        _launch(counts, launch, sum(row.bytes), target)
        for launch, row, counts in zip(launches.launches, rows, counted, strict=True)
    ]
    longest = max(each, key=lambda one: one.microseconds, default=Modelled(0.0, "", 0))
    return Modelled(
        sum(one.microseconds for one in each), longest.bound, sum(one.bytes for one in each)
    )


def _counted(ptx: str, launches: LaunchSequence, signature: Signature) -> list[Mapping[str, float]]:
    """The machine's counters of each launch, scaled from the CTAs that were executed."""
    inputs = [_zeros(spec) for spec in signature.inputs]
    results = [poison(image_spec(spec)) for spec in signature.outputs]
    spaces = [np.zeros(size, np.uint8) for size in launches.workspaces.sizes]
    first = len(inputs) + len(launches.constants)
    arrays = [*inputs, *launches.constants, *results, *spaces]
    options = RunOptions(hazards="off", numerics="fast", sample=Sample(0.0, 0))
    found: list[Mapping[str, float]] = []
    for launch, arguments in launches.calls(arrays, range(first, len(arrays))):
        report = run_ptx(
            ptx,
            entry=launch.name,
            grid=launch.grid,
            block=launch.block,
            cluster=launch.cluster,
            dynamic_smem=launch.dynamic_smem,
            programmatic=launch.programmatic,
            args=arguments,
            **vars(options),
        )
        if report.incomplete:
            raise IncompleteError(f"@{launch.name}: without a rule: {report.incomplete[0]}")
        if report.errors:
            raise report.errors[0]
        ctas = math.prod(launch.grid)
        share = ctas / (report.executed or ctas)
        found.append({name: count * share for name, count in report.counters.items()})
    return found


def _zeros(spec: OutputSpec) -> np.ndarray:
    image = image_spec(spec)
    return np.zeros(image.shape, image.dtype)


def _launch(
    counts: Mapping[str, float], launch: Launch, unique_bytes: int, target: str
) -> Modelled:
    """The parts of `tcir.passes.conv.cost.Cost`, each CTA with its share of the counts."""
    rates, ctas = RATES[target], math.prod(launch.grid)
    part = {name: count / ctas for name, count in counts.items()}
    loaded = part["global_to_shared_read"] + part["global_load"]
    stored = part["shared_to_global"] + part["global_store"]
    port = part["shared_to_tensor"] + part["shared_to_tmem"] + part["global_to_shared"]
    main = {
        "tensor": part["tensor_cycles"] + part["shared_to_tmem"] / rates.smem_bytes_per_cycle,
        "shared": (port + part["shared_load"] + part["shared_store"]) / rates.smem_bytes_per_cycle,
        "l2": loaded / rates.l2_bytes_per_cycle,
        "cuda cores": part["simt_products"] / _SIMT_PRODUCTS,
    }
    tmem = (part["tmem_load"] + part["tmem_store"]) / (_LANES * _REGISTER * TMEM_COLUMNS_PER_CYCLE)
    behind = tmem + stored / rates.l2_bytes_per_cycle + CTA_LATENCY
    bound = max(main, key=lambda name: main[name])
    waves = ceil_div(ctas, TARGETS[target].sms)
    busy = waves * (main[bound] + behind) / (rates.clock_ghz * 1000)
    hbm = unique_bytes / rates.hbm_bytes_per_ns / 1000
    if main[bound] <= behind:
        bound = "latency"
    return Modelled(max(busy, hbm), "hbm" if hbm > busy else bound, round(ctas * (loaded + stored)))

"""Replacements for benchmarks in Triton scripts: they return modelled times instead of measured
ones, and profile nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import ModuleType
from weakref import WeakKeyDictionary

import triton.profiler
import triton.testing
from triton.runtime.autotuner import Autotuner

from tcir.doors.launches import Launches

StandIn = tuple[object, str, Callable[..., object]]
"""An object, the name of its attribute, and the replacement for the attribute."""
VIEWER = "triton.profiler.viewer"
TIMERS = {"do_bench", "do_bench_cudagraph", "do_bench_proton", "do_bench_cudagraph_proton"}
"""Functions of `triton.testing` that time a call; older versions of Triton have fewer."""


def stand_ins(launches: Launches, autotune: str) -> Iterator[StandIn]:
    """Replacements for functions of `triton.testing`, of the profiler and of autotuners
    (`SimulatedDriver`).
    """

    def modelled(
        call: Callable[[], object],
        *_: object,
        quantiles: list[float] | None = None,
        return_mode: str = "mean",
        **__: object,
    ) -> float | list[float]:
        launches.say("do_bench: times are modelled, of a sample of each launch; none is measured")
        time = launches.modelled_ms(call)
        if quantiles is not None:
            return [time] * len(quantiles)
        return [time] if return_mode == "all" else time

    def no_report(*_: object, **__: object) -> None:
        launches.say("perf_report: left out, as its sizes are those of a GPU")

    def no_profile(*_: object, **__: object) -> None:
        launches.say("triton.profiler: left out, as nothing is timed")

    if autotune == "first":
        yield Autotuner, "_bench", first_that_fits(Autotuner._bench)
    for name in vars(triton.testing).keys() & TIMERS:
        yield triton.testing, name, modelled
    yield triton.testing.Mark, "run", no_report
    for name in ("start", "activate", "deactivate", "finalize"):
        yield triton.profiler, name, no_profile


def first_that_fits(bench: Callable[..., list[float]]) -> Callable[..., list[float]]:
    """Replacement for `Autotuner._bench`. It chooses the first configuration that fits, and does
    not compile the configurations after it.
    """
    found: WeakKeyDictionary[Autotuner, object] = WeakKeyDictionary()

    def timed(tuner: Autotuner, *args: object, **named: object) -> list[float]:
        if found.get(tuner) is tuner.nargs:  # those of this call of the kernel
            return [math.inf] * 3
        times = bench(tuner, *args, **named)
        if times[0] < math.inf:
            found[tuner] = tuner.nargs
        return times

    return timed


def viewer() -> ModuleType:
    """Replacement for Triton's profile viewer, which needs a profile and packages to read it."""
    module = ModuleType(VIEWER)
    module.__dict__.update(parse=lambda *_: (None, None), print_tree=lambda *_: None)
    return module

"""Times of launches by CUDA events."""

from __future__ import annotations

from collections.abc import Callable

from tcir.errors import InputError
from tcir.runtime.driver import call
from tcir.runtime.module import synchronize


def measure(
    launch: Callable[[], object], *, repeats: int = 20, warmup: int = 3, stream: int = 0
) -> list[float]:
    """Returns, for each of `repeats` calls of `launch`, the milliseconds between an event before
    and an event after the call.

    `launch` must put its work on `stream` (a handle; 0 is the legacy default stream) of the current
    device. `warmup` calls come first and are not measured.
    """
    if repeats < 1 or warmup < 0:
        raise InputError(f"expected repeats >= 1 and warmup >= 0, got {repeats} and {warmup}")
    for _ in range(warmup):
        launch()
    synchronize(stream)
    events = [(call("cuEventCreate", 0), call("cuEventCreate", 0)) for _ in range(repeats)]
    try:
        for start, stop in events:
            call("cuEventRecord", start, stream)
            launch()
            call("cuEventRecord", stop, stream)
        synchronize(stream)
        return [float(call("cuEventElapsedTime", start, stop)) for start, stop in events]
    finally:
        for pair in events:
            for event in pair:
                call("cuEventDestroy", event)

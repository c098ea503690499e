"""Clock and power of the GPU while a kernel runs back to back: what limits a sustained rate."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

INTERVAL = 0.02
LAUNCHES = 20
"""Launches in one graph, so that no time passes between kernels."""
SETTLE = 0.4
"""Seconds before the first sample: the power limit acts with a delay."""


@dataclass(frozen=True)
class Held:
    """Medians while launches ran back to back."""

    milliseconds: float
    mhz: float
    watts: float

    def __str__(self) -> str:
        return f"{self.mhz:5.0f} MHz {self.watts:4.0f} W"


def held(torch: Any, launch: Callable[[], Any], seconds: float = 1.2) -> Held:
    """Runs `launch` back to back for about `seconds`; needs `pynvml` (NVIDIA's nvidia-ml-py)."""
    import pynvml

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(torch.cuda.current_device())
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            launch()
    graph.replay()
    start.record()
    graph.replay()
    stop.record()
    torch.cuda.synchronize()
    count = max(round(seconds * 1e3 / start.elapsed_time(stop)), 10)
    clocks: list[int] = []
    power: list[float] = []
    done = threading.Event()

    def sample() -> None:
        time.sleep(SETTLE)
        while not done.wait(INTERVAL):
            clocks.append(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM))
            power.append(pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000)

    sampler = threading.Thread(target=sample)
    sampler.start()
    warm = count // 3
    for number in range(count):
        if number == warm:
            start.record()
        graph.replay()
    stop.record()
    torch.cuda.synchronize()
    done.set()
    sampler.join()
    if not clocks:
        raise RuntimeError("expected samples of the clock, got none: run for longer")
    each = start.elapsed_time(stop) / (count - warm) / LAUNCHES
    return Held(each, statistics.median(clocks), statistics.median(power))

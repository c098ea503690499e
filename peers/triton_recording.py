"""Runs the host code of libraries of Triton and Gluon kernels without a GPU, on tensors of the CPU.

Triton compiles as it does for a GPU of compute capability 10.0 and launches nothing: what it would
have launched is kept as `recording.py` keeps it. Autotuners take their first configuration. It
runs in the libraries' environments.
"""

from __future__ import annotations

import base64
import functools
import json
import struct
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import CompiledKernel
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner

#: How `struct` packs a scalar by its type in Triton's signature.
PACKED = {"i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H"}
PACKED |= {"u32": "I", "u64": "Q", "fp32": "f", "fp64": "d"}
PROPERTIES = {"multiprocessor_count": 4, "max_shared_mem": 232448, "warpSize": 32}
NULL = ["bytes", bytes(8).hex()]


def driver_without_gpu() -> Any:
    return SimpleNamespace(
        get_current_target=lambda: GPUTarget("cuda", 100, 32),
        get_active_torch_device=lambda: torch.device("cpu"),
        get_current_device=lambda: 0,
        get_current_stream=lambda _device=0: 0,
        get_benchmarker=lambda: None,
        utils=SimpleNamespace(get_device_properties=lambda _device: PROPERTIES),
    )


class Recorder:
    """Launches in order: (PTX, what `peers.recorded` reads). Buffers are numbered as first met."""

    def __init__(self) -> None:
        self.launches: list[tuple[str, dict[str, Any]]] = []
        self.storages: list[torch.UntypedStorage] = []

    def place(self, tensor: torch.Tensor) -> list[Any]:
        """["buffer", index, offset]."""
        storage = tensor.untyped_storage()
        at = [s.data_ptr() for s in self.storages]
        if storage.data_ptr() not in at:
            self.storages.append(storage)
            at.append(storage.data_ptr())
        return ["buffer", at.index(storage.data_ptr()), tensor.data_ptr() - storage.data_ptr()]

    def part(self, kind: str, value: Any) -> list[Any]:
        if isinstance(value, torch.Tensor):
            return self.place(value)
        return ["bytes", struct.pack("<" + PACKED[kind], value).hex()]

    def launch(self, kernel: Any, *launched: Any) -> None:
        """`launched`: the grid, six things about the launch, the kernel's arguments."""
        kinds, meta = kernel.src.signature.values(), kernel.metadata
        arguments = zip(kinds, launched[9:], strict=True)
        params = [[self.part(kind, v)] for kind, v in arguments if kind != "constexpr"]
        contents = [base64.b64encode(bytes(s)).decode() for s in self.storages]
        record = {
            "entry": meta.name,
            "grid": list(launched[:3]),
            "block": [32 * meta.num_warps, 1, 1],
            "cluster": [meta.num_ctas, 1, 1],
            "dynamic_smem": meta.shared,
            "params": [*params, [NULL], [NULL]],  # two pointers to scratch memory, not needed here
            "buffers": [len(s) for s in self.storages],
            "contents": dict(enumerate(contents)),
        }
        self.launches.append((kernel.asm["ptx"], record))


def record(kernels: dict[str, Callable[[], Any]], out: Path, names: list[str]) -> None:
    """Calls the functions (all, without names); writes the last launch of each into `out`."""
    driver.set_active(driver_without_gpu())
    CompiledKernel.launch_metadata = lambda *_: None
    prune = Autotuner.prune_configs
    Autotuner.prune_configs = lambda self, named: prune(self, named)[:1]
    for name in names or kernels:
        recorder = Recorder()
        CompiledKernel.run = property(
            lambda kernel, r=recorder: functools.partial(r.launch, kernel)
        )
        torch.manual_seed(1)
        try:
            kernels[name]()
            text, launch = recorder.launches[-1]
        except Exception as error:
            traceback.print_exc()
            (out / f"{name}.json").write_text(json.dumps({"error": f"{error!r}"[:300]}))
            continue
        (out / f"{name}.ptx").write_text(text)
        (out / f"{name}.json").write_text(json.dumps(launch))

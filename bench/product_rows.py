"""Helpers of the benches of products on a Hopper GPU: kernels in a folder, launches, rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from matmul_warp import Bench, Rate, as_tuples

FILE = "kernels.json"
HEAD = f"{'rest':>7} {'of it':>6} {'held':>7} {'of it':>6} {'error':>8} clock and power, held"


def keep(folder: Path, stem: str, kernel: Any, /, **words: Any) -> dict[str, Any]:
    """Writes the kernel's cubin and returns its entry for `FILE`: `words`, the cubin's file, the
    launch."""
    file = f"{stem}.cubin"
    (folder / file).write_bytes(kernel.cubin)
    print(f"{file}: grid {kernel.launch_config.grid}, {words}")
    return {**words, "file": file, "launch": asdict(kernel.launch_config)}


def write(folder: Path, kernels: list[dict[str, Any]]) -> None:
    """Writes all entries to `FILE`."""
    (folder / FILE).write_text(json.dumps(kernels, indent=1) + "\n")


def read(folder: Path) -> Any:
    """The entries that `write` wrote."""
    return as_tuples(json.loads((folder / FILE).read_text()))


def launcher(folder: Path, kernel: Any, tensors: Any, gpu: Any) -> Callable[[], None]:
    """A launch of an entry's kernel on PyTorch's tensors and current stream."""
    import torch

    from tcir.program.launch import Launch
    from tcir.runtime.launching import launch_pointers

    cubin, sizes = (folder / kernel["file"]).read_bytes(), Launch(**kernel["launch"])
    pointers = [tensor.data_ptr() for tensor in tensors]

    def launch() -> None:
        launch_pointers(sizes, cubin, pointers, gpu, torch.cuda.current_stream().cuda_stream)

    return launch


def as_f32(result: Any) -> Any:
    """Converts a tensor to f32."""
    return result.float()


@dataclass
class Rows:
    """Rates of launches that compute the same result, relative to the first launch's.
    name: prefix of every row; flops: of a launch; out: the result, a tensor
    expected: the expected result in f32; of: converts a result to f32; wrong: rows with too large
        an error
    """

    bench: Bench
    name: str
    flops: float
    out: Any
    expected: Any
    of: Callable[[Any], Any] = as_f32
    wrong: int = field(default=0, init=False)
    first: Rate | None = field(default=None, init=False)

    def measure(self, name: str, launch: Callable[[], Any], most: float) -> None:
        """Measures a launch, which writes `out` or returns the result, and prints its row.
        most: largest root-mean-square error of a correct result
        """
        self.out.fill_(float("nan"))
        rate = self.bench.rate(name, launch, self.flops)
        self.first = self.first or rate
        made = launch()
        result = self.of(self.out if made is None else made)
        error = float((result - self.expected).norm() / self.expected.norm())
        print(
            f"{self.name:24} {name:24} {rate.rest:7.1f} {rate.rest / self.first.rest:6.3f} "
            f"{rate.lasting:7.1f} {rate.lasting / self.first.lasting:6.3f} {error:8.1e} {rate.gpu}",
            flush=True,
        )
        if not error < most:
            self.wrong += 1
            print(f"WRONG: {name}: error {error:g}")

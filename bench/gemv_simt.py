"""gemv-simt on a GPU: bits against the interpreter, GB/s beside a device copy of the same run.

    python bench/gemv_simt.py --prepare build/gemv     # here: needs MLIR and ptxas
    python bench/gemv_simt.py --run build/gemv         # there: needs cuda-python, numpy, ml_dtypes

Inputs are exact (every sum is an integer times a power of two below 2^24), so the expected bits are
those of any order of sums. GB/s counts A, b, their scales and the result once; inputs rotate
through copies that exceed the level-2 cache. Exit status of --run: 0 all bits are equal, 1 not.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

SHAPES = ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))
OPTIONS = tuple({"rows": rows, "warps": warps} for rows in (1, 2, 4) for warps in (4, 8))
CODES = np.array([2, 4, 5, 10, 12, 13], np.uint8)
"""e2m1: 1, 2, 3 and their negatives."""
SCALES = np.array([0x30, 0x38, 0x40, 0x44], np.uint8)
"""ue4m3: 0.5, 1, 2, 3."""
IN_FLIGHT = 256 << 20
"""Bytes of inputs that are rotated through."""
PER_EVENT = 20


def program(m: int, k: int, batch: int) -> str:
    """The op on one shape."""
    lead = f"{batch}x"
    a, sa = f"tensor<{lead}{m}x{k}xf4E2M1FN>", f"tensor<{lead}{m}x{k // 16}xf8E4M3FN>"
    b, sb = f"tensor<{lead}{k}xf4E2M1FN>", f"tensor<{lead}{k // 16}xf8E4M3FN>"
    c = f"tensor<{lead}{m}xf16>"
    return f"""
func.func @gemv(%a: {a}, %sa: {sa}, %b: {b}, %sb: {sb}) -> {c} {{
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {{block = 16 : i64,
      a_scale_layout = "row_major", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}} : ({a}, {sa}, {b}, {sb}) -> {c}
  return %c : {c}
}}"""


def codes(m: int, k: int, batch: int, seed: int) -> list[np.ndarray]:
    """Element codes, one a byte, and scale codes: A, its scales, b, its scales."""
    rng = np.random.default_rng(seed)
    shapes = ((batch, m, k), (batch, m, k // 16), (batch, k), (batch, k // 16))
    return [rng.choice((CODES, SCALES)[n % 2], shape) for n, shape in enumerate(shapes)]


def packed(elements: np.ndarray) -> np.ndarray:
    """Two codes to a byte, the even k in the low half."""
    return elements[..., ::2] | elements[..., 1::2] << 4


def prepare(folder: Path) -> None:
    """Cubins for sm_90, launches, and the result of the tensor rules."""
    import ml_dtypes

    import tcir
    from tcir.interp.tensor import execute
    from tcir.source import load_module, mlir_context

    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    for shape in SHAPES:
        text, raw = program(*shape), codes(*shape, seed=0)
        kinds = (ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn)
        inputs = [array.view(kinds[n % 2]) for n, array in enumerate(raw)]
        name = "x".join(map(str, shape))
        for number, options in enumerate(OPTIONS):
            kernel = tcir.compile(text, "gemv-simt", target="sm_90", **options)
            (folder / f"{name}_{number}.cubin").write_bytes(kernel.cubin)
            launch = asdict(kernel.launch_config)
            cases.append({"shape": shape, "options": options, "launch": launch,
                          "cubin": f"{name}_{number}.cubin", "want": f"{name}.npy"})  # fmt: skip
        with mlir_context() as context:
            module = load_module(text, context)
            (want,) = execute(module, "gemv", inputs, kernel.signature.outputs).outputs
        np.save(folder / f"{name}.npy", want)
        print(f"{name}: {len(OPTIONS)} kernels, expected |c| up to {np.abs(want).max()}")
    (folder / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")


class Gpu:
    """Timing by events; what is timed queues up behind a copy, so the host does not count."""

    def __init__(self, repeats: int) -> None:
        from tcir import runtime
        from tcir.runtime.driver import call

        self.runtime, self.call, self.repeats = runtime, call, repeats
        self.on = runtime.device()
        self.blocker = [runtime.empty((4 << 30,), np.uint8) for _ in range(2)]

    def microseconds(self, launches: list[Any]) -> float:
        """The median over repeats of a launch's time, `PER_EVENT` in a row, in turn."""
        call, times = self.call, []
        start, stop = call("cuEventCreate", 0), call("cuEventCreate", 0)
        for repeat in range(self.repeats + 1):
            a, b = self.blocker
            call("cuMemcpyDtoDAsync", a.pointer, b.pointer, a.nbytes, 0)
            call("cuEventRecord", start, 0)
            for n in range(PER_EVENT):
                launches[n % len(launches)]()
            call("cuEventRecord", stop, 0)
            self.runtime.synchronize()
            if repeat:
                times.append(float(call("cuEventElapsedTime", start, stop)) * 1e3 / PER_EVENT)
        return float(np.median(times))

    def copy_gb_per_s(self, nbytes: int) -> float:
        """Bytes read plus written by device copies of that size, in turn over `IN_FLIGHT` bytes."""
        count = max(2, -(-IN_FLIGHT // nbytes))
        pool = [self.runtime.empty((nbytes,), np.uint8) for _ in range(2 * count)]
        pairs = list(zip(pool[::2], pool[1::2], strict=True))
        copies = [
            partial(self.call, "cuMemcpyDtoDAsync", a.pointer, b.pointer, nbytes, 0)
            for a, b in pairs
        ]
        return 2 * nbytes / 1e3 / self.microseconds(copies)


def run(folder: Path, repeats: int) -> int:
    """All cases; 1 when bits differ."""
    from tcir.launch import Launch
    from tcir.runtime.kernel import launch_pointers

    gpu = Gpu(repeats)
    wrong = 0
    print(f"{gpu.on}; GB/s of the copy: read plus write")
    for case in json.loads((folder / "cases.json").read_text()):
        shape, given = tuple(case["shape"]), case["launch"]
        launch = Launch(given["name"], tuple(given["grid"]), tuple(given["block"]),
                        given["dynamic_smem"], tuple(given["params"]))  # fmt: skip
        raw, want = codes(*shape, seed=0), np.load(folder / case["want"])
        images = [packed(array) if n % 2 == 0 else array for n, array in enumerate(raw)]
        nbytes = sum(image.nbytes for image in images) + want.nbytes
        sets = [
            [*map(gpu.runtime.to_device, images), gpu.runtime.empty(want.shape, np.float16)]
            for _ in range(max(2, -(-IN_FLIGHT // nbytes)))
        ]
        cubin = (folder / case["cubin"]).read_bytes()
        calls = [
            partial(launch_pointers, launch, cubin, [b.pointer for b in buffers], gpu.on)
            for buffers in sets
        ]
        time = gpu.microseconds(calls)
        equal = all(
            (buffers[-1].numpy().view(np.uint16) == want.view(np.uint16)).all() for buffers in sets
        )
        wrong += not equal
        rate, copy = nbytes / 1e3 / time, gpu.copy_gb_per_s(nbytes // 2)
        print(
            f"{shape!s:18} {case['options']}: {'equal' if equal else 'DIFFERENT'}, "
            f"{nbytes / 1e6:.1f} MB, {time:.1f} us, {rate:.0f} GB/s, copy {copy:.0f} GB/s "
            f"({rate / copy:.2f} of it)"
        )
    return 1 if wrong else 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    if options.prepare:
        prepare(options.prepare)
        return 0
    if options.run:
        return run(options.run, options.repeats)
    parser.error("expected --prepare DIR or --run DIR")


if __name__ == "__main__":
    sys.exit(main())

"""gemv-simt on a GPU: bits against the interpreter, GB/s against a device copy of the same run.

    python bench/gemv_simt.py --prepare build/gemv     # here: needs MLIR and ptxas
    python bench/gemv_simt.py --run build/gemv         # there: needs cuda-python, numpy, ml_dtypes

Inputs are all codes of e2m1 and scales of many magnitudes, so f32 sums are rounded and the bits
show their order; the expected ones come from interpreting the PTX at full size. GB/s
counts A, b, their scales and the result once; inputs rotate through copies that exceed the level-2
cache.
Exit status: 0 all bits are equal (--prepare: to those that an H200 gave), 1 not.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

SHAPES = ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))
SILICON = dict(
    zip(SHAPES, ("0facf61c33f16cce", "f4be497d705cf8b5", "7133f82fd9ef3e89"), strict=True)
)
"""Digests of an NVIDIA H200's results, equal for all options (docs/explanation/gemv.md)."""
OPTIONS: tuple[dict[str, Any], ...] = tuple(
    {"rows": rows, "warps": warps} for rows in (1, 2, 4) for warps in (4, 8)
)
CODES = np.arange(16, dtype=np.uint8)
"""All codes of e2m1."""
SCALES = np.arange(0x20, 0x50, dtype=np.uint8)
"""Scales of ue4m3 from 0.125 to 7.5."""
IN_FLIGHT = 256 << 20
"""Bytes of inputs through which launches rotate."""
PER_EVENT = 20


def program(m: int, k: int, batch: int) -> str:
    """The program for one shape."""
    lead = f"{batch}x"
    a, sa = f"tensor<{lead}{m}x{k}xf4E2M1FN>", f"tensor<{lead}{m}x{k // 16}xf8E4M3FN>"
    b, sb = f"tensor<{lead}{k}xf4E2M1FN>", f"tensor<{lead}{k // 16}xf8E4M3FN>"
    c = f"tensor<{lead}{m}xf32>"
    return f"""
func.func @gemv(%a: {a}, %sa: {sa}, %b: {b}, %sb: {sb}) -> {c} {{
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {{block = 16 : i64,
      a_scale_layout = "row_major", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}} : ({a}, {sa}, {b}, {sb}) -> {c}
  return %c : {c}
}}"""


@lru_cache(maxsize=1)
def codes(m: int, k: int, batch: int, seed: int) -> list[np.ndarray]:
    """Returns element codes, one per byte, and scale codes: A, its scales, b, its scales."""
    rng = np.random.default_rng(seed)
    shapes = ((batch, m, k), (batch, m, k // 16), (batch, k), (batch, k // 16))
    return [rng.choice((CODES, SCALES)[n % 2], shape) for n, shape in enumerate(shapes)]


def packed(elements: np.ndarray) -> np.ndarray:
    """Packs two codes into a byte, the even k in the low half."""
    return elements[..., ::2] | elements[..., 1::2] << 4


def interpreted(kernel: Any, raw: list[np.ndarray]) -> np.ndarray:
    """The interpreter's result for the kernel's PTX."""
    want = np.zeros(kernel.signature.outputs[0].shape, np.float32)
    images = [packed(array) if n % 2 == 0 else array for n, array in enumerate(raw)]
    kernel(*(image.view(spec.dtype) if n % 2 else image.view(np.int8)
             for n, (image, spec) in enumerate(zip(images, kernel.signature.inputs, strict=True))),
           want, hazards="off")  # fmt: skip
    return want


def in_float64(raw: list[np.ndarray]) -> np.ndarray:
    """The products in float64, row by row."""
    import ml_dtypes

    values = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    a, sa, b, sb = raw
    scales = [s.view(ml_dtypes.float8_e4m3fn).astype(np.float64) for s in (sa, sb)]
    vector = values[b] * np.repeat(scales[1], 16, -1)
    rows = [
        (values[a[:, row]] * np.repeat(scales[0][:, row], 16, -1) * vector).sum(-1)
        for row in range(a.shape[1])
    ]
    return np.stack(rows, axis=-1)


def prepare(folder: Path) -> int:
    """Writes cubins for sm_90 and launches, then each shape's result of the interpreter. Returns 1
    if it is not the H200's."""
    import tcir

    folder.mkdir(parents=True, exist_ok=True)
    cases, kernels = [], {}
    for shape in SHAPES:
        name = "x".join(map(str, shape))
        for number, options in enumerate(OPTIONS):
            kernel = tcir.compile(program(*shape), "gemv-simt", target="sm_90", **options)
            (folder / f"{name}_{number}.cubin").write_bytes(kernel.cubin)
            launch = asdict(kernel.launch_config)
            cases.append({"shape": shape, "options": options, "launch": launch,
                          "cubin": f"{name}_{number}.cubin", "want": f"{name}.npy"})  # fmt: skip
        kernels[shape] = kernel
    (folder / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
    wrong = 0
    for shape, kernel in kernels.items():
        raw, start = codes(*shape, seed=0), time.process_time()
        want = interpreted(kernel, raw)
        seconds = time.process_time() - start
        np.save(folder / ("x".join(map(str, shape)) + ".npy"), want)
        exact = in_float64(raw)
        error = np.abs(want - exact) / (1 + np.abs(exact))
        print(
            f"{shape}: interpreted in {seconds:.0f} CPU s with {OPTIONS[-1]}, sha256 "
            f"{digest(want)} (an H200's: {SILICON[shape]}), |c - float64| / (1 + |float64|) up to "
            f"{error.max():.1e}",
            flush=True,
        )
        wrong += digest(want) != SILICON[shape]
    return 1 if wrong else 0


def digest(result: np.ndarray) -> str:
    """The beginning of the SHA-256 of an array's bytes."""
    return sha256(result.tobytes()).hexdigest()[:16]


class Gpu:
    """Timing by events; launches queue behind a copy, so host time does not count."""

    def __init__(self, repeats: int) -> None:
        from tcir import runtime
        from tcir.runtime.driver import call

        self.runtime, self.call, self.repeats = runtime, call, repeats
        self.on = runtime.device()
        self.blocker = [runtime.empty((4 << 30,), np.uint8) for _ in range(2)]

    def microseconds(self, launches: list[Any]) -> float:
        """Median time of a launch, measured over `PER_EVENT` launches in a row, over repeats."""
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
        """Rate of device copies of that size in turn over `IN_FLIGHT` bytes, in GB/s read plus
        written."""
        count = max(2, -(-IN_FLIGHT // nbytes))
        pool = [self.runtime.empty((nbytes,), np.uint8) for _ in range(2 * count)]
        pairs = list(zip(pool[::2], pool[1::2], strict=True))
        copies = [
            partial(self.call, "cuMemcpyDtoDAsync", a.pointer, b.pointer, nbytes, 0)
            for a, b in pairs
        ]
        return 2 * nbytes / 1e3 / self.microseconds(copies)


def run(folder: Path, repeats: int) -> int:
    """Runs all cases; returns 1 if bits differ."""
    from tcir.program.launch import Launch
    from tcir.runtime.launching import launch_pointers

    gpu = Gpu(repeats)
    wrong = 0
    print(f"{gpu.on}; GB/s of the copy: read plus write")
    for case in json.loads((folder / "cases.json").read_text()):
        (m, k, batch), given = case["shape"], case["launch"]
        launch = Launch(given["name"], tuple(given["grid"]), tuple(given["block"]),
                        given["dynamic_smem"], tuple(given["params"]))  # fmt: skip
        raw = codes(m, k, batch, seed=0)
        path = folder / case["want"]
        want = np.load(path) if path.exists() else None
        images = [packed(array) if n % 2 == 0 else array for n, array in enumerate(raw)]
        nbytes = sum(image.nbytes for image in images) + 4 * m * batch
        unwritten = np.full((batch, m), np.nan, np.float32)
        sets = [
            [gpu.runtime.to_device(image) for image in [*images, unwritten]]
            for _ in range(max(2, -(-IN_FLIGHT // nbytes)))
        ]
        cubin = (folder / case["cubin"]).read_bytes()
        calls = [
            partial(launch_pointers, launch, cubin, [b.pointer for b in buffers], gpu.on)
            for buffers in sets
        ]
        taken = gpu.microseconds(calls)
        results = [buffers[-1].numpy() for buffers in sets]
        same = all(digest(result) == digest(results[0]) for result in results)
        if want is None:
            verdict = "NOT COMPARED"
        else:
            verdict = "equal" if same and digest(want) == digest(results[0]) else "DIFFERENT"
        wrong += verdict != "equal"
        rate, copy = nbytes / 1e3 / taken, gpu.copy_gb_per_s(nbytes // 2)
        print(
            f"{(m, k, batch)!s:18} {case['options']}: {verdict}, sha256 {digest(results[0])}"
            f"{'' if same else ' (and others)'}, {nbytes / 1e6:.1f} MB, {taken:.1f} us, "
            f"{rate:.0f} GB/s, copy {copy:.0f} GB/s ({rate / copy:.2f} of it)",
            flush=True,
        )
    return 1 if wrong else 0


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    if options.prepare:
        return prepare(options.prepare)
    if options.run:
        return run(options.run, options.repeats)
    parser.error("expected --prepare DIR or --run DIR")


if __name__ == "__main__":
    sys.exit(main())

"""Three warp-level kernels in tf32: plain loads, ldmatrix, and a double-buffered ring.

    python examples/warp_matmul.py

The instruction is the one line `ATOM`: another one (``mma.m16n8k4.tf32``) changes fragments,
loads, swizzles and the K loop of all three, and nothing else has to be touched. A is M-major, which
ldmatrix cannot serve for 32-bit elements, so A always takes plain loads.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tcir

ATOM = "mma.m16n8k8.tf32"

HERE = Path(__file__).parent
ONE_TILE = {"block_m": 16, "block_n": 8, "block_k": 8, "stages": 2}
RING = {"block_m": 128, "block_n": 128, "block_k": 16, "stages": 2}
KERNELS = (
    ("one tile, plain loads", "tf32_one_tile.mlir", {**ONE_TILE, "ldmatrix": False}),
    ("one tile, ldmatrix", "tf32_one_tile.mlir", ONE_TILE),
    ("double buffering", "tf32_matmul.mlir", RING),
)
SMALLER = 256
"""Rows and columns of the third kernel here, of 2048: the simulated machine takes its time."""


def source(file: str) -> str:
    """The program, the large one made smaller."""
    return (HERE / file).read_text().replace("2048", str(SMALLER))


def main() -> None:
    """Compiles and runs each on integers, which tf32 multiplies exactly."""
    for name, file, options in KERNELS:
        kernel = tcir.compile(source(file), "matmul-warp", target="sm_80", atom=ATOM, **options)
        shapes = [spec.shape for spec in kernel.signature.inputs]
        numbers = np.random.default_rng(0)
        a, b = (numbers.integers(-3, 4, shape).astype(np.float32) for shape in shapes)
        out = np.empty(kernel.signature.outputs[0].shape, np.float32)
        kernel(a, b, out)
        assert np.array_equal(out, a.T @ b.T), name
        loads = {
            "ldmatrix": kernel.ptx.count("ldmatrix"),
            "cp.async": kernel.ptx.count("cp.async.c"),
        }
        print(f"{name}: {kernel.launch_config.block[0]} threads, exact, {loads} in the text")


if __name__ == "__main__":
    main()

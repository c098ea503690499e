"""Kernels of sm_90a launched on PyTorch's tensors: streams, CUDA graphs, DLPack, mistakes.

    python bench/launch_hopper.py --prepare build/launch    # here: cubins, bits; MLIR, ptxas
    python bench/launch_hopper.py --run build/launch        # there: PyTorch, cuda-python, numba

Every row launches by `tcir.runtime` and compares all bits with the simulated machine's. What is
launched behind other work on a stream is launched while that work still waits: a result that came
too early would be made of the zeros that the inputs hold until then.

Exit status: 0, 1 a row that is not as it should be, 2 no GPU.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from hopper.prepared import Prepared, bytes_of, load, save

TARGET = "sm_90a"
TORCH = {
    "float4_e2m1fn": "uint8",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "float8_e8m0fnu": "float8_e8m0fnu",
}
"""PyTorch's names of types that numpy lacks or that are packed; others have numpy's name."""


# --- here ----------------------------------------------------------------------------------------


def prepare(folder: Path) -> int:
    """Compiles the kernels and runs them on the machine for the expected bits."""
    from endtoend import test_conv_wgmma
    from endtoend.block_scaled_text import BlockScaled
    from endtoend.product_text import program

    import tcir
    from tcir.codegen import assemble

    conv = test_conv_wgmma.CASES[0]
    cases = {
        "gemm_f16": (program(72, 24, 40, "f16", out="f16"), "gemm"),
        "gemm_bf16": (program(200, 136, 72, "bf16"), "gemm"),
        "gemm_i8_repacked": (program(128, 64, 64, "i8"), "gemm"),
        "conv": (conv.text(), test_conv_wgmma.PIPELINE),
        "gemv_fp4": (BlockScaled(m=130, k=512, alpha="after").op(), "gemv-simt"),
    }
    shutil.rmtree(folder, ignore_errors=True)
    for name, (text, pipeline) in cases.items():
        kernel = tcir.compile(text, pipeline, target=TARGET)
        save(folder / name, kernel)
        print(f"{name}: {len(kernel.launches.launches)} launches, {len(kernel.cubin)} bytes")
    f16 = (folder / "gemm_f16" / "kernel.ptx").read_text()
    other = f16.replace("cvt.rn.f16x2", "cvt.rz.f16x2")
    assert other != f16
    (folder / "other.cubin").write_bytes(assemble(other, target=TARGET).data)
    blackwell = tcir.compile(cases["gemm_f16"][0], "gemm", target="sm_100a")
    (folder / "sm_100a.cubin").write_bytes(blackwell.cubin)
    return 0


# --- there ---------------------------------------------------------------------------------------


class Tensors:
    """The buffers of a kernel on the GPU, and whether its results are right."""

    def __init__(self, kernel: Prepared) -> None:
        self.kernel = kernel
        self.inputs = [self.of(array, n) for n, array in enumerate(kernel.inputs[0])]
        self.results = [
            self.of(array, n + len(self.inputs)) for n, array in enumerate(kernel.wanted[0])
        ]
        for tensor in (*self.inputs, *self.results):
            self.clear(tensor)

    def of(self, array: np.ndarray[Any, Any], place: int) -> Any:
        """Copy on the GPU of the array at that position among inputs and results."""
        import torch

        specs = [*self.kernel.signature.inputs, *self.kernel.signature.outputs]
        name = specs[place].dtype.name
        kind = getattr(torch, TORCH.get(name, name))
        return torch.from_numpy(bytes_of(array).copy()).cuda().view(kind).reshape(array.shape)

    def clear(self, tensor: Any) -> None:
        """Fills the buffers with zero bytes."""
        import torch

        tensor.reshape(-1).view(torch.uint8).zero_()

    def fill(self, number: int) -> None:
        """Copies a set of inputs to the buffers, on the current stream."""
        for place, (tensor, array) in enumerate(
            zip(self.inputs, self.kernel.inputs[number], strict=True)
        ):
            tensor.copy_(self.of(array, place))

    @property
    def buffers(self) -> list[Any]:
        """Buffers in the order of the signature."""
        return [*self.inputs, *self.results]

    def wrong(self, number: int) -> int:
        """Number of result bytes that differ from the machine's for that set."""
        import torch

        total = 0
        for tensor, wanted in zip(self.results, self.kernel.wanted[number], strict=True):
            got = tensor.reshape(-1).view(torch.uint8).cpu().numpy()
            total += int((got != bytes_of(wanted)).sum())
        return total


def current_stream(kernel: Prepared) -> int:
    """Launches on PyTorch's current stream, the default one."""
    import torch

    tensors = Tensors(kernel)
    tensors.fill(0)
    kernel.launch(*tensors.buffers)
    torch.cuda.synchronize()
    return tensors.wrong(0)


def side_stream(kernel: Prepared) -> int:
    """Launches on a side stream, after some 50 ms of other work and the copies of its inputs."""
    import torch

    tensors, side = Tensors(kernel), torch.cuda.Stream()
    late = [tensors.of(array, n) for n, array in enumerate(kernel.inputs[1])]
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        for tensor, array in zip(tensors.inputs, late, strict=True):
            tensor.copy_(array)
        kernel.launch(*tensors.buffers)
        assert not side.query(), "the other work had ended before the launch"
    side.synchronize()
    return tensors.wrong(1)


def given_stream(kernel: Prepared) -> int:
    """Launches with `stream=` while PyTorch's current stream is another; an event orders them."""
    import torch

    tensors, side = Tensors(kernel), torch.cuda.Stream()
    tensors.fill(0)
    side.wait_stream(torch.cuda.current_stream())
    kernel.launch(*tensors.buffers, stream=side)
    torch.cuda.current_stream().wait_stream(side)
    copies = [tensor.clone() for tensor in tensors.results]
    torch.cuda.synchronize()
    tensors.results = copies
    return tensors.wrong(0)


def graph(kernel: Prepared) -> int:
    """Captures a graph once and replays it on both sets of inputs, then on the first again."""
    import torch

    tensors, side = Tensors(kernel), torch.cuda.Stream()
    with torch.cuda.stream(side):
        kernel.launch(*tensors.buffers)  # loads the code, which cannot be captured
    side.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        kernel.launch(*tensors.buffers)
    wrong = 0
    for number in (0, 1, 0):
        for tensor in tensors.results:
            tensors.clear(tensor)
        tensors.fill(number)
        captured.replay()
        torch.cuda.synchronize()
        wrong += tensors.wrong(number)
    return wrong


def numpy_arrays(kernel: Prepared) -> int:
    """Launches on numpy arrays, which are copied there and back."""
    results = [np.zeros_like(array) for array in kernel.wanted[1]]
    kernel.launch(*kernel.inputs[1], *results)
    return sum(
        int((bytes_of(a) != bytes_of(b)).sum())
        for a, b in zip(results, kernel.wanted[1], strict=True)
    )


def own_arrays(kernel: Prepared) -> int:
    """Launches on `tcir.runtime.to_device` and `empty`; PyTorch reads the results by DLPack."""
    import torch

    from tcir import runtime

    inputs = [runtime.to_device(array) for array in kernel.inputs[0]]
    results = [runtime.empty(array.shape, array.dtype) for array in kernel.wanted[0]]
    kernel.launch(*inputs, *results)
    runtime.synchronize()
    tensors = Tensors(kernel)
    tensors.results = [torch.from_dlpack(result) for result in results]
    return tensors.wrong(0)


def same_as_gpu(kernel: Prepared) -> int:
    """Calls `tcir.testing.assert_same_as_gpu`."""
    from tcir.testing import assert_same_as_gpu

    assert_same_as_gpu(kernel, *kernel.inputs[1], order_seed=1)  # type: ignore[arg-type]
    return 0


ROWS: dict[str, Callable[[Prepared], int]] = {
    "tensors, current stream": current_stream,
    "side stream, behind other work": side_stream,
    "stream=, events": given_stream,
    "CUDA graph, three replays": graph,
    "numpy arrays": numpy_arrays,
    "own arrays, DLPack to PyTorch": own_arrays,
    "assert_same_as_gpu": same_as_gpu,
}


def mistakes(folder: Path) -> dict[str, Callable[[], object]]:
    """Makes calls that must be rejected, and compares words of the errors."""
    from dataclasses import replace

    import torch

    from tcir.testing import assert_same_as_gpu

    kernel = load(folder / "gemm_f16")
    tensors = Tensors(kernel)
    a, b, c = tensors.buffers
    other = replace(kernel, cubin=(folder / "other.cubin").read_bytes())
    blackwell = replace(kernel, cubin=(folder / "sm_100a.cubin").read_bytes())
    return {
        "expected a C-contiguous array": lambda: kernel.launch(a.T.contiguous().T, b, c),
        "expected an array float16[72, 40]": lambda: kernel.launch(a.to(torch.bfloat16), b, c),
        "expected an array in CUDA device memory": lambda: kernel.launch(a.cpu(), b, c),
        "expected 3 arrays": lambda: kernel.launch(a, b),
        "sm_100": lambda: blackwell.launch(a, b, c),
        "elements differ": lambda: assert_same_as_gpu(other, *kernel.inputs[0]),  # type: ignore[arg-type]
    }


def run(folder: Path) -> int:
    """Prints the table; see the module's text."""
    from tcir import runtime
    from tcir.errors import Error

    try:
        gpu = runtime.device()
    except Error as error:
        print(f"launch_hopper: {error}")
        return 2
    import torch

    print(f"{gpu}, driver {gpu.driver}, PyTorch {torch.__version__}")
    failed = 0
    names = sorted(path.parent.name for path in folder.glob("*/meta.json"))
    for name in names:
        kernel = load(folder / name)
        count = sum(array.nbytes for array in kernel.wanted[0])
        for row, check in ROWS.items():
            try:
                wrong = check(kernel)
                said = f"{wrong} of {count} bytes differ" if wrong else "equal bits"
            except Exception:
                wrong, said = 1, traceback.format_exc(limit=-2)
            failed += wrong > 0
            print(f"{name:20} {row:32} {said}", flush=True)
    for words, act in mistakes(folder).items():
        try:
            act()
            said = "accepted"
        except (Error, AssertionError) as error:
            said = str(error).splitlines()[0]
        failed += words not in said
        print(f"{'refused' if words in said else 'WRONG':20} {words:40} {said[:160]}", flush=True)
    print(f"{len(names)} kernels, {len(ROWS)} rows each: {failed} failed")
    return int(failed > 0)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--prepare", metavar="FOLDER", type=Path)
    parser.add_argument("--run", metavar="FOLDER", type=Path)
    given = parser.parse_args(arguments)
    if given.prepare:
        return prepare(given.prepare)
    if given.run:
        return run(given.run)
    parser.error("expected --prepare or --run")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

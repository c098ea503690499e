"""Kernels for sm_100a of full size, emulated on a Hopper GPU, right against PyTorch, and timed.

    python bench/emulated.py --prepare build/emulated        # here: PTX; needs MLIR
    python bench/emulated.py --run build/emulated --into OUT    # there: PyTorch, cuda-python, ptxas
    python bench/emulated.py --networks resnet50,bert --into OUT    # there, with MLIR
    python bench/emulated.py --simulate --into OUT          # here: PyTorch, MLIR
    python bench/emulated.py --table OUT                     # for docs/results

Beside each stands what `tcir` compiles for the GPU itself (sm_90a; a GEMV on CUDA cores for sm_90),
where it does. Operands are small integers, or NVFP4 whose sums have few bits, so that every sum is
exact and each bit is compared with PyTorch's in f64, without cuDNN. Networks have random weights in
f16; their error is beside that of PyTorch in f16, both against PyTorch in f64.

Milliseconds are medians of ``--repeats`` launches from rest (`matmul_warp.Bench`). Each program has
a process of its own, several at a time, of which one has the GPU, for ``--seconds`` at most; what
it found is in a file of OUT.
Exit status: 0, 1 something is wrong, 2 no GPU.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gemv
import hopper_conv
import matmul_warp
from matmul_warp import Bench, as_tuples

SIZE, BATCH, DEVICE = 4096, 32, "cuda"
GEMVS = ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))
QUANTISED = """
func.func @linear(%a: {codes}, %sa: {scales}, %b: {codes}, %sb: {scales}, %alpha: tensor<f32>,
    %norm: tensor<f32>) -> ({codes}, {scales}) {{
  %sums = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %alpha) {{block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}}
      : ({codes}, {scales}, {codes}, {scales}, tensor<f32>) -> tensor<{n}x{n}xf32>
  %q, %sq = "tc.quantise_blocks"(%sums, %norm) {{operandSegmentSizes = array<i32: 1, 1>}}
      : (tensor<{n}x{n}xf32>, tensor<f32>) -> ({codes}, {scales})
  return %q, %sq : {codes}, {scales}
}}
"""
ALPHA, NORM = 0.25, 1.0
"""Powers of two: amax / 6 is below 448, the largest scale."""
_SIMULATED = ".simulated"
"""Suffix of the files of the simulated machine."""
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@dataclass(frozen=True)
class Program:
    """A problem and what is compiled for it: (text, pipeline, target); native: None if refused."""

    name: str
    emulated: Callable[[], Any]
    native: Callable[[], Any] | None


def programs() -> list[Program]:
    """All problems of full size except networks."""
    import numpy as np

    import tcir

    def convolution(layer: str, pipeline: str, target: str) -> Any:
        size, c, k, r, stride = hopper_conv.LAYERS[layer]
        x, w = np.ones((BATCH, size, size, c), "f2"), np.ones((r, r, c, k), "f2")
        return tcir.compile_conv2d(
            x, w, stride=stride, padding=r // 2, bias=np.ones(k, "f4"), activation="relu",
            out="f2", pipeline=pipeline, target=target,
        )  # fmt: skip

    product = matmul_warp.program(SIZE, "f32")
    quantised = QUANTISED.format(
        n=SIZE,
        codes=f"tensor<{SIZE}x{SIZE}xf4E2M1FN>",
        scales=f"tensor<{SIZE // 128}x{SIZE // 64}x512xf8E4M3FN>",
    )
    found = [
        Program(
            f"matmul_{SIZE}",
            partial(tcir.compile, product, "gemm{n-tile=256}", target="sm_100a"),
            partial(tcir.compile, product, "gemm", target="sm_90a"),
        ),
        Program(f"nvfp4_{SIZE}", partial(tcir.compile, quantised, "gemm", target="sm_100a"), None),
    ]
    for m, k, batch in GEMVS:
        text = gemv.program(m, k, batch)
        found.append(
            Program(
                f"gemv_{m}x{k}x{batch}",
                partial(tcir.compile, text, "gemv-padded-n", target="sm_100a"),
                partial(tcir.compile, text, "gemv-simt", target="sm_90"),
            )
        )
    found += [
        Program(
            f"conv_{layer}",
            partial(convolution, layer, "conv-shift-reuse", "sm_100a"),
            partial(convolution, layer, "conv", "sm_90a"),
        )
        for layer in hopper_conv.LAYERS
    ]
    return found


def prepare(folder: Path, only: Sequence[str]) -> int:
    """Writes PTX and launches of both kernels of each problem."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in programs():
        if only and each.name not in only:
            continue
        sides = {"emulated": each.emulated().emulated}
        if each.native:
            sides["native"] = each.native()
        described = {}
        for side, kernel in sides.items():
            (folder / f"{each.name}.{side}.ptx").write_text(kernel.ptx)
            described[side] = {
                "target": kernel.target,
                "launches": [asdict(launch) for launch in kernel.launches.launches],
                "spaces": asdict(kernel.launches.workspaces),
            }
        (folder / f"{each.name}.launches.json").write_text(json.dumps(described, indent=1))
        grids = {side: [x["grid"] for x in what["launches"]] for side, what in described.items()}
        print(each.name, grids, flush=True)
    return 0


# --- there ---------------------------------------------------------------------------------------


def assembled(job: tuple[Path, str]) -> str:
    """Assembles a cubin unless it exists; returns the text of an error."""
    from tcir.codegen.cubin import assemble
    from tcir.errors import Error

    path, target = job
    cubin = path.with_suffix(".cubin")
    if cubin.exists():
        return ""
    try:
        cubin.write_bytes(assemble(path.read_text(), target).data)
    except Error as error:
        return f"{path.name}: {error}"
    return ""


@dataclass(frozen=True)
class Loaded:
    """A prepared kernel: `launch` runs all its launches on tensors."""

    cubin: bytes
    launches: list[Any]
    spaces: Any

    @staticmethod
    def of(folder: Path, name: str, side: str) -> Loaded | None:
        from tcir.program.launch import Launch
        from tcir.program.workspaces import Workspaces

        described = json.loads((folder / f"{name}.launches.json").read_text()).get(side)
        if described is None:
            return None
        launches = [Launch(**each) for each in as_tuples(described["launches"])]
        spaces = Workspaces(**as_tuples(described["spaces"]))
        return Loaded((folder / f"{name}.{side}.cubin").read_bytes(), launches, spaces)

    def on(self, tensors: Sequence[Any]) -> Callable[[], None]:
        """Returns a function that launches the kernel on PyTorch's stream."""
        import torch

        from tcir import runtime
        from tcir.runtime.launching import launch_pointers

        arena = torch.empty(max(1, self.spaces.arena), dtype=torch.uint8, device=DEVICE)
        pointers = [each.data_ptr() for each in tensors]
        pointers += [arena.data_ptr() + offset for offset in self.spaces.offsets]
        gpu = runtime.device()

        def launch() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            for each in self.launches:
                launch_pointers(each, self.cubin, pointers, gpu, stream)

        launch.arena = arena  # type: ignore[attr-defined]
        return launch


@dataclass(frozen=True)
class Problem:
    """Tensors of a call, its results last, and what these have to be, bit for bit."""

    tensors: list[Any]
    expected: list[Any]

    def wrong(self) -> int:
        """Number of elements that differ from the expected ones."""
        results = self.tensors[-len(self.expected) :]
        return sum(int((x != y).sum()) for x, y in zip(results, self.expected, strict=True))


def problem(name: str) -> Problem:
    """Returns the problem of that name."""
    kind, _, which = name.partition("_")
    if kind == "matmul":
        return product_problem()
    if kind == "nvfp4":
        return quantised_problem()
    if kind == "gemv":
        m, k, batch = map(int, which.split("x"))
        return gemv_problem(m, k, batch)
    return convolution_problem(which)


def product_problem() -> Problem:
    """A product of f16 integers below 16."""
    import torch

    a, b = (torch.randint(-15, 16, (SIZE, SIZE), device=DEVICE).half() for _ in "ab")
    want = (a.double() @ b.double()).float()
    return Problem([a, b, torch.empty_like(want)], [want])


def fp4(*shape: int) -> tuple[Any, Any]:
    """Returns codes of e2m1, one per byte, and their values in f64."""
    import torch

    codes = torch.randint(0, 16, shape, device=DEVICE, dtype=torch.uint8)
    values = torch.tensor([*E2M1, *(-x for x in E2M1)], dtype=torch.float64, device=DEVICE)
    return codes, values[codes.long()]


def packed(codes: Any) -> Any:
    """Packs two codes into a byte, the first in the low half."""
    return (codes[..., ::2] | codes[..., 1::2] << 4).contiguous()


def blocked(scales: Any) -> Any:
    """[…, rows, columns] in blocks of 128 rows x 4 columns: row r, column c at byte
    (r % 32) * 16 + r / 32 * 4 + c of a block (PTX ISA 9.7.16.10.7); rows are filled with zeros."""
    import torch

    *lead, rows, columns = scales.shape
    whole = torch.zeros(*lead, -(-rows // 128) * 128, columns, dtype=torch.uint8, device=DEVICE)
    whole[..., :rows, :] = scales.view(torch.uint8)
    blocks = whole.view(*lead, -1, 4, 32, columns // 4, 4)
    n = len(lead)
    order = [*range(n), n, n + 3, n + 2, n + 1, n + 4]
    return blocks.permute(order).reshape(*lead, -1, columns // 4, 512).contiguous()


def scaled(*shape: int) -> tuple[Any, Any, Any]:
    """An NVFP4 operand: packed codes, scales [rows, K / 16], values in f64."""
    import torch

    codes, values = fp4(*shape)
    choices = torch.tensor([0.5, 1.0, 2.0], device=DEVICE)
    which = torch.randint(0, 3, (*shape[:-1], shape[-1] // 16), device=DEVICE)
    scales = choices[which]
    return (
        packed(codes),
        scales.to(torch.float8_e4m3fn),
        values * scales.double().repeat_interleave(16, -1),
    )


def quantised_problem() -> Problem:
    """A product whose result is quantised: codes and scales, by comparisons in f64."""
    import torch

    a, sa, left = scaled(SIZE, SIZE)
    b, sb, right = scaled(SIZE, SIZE)
    alpha, norm = (torch.tensor(value, device=DEVICE) for value in (ALPHA, NORM))
    y = ((left @ right.t()).float() * alpha * norm).view(SIZE, -1, 16)
    amax = y.abs().amax(-1, keepdim=True)
    scales = (amax / 6).to(torch.float8_e4m3fn)
    scales = torch.where(amax > 0, scales.float().clamp(2.0**-9, 448.0), scales.float())
    grid = torch.tensor(E2M1, dtype=torch.float64, device=DEVICE)
    codes = torch.zeros_like(y, dtype=torch.uint8)
    for n in range(7):  # y / scale beyond the middle between n and n + 1; a tie goes to the even
        middle = (grid[n] + grid[n + 1]) / 2 * scales.double()
        size = y.double().abs()
        codes += (size > middle) | ((size == middle) & bool(n % 2) & (scales > 0))
    codes |= torch.signbit(y).to(torch.uint8) << 3
    want_codes = packed(codes.view(SIZE, SIZE))
    want_scales = blocked(scales.squeeze(-1).to(torch.float8_e4m3fn))
    out = [torch.empty_like(want_codes), torch.empty_like(want_scales)]
    return Problem([a, blocked(sa), b, blocked(sb), alpha, norm, *out], [want_codes, want_scales])


def gemv_problem(m: int, k: int, batch: int) -> Problem:
    """Products of matrices and vectors, with f16 results."""
    import torch

    a, sa, left = scaled(batch, m, k)
    b, sb, right = scaled(batch, 1, k)
    want = (left * right).sum(-1).half()
    return Problem([a, blocked(sa), b, blocked(sb), torch.empty_like(want)], [want])


def convolution_problem(layer: str) -> Problem:
    """A convolution of integers with bias and relu; PyTorch's own in f64 is the reference, since
    cuDNN may transform."""
    import torch

    size, c, k, r, stride = hopper_conv.LAYERS[layer]
    x = torch.randint(-2, 3, (BATCH, c, size, size), device=DEVICE).double()
    w = torch.randint(-1, 2, (k, c, r, r), device=DEVICE).double()
    bias = torch.randint(-8, 9, (k,), device=DEVICE).double()
    with torch.backends.cudnn.flags(enabled=False):
        wide = torch.nn.functional.conv2d(x, w, bias, stride, r // 2).relu()
    want = wide.permute(0, 2, 3, 1).half().contiguous()
    given = [x.permute(0, 2, 3, 1).half().contiguous(), w.permute(2, 3, 1, 0).half().contiguous()]
    return Problem([*given, bias.float(), torch.empty_like(want)], [want])


@contextmanager
def alone(options: argparse.Namespace) -> Iterator[None]:
    """Context in which this process alone has the GPU. The system ends the process after a time
    limit, since a launch that never ends lets no Python run."""
    with open(options.into / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        signal.alarm(int(options.seconds))
        yield
        signal.alarm(0)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measures both kernels of a problem."""
    import torch

    torch.zeros(1, device=DEVICE)
    with alone(options):
        return measured(name, options.run, options.repeats)


def measured(name: str, folder: Path, repeats: int) -> dict[str, Any]:
    """Measures both kernels of a problem while this process alone has the GPU."""
    import torch

    torch.manual_seed(2026)
    given, bench = problem(name), Bench(repeats)
    found: dict[str, Any] = {"name": name, "results": sum(x.numel() for x in given.expected)}
    for side in ("native", "emulated"):
        if (kernel := Loaded.of(folder, name, side)) is None:
            continue
        for result in given.tensors[-len(given.expected) :]:
            result.view(torch.uint8).fill_(0xCB)
        launch = kernel.on(given.tensors)
        launch()
        torch.cuda.synchronize()
        found[f"{side}_wrong"] = given.wrong()
        found[f"{side}_ms"] = bench.from_rest(launch)
    return found


def simulate(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Runs the problem on the simulated machine, hazards off."""
    import numpy as np
    import torch

    from tcir.program.memory_image import image_spec
    from tcir.torch.tensors import array_of

    global DEVICE
    DEVICE = "cpu"
    torch.manual_seed(2026)
    given = problem(name)
    kernel = next(each for each in programs() if each.name == name).emulated()
    specs = (*kernel.signature.inputs, *kernel.signature.outputs)
    arrays = []
    for tensor, spec in zip(given.tensors, specs, strict=True):
        image = image_spec(spec)  # the tensor's own memory, so that results come into it
        arrays.append(array_of(tensor).reshape(image.shape).view(image.dtype))
        assert np.shares_memory(arrays[-1], array_of(tensor))
    start = time.process_time()
    kernel(*arrays, hazards="off")
    seconds = time.process_time() - start
    return {"of": name, "simulated_wrong": given.wrong(), "simulated_s": seconds}


# --- networks ------------------------------------------------------------------------------------


def network(name: str) -> tuple[Any, Any]:
    """A whole network of transformers with random weights in f16, and its input."""
    import torch
    import transformers

    torch.manual_seed(2026)
    if name == "resnet50":
        config = transformers.ResNetConfig(num_labels=1000)
        model = transformers.ResNetForImageClassification(config)
        for each in model.modules():  # statistics as of a trained network: of its own inputs
            if isinstance(each, torch.nn.BatchNorm2d):
                each.momentum = None
        x = torch.randn(BATCH, 3, 224, 224)
        with torch.no_grad():
            model.train()(x[:8])
        return only(model, "logits").half().eval(), x.half()
    model = transformers.BertModel(transformers.BertConfig())
    x = torch.randn(8, 128, 768)
    return only(model, "last_hidden_state", "inputs_embeds").half().eval(), x.half()


def only(model: Any, name: str, argument: str | None = None) -> Any:
    """A module that returns one of a model's results."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            given = self.model(x) if argument is None else self.model(**{argument: x})
            result: torch.Tensor = getattr(given, name)
            return result

    return Module()


def measure_network(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measures a network through `tcir.torch`, for both targets, and in PyTorch."""
    import copy

    import torch

    import tcir.torch

    model, x = network(name)
    found: dict[str, Any] = {"name": name}
    sides = {"pytorch": model}
    for side, chosen in (("emulated", {"emulate": True}), ("native", {"target": "sm_90a"})):
        start = time.monotonic()
        sides[side] = compiled = tcir.torch.compile(model, (x,), **chosen)
        found[f"{side}_compile_s"] = time.monotonic() - start
        found[f"{side}_left"] = [str(each) for each in compiled.table if each.kernel is None]
        found[f"{side}_launches"] = sum(len(k.launches.launches) for k in compiled.kernels)
    sides = {side: each.to(DEVICE) for side, each in sides.items()}
    x = x.to(DEVICE)
    with torch.no_grad():
        want = copy.deepcopy(model).double()(x.double())
        for side, each in sides.items():
            start = time.monotonic()
            result = each(x)
            torch.cuda.synchronize()
            found[f"{side}_first_s"] = time.monotonic() - start
            found[f"{side}_error"] = float((result.double() - want).norm() / want.norm())
        with alone(options):
            bench = Bench(options.repeats)
            for side, each in sides.items():
                found[f"{side}_ms"] = bench.from_rest(lambda each=each: each(x))
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    each(x)
                found[f"{side}_graph_ms"] = bench.from_rest(graph.replay)
    return found


# --- a process for each --------------------------------------------------------------------------


def run(names: Sequence[str], options: argparse.Namespace) -> int:
    """Measures each in a process of its own."""

    def child(name: str) -> bool:
        command = [sys.executable, __file__, "--child", name, "--into", str(options.into)]
        command += ["--repeats", str(options.repeats), "--seconds", str(options.seconds)]
        command += ["--run", str(options.run)] if options.run else []
        command += ["--simulate"] if options.simulate else []
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        file = options.into / f"{name}{_SIMULATED if options.simulate else ''}.json"
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            words = f"ended with status {done.returncode}: {said}"
            file.write_text(json.dumps({"name": name, "failed": words}) + "\n")
            (options.into / f"{name}.log").write_text(done.stdout + done.stderr)
        found = json.loads(file.read_text())
        print(found, flush=True)
        wrong = ("failed", "emulated_wrong", "native_wrong", "simulated_wrong")
        return any(found.get(each) for each in wrong)

    with ThreadPoolExecutor(1 if options.simulate else 4) as pool:
        return int(any(list(pool.map(child, names))))


def assemble_all(folder: Path, names: Sequence[str]) -> None:
    """Assembles all cubins, in as many processes as there are cores."""
    start, jobs = time.monotonic(), []
    for name in names:
        for side, described in json.loads((folder / f"{name}.launches.json").read_text()).items():
            jobs.append((folder / f"{name}.{side}.ptx", described["target"]))
    jobs.sort(key=lambda job: -job[0].stat().st_size)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(assembled, jobs):
            if said:
                print(said, flush=True)
    print(f"{len(jobs)} assembled in {time.monotonic() - start:.0f} s", flush=True)


def table(folder: Path) -> str:
    """Returns the Markdown table of the files of results."""
    lines = [
        "| | results | emulated, ms | native, ms | simulated machine, CPU seconds |",
        "|---|---|---|---|---|",
    ]
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        if path.stem.endswith(_SIMULATED):
            continue
        name, native = found["name"], found.get("native_ms")
        if "failed" in found:
            lines.append(f"| {name} | {found['failed']} | | | |")
            continue
        simulated = folder / f"{name}{_SIMULATED}.json"
        seconds = (
            json.loads(simulated.read_text()).get("simulated_s") if simulated.exists() else None
        )
        if "pytorch_ms" in found:
            sides = "emulated", "native", "pytorch"
            errors = (f"{found[f'{side}_error']:.3e}" for side in sides)
            graphs = (f"{found[f'{side}_graph_ms']:.2f}" for side in sides)
            words = f"errors {', '.join(errors)}; in CUDA graphs {', '.join(graphs)} ms"
        else:
            wrong = found["emulated_wrong"]
            words = f"{wrong} of {found['results']} differ" if wrong else "equal"
        lines.append(
            f"| {name} | {words} | {found['emulated_ms']:.2f} | "
            f"{'–' if native is None else f'{native:.3f}'} | "
            f"{'–' if seconds is None else f'{seconds:.1f}'} |"
        )
    return "\n".join(lines)


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--networks", metavar="NAME,…")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--table", type=Path, metavar="DIR")
    parser.add_argument("--into", type=Path, metavar="DIR", help="where results go")
    parser.add_argument("--only", default="", metavar="NAME,…")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    if options.prepare:
        return prepare(options.prepare, only)
    if options.table:
        print(table(options.table))
        return 0
    if options.child:
        what = simulate if options.simulate else measure if options.run else measure_network
        file = f"{options.child}{_SIMULATED if options.simulate else ''}.json"
        (options.into / file).write_text(json.dumps(what(options.child, options)) + "\n")
        return 0
    if options.into:
        options.into.mkdir(parents=True, exist_ok=True)
    if options.simulate:
        return run([each.name for each in programs() if not only or each.name in only], options)
    from tcir import runtime
    from tcir.errors import Error

    try:
        print(runtime.device(), flush=True)
    except Error as error:
        print(f"emulated: {error}")
        return 2

    if options.networks:
        return run(options.networks.split(","), options)
    if options.run:
        suffix = ".launches.json"
        names = sorted(path.name.removesuffix(suffix) for path in options.run.glob(f"*{suffix}"))
        names = [name for name in names if not only or name in only]
        assemble_all(options.run, names)
        return run(names, options)
    parser.error("expected --prepare, --run, --networks, --simulate or --table")


if __name__ == "__main__":
    sys.exit(main())

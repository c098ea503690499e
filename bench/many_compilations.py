"""Memory of one process that compiles and runs many different modules.

    python bench/many_compilations.py             # 300 modules; prints a table in Markdown
    python bench/many_compilations.py --calls 50

Each call compiles another module with `tcir.torch.compile` for sm_100a, from an empty cache, runs
it on the simulated machine, and compares the result with PyTorch's. Modules alternate between a
linear layer, one with a ReLU, a convolution and a softmax, each with a shape of its own. Needs
PyTorch.

Exit status: 0, 1 for a wrong result.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from pathlib import Path

import torch

EVERY = 25
PAGE = os.sysconf("SC_PAGE_SIZE")


def example(number: int) -> tuple[torch.nn.Module, torch.Tensor]:
    """Module `number` and its input."""
    kind, size = number % 4, 16 + 8 * (number // 4)
    if kind == 3:
        return torch.nn.Softmax(-1).half(), torch.randn(4, size).half()
    if kind == 2:
        return torch.nn.Conv2d(8, 8, 3).half(), torch.randn(1, 8, 4, 3 + number // 4).half()
    linear = torch.nn.Linear(size, 16)
    module = linear if kind == 0 else torch.nn.Sequential(linear, torch.nn.ReLU())
    return module.half(), torch.randn(4, size).half()


def used(scratch: Path) -> list[int]:
    """MB of memory, MLIR contexts, child processes, threads, open files, temporary files."""
    from tcir.mlir import ir

    me = Path("/proc/self")
    children = " ".join(each.read_text() for each in me.glob("task/*/children"))
    return [
        int((me / "statm").read_text().split()[1]) * PAGE >> 20,
        ir.Context._get_live_count(),
        len(children.split()),
        len(list(me.glob("task/*"))),
        len(list(me.glob("fd/*"))),
        sum(1 for each in scratch.rglob("*") if each.is_file()),
    ]


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=300, metavar="N", help="number of modules")
    calls = parser.parse_args().calls
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as cache:
        os.environ["TCIR_CACHE_DIR"] = cache
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
        return measure(calls, Path(scratch))


def measure(calls: int, scratch: Path) -> int:
    """Prints the table; 1 for a wrong result."""
    import tcir.torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    print("| calls | MB | MLIR contexts | children | threads | open files | temporary files |")
    print("|---|---|---|---|---|---|---|")
    for number in range(calls):
        module, x = example(number)
        compiled = tcir.torch.compile(module.eval(), (x,), target="sm_100a", verbose=False)
        if len(compiled.kernels) != 1:
            print(f"module {number}: expected one kernel, got {len(compiled.kernels)}")
            return 1
        with torch.no_grad():
            found, wanted = compiled(x), module.double()(x.double())
        if not torch.allclose(found.double(), wanted, atol=1e-2, rtol=1e-2):
            print(f"module {number}: expected PyTorch's result")
            return 1
        del compiled, module, found
        if number + 1 in (1, calls) or (number + 1) % EVERY == 0:
            gc.collect()
            print(f"| {number + 1} | {' | '.join(map(str, used(scratch)))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

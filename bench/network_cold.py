"""Compiles a network once in this process and prints, as JSON, what it took; for `compile_time.py`.

    python bench/network_cold.py COMPILER NETWORK    # tcir, or torch.compile

seconds: from the call of the compiler to the network's first result; without a GPU, tcir's to the
         cubins for sm_90a
own, all: CPU seconds of this process meanwhile, and with its children
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from networks import in_f16

import tcir.torch


def children_cpu() -> float:
    """CPU seconds of the descendants of this process, those that have ended included."""
    fields = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields[int(each.parent.name)] = each.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    known, ticks = {os.getpid()}, sum(map(int, fields[os.getpid()][13:15]))
    while new := {pid for pid, each in fields.items() if int(each[1]) in known} - known:
        known |= new
        ticks += sum(int(number) for pid in new for number in fields[pid][11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def by_tcir(model: torch.nn.Module, x: torch.Tensor) -> Callable[[], object]:
    """Compiles with tcir; returns the function of the first call."""
    target = None if x.is_cuda else "sm_90a"
    made = tcir.torch.compile(model, (x,), target=target, verbose=False, freeze=True)
    return (lambda: made(x)) if x.is_cuda else (lambda: [each.cubin for each in made.kernels])


def by_torch(model: torch.nn.Module, x: torch.Tensor) -> Callable[[], object]:
    """Compiles with torch.compile, at the first call."""
    made = torch.compile(model)
    return lambda: made(x)


COMPILERS = {"tcir": by_tcir, "torch.compile": by_torch}


def main(compiler: str, network: str) -> None:
    """See the module's text."""
    on_gpu = torch.cuda.is_available()
    with torch.no_grad():
        model, x = in_f16(network, "cuda" if on_gpu else "cpu")
        if on_gpu:
            model(x)  # loads cuDNN and cuBLAS
            torch.cuda.synchronize()
        started, own, others = time.perf_counter(), time.process_time(), children_cpu()
        call = COMPILERS[compiler](model, x)
        compiled = time.perf_counter()
        call()
        if on_gpu:
            torch.cuda.synchronize()
    ended = time.perf_counter()
    own = time.process_time() - own
    row = {
        "seconds": ended - started,
        "first_call": ended - compiled,
        "own": own,
        "all": own + children_cpu() - others,
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])

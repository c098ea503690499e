"""Replacements for CUDA in a Triton script: torch, cuBLAS, and Triton's benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from unittest.mock import patch

from triton._C.libtriton import nvidia

from tcir.doors.launches import Launches
from tcir.doors.numpy_memory import noise_in_empty
from tcir.doors.torch_cuda import cuda_on_the_cpu
from tcir.triton.addresses import Addresses
from tcir.triton.benchmarks import VIEWER, stand_ins, viewer
from tcir.triton.cublas import CublasLt


@contextmanager
def simulated(launches: Launches, addresses: Addresses, autotune: str) -> Iterator[None]:
    """Context in which `torch.cuda` has one B200, which completes work as soon as it is issued;
    benchmarks return modelled times.
    """
    with ExitStack() as stack:
        stack.enter_context(cuda_on_the_cpu(launches, addresses.taken))
        stack.enter_context(noise_in_empty(launches.memory))
        stack.enter_context(patch.object(nvidia.cublas, "CublasLt", partial(CublasLt, launches)))
        for owner, name, value in stand_ins(launches, autotune):
            stack.enter_context(patch.object(owner, name, value))
        sys.modules[VIEWER] = viewer()
        stack.callback(sys.modules.pop, VIEWER, None)
        yield

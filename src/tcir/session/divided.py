"""Runs passes that rewrite each kernel independently on several kernels at the same time.

The passes run in forks of this process. A process may fork only if no thread of a caller runs in
it; child processes that compile allow it by `use`. If a fork dies, or a pass rejects a kernel, the
module is unchanged; the caller then runs the passes one after another and so gets their errors.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import TypeAlias

from tcir._mlir import ir
from tcir.dialect.attributes import string
from tcir.passes.emit.gpu_module import is_converted, kernels_block
from tcir.passes.nvvm.convert_tc_to_nvvm import SMEM_SYMBOL
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.passmanager.pipeline import Pass
from tcir.program.source import bytecode_of, count_ops
from tcir.workers import Forks

ON_TILES = (
    "multi-buffer", "place-barriers", "plan-memory", "assign-roles", "programmatic-launch",
    "skew-attention", "take-turns", "delay-waits", "interleave-products", "defer-stores",
    "fetch-ahead", "wait-ahead", "unroll-rings", "overlap-products", "convert-tc-to-nvvm",
)  # fmt: skip
ON_THREADS = (*(text.partition("{")[0] for text in LOWER_TO_LLVM), "expect-waits")
ROWS = (ON_TILES, ON_THREADS)
"""Passes that read and write one kernel at a time, and of the rest of the module its attributes and
globals. Kernels are functions with ``tc.kernel``, and then those of the `gpu.module`."""
LEAST = 4
"""Number of kernels from which on they are divided."""
MOST_FORKS = 16
_GPU_MODULE, _THREADS = "gpu.module", "llvm.func"
_FORKS = 1

Parts: TypeAlias = tuple[bytes, ...]
"""A state as bytecode: the module before the passes, and for each of its kernels, in order, a
module that takes the kernel's place (`join`)."""
Verify: TypeAlias = Callable[[ir.Module, str], None]
"""Verifies a module after a pass; raises an error that names the pass."""


def use(forks: int | None = None) -> None:
    """Allows this process to create `forks` forks, by default one for each of its processors."""
    global _FORKS
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    _FORKS = min(forks or mine or 1, MOST_FORKS)


@dataclass(frozen=True)
class DividedPass:
    """A pass that ran on all kernels.

    seconds: duration, summed over all forks
    ops:     number of ops in the module after the pass
    parts:   the program after the pass; None: the pass changed nothing
    """

    item: Pass
    seconds: float
    ops: int
    parts: Parts | None


@dataclass(frozen=True)
class _KernelState:
    """A kernel's module after a pass."""

    seconds: float
    ops: int
    bytecode: bytes


def run(module: ir.Module, passes: Sequence[Pass], first: int, verify: Verify) -> list[DividedPass]:
    """Runs, on all kernels of a module, the consecutive `passes` from index `first` on that belong
    to one row of `ROWS`. Returns these passes, or an empty list if no row begins at `first` or
    nothing was run.
    """
    row = next((each for each in ROWS if passes[first].name in each), ())
    items = list(takewhile(lambda item: item.name in row, passes[first:]))
    begins = first == 0 or passes[first - 1].name not in row
    if _FORKS == 1 or len(items) < 2 or not begins:
        return []
    on_threads = is_converted(module)
    if on_threads != (row == ON_THREADS):
        return []
    kernels = {_name(kernel): count_ops(kernel) for kernel in _kernels(module)}
    if len(kernels) < LEAST or (not on_threads and _named_like_memory(module)):
        return []
    largest_first = sorted(kernels, key=kernels.__getitem__, reverse=True)
    work = partial(_states, module, items, verify)
    states: dict[str, list[_KernelState]] = {}
    with closing(Forks(_FORKS).run(work, largest_first)) as results:
        for name, found in results:
            if not isinstance(found, list):
                return []
            states[name] = found
    base, ops = bytecode_of(module), count_ops(module)
    join(module, [states[name][-1].bytecode for name in kernels])
    steps = []
    for number, item in enumerate(items, start=1):
        pairs = [states[name][number - 1 : number + 1] for name in kernels]
        ops += sum(after.ops - before.ops for before, after in pairs)
        changed = any(after.bytecode is not before.bytecode for before, after in pairs)
        parts = (base, *(after.bytecode for _, after in pairs)) if changed else None
        last = number == len(items)  # it may have made a gpu.module for each kernel
        seconds = sum(after.seconds for _, after in pairs)
        steps.append(DividedPass(item, seconds, count_ops(module) if last else ops, parts))
    return steps


def join(module: ir.Module, parts: Sequence[bytes]) -> None:
    """Replaces the kernels of a module, in order, by the contents of other modules."""
    with module.context, module.operation.location:
        for kernel, bytecode in zip(_kernels(module), parts, strict=True):
            part = ir.Module.parse(bytecode)
            for op in list(part.body.operations):
                if op.operation.name == _GPU_MODULE:
                    _join_threads(module, kernel, list(op.operation.regions[0].blocks[0]))
                else:
                    op.operation.move_before(kernel.operation)
            kernel.operation.erase()


def _join_threads(module: ir.Module, kernel: ir.OpView, ops: Sequence[ir.OpView]) -> None:
    """Moves a function to the place of its `kernel` in the `gpu.module`, or if that is still a
    function of tiles, to the end; globals that are not there yet also."""
    block = kernels_block(module)
    known = {_name(each) for each in block}
    for each in ops:
        if kernel.operation.name == _THREADS and _name(each) == _name(kernel):
            each.operation.move_before(kernel.operation)
        elif _name(each) not in known:
            block.append(each)


def _part(module: ir.Module, name: str) -> ir.Module:
    """A module with one of the kernels, and the globals of all."""
    with module.context, module.operation.location:
        part = ir.Module.create()
        for each in module.operation.attributes:
            part.operation.attributes[each] = module.operation.attributes[each]
        (kernel,) = (each for each in _kernels(module) if _name(each) == name)
        ops, block = [kernel], part.body
        if kernel.operation.name == _THREADS:
            block = kernels_block(part)
            others = [op for op in kernels_block(module) if op.operation.name != _THREADS]
            ops = [*others, kernel]
        with ir.InsertionPoint(block):
            for op in ops:
                op.operation.clone()
    return part


def _states(
    module: ir.Module, items: Sequence[Pass], verify: Verify, name: str
) -> list[_KernelState] | None:
    """States of a kernel in a module of its own, the first before all passes; None if one rejects
    it."""
    part = _part(module, name)
    states = [_KernelState(0.0, count_ops(part), bytecode_of(part))]
    for item in items:
        started, before = time.perf_counter(), states[-1].bytecode
        try:
            item.apply(part)
            bytecode = bytecode_of(part)
            if bytecode != before:
                verify(part, item.name)
        except Exception:  # the caller's passes raise it again
            return None
        seconds = time.perf_counter() - started
        same = bytecode == before
        states.append(_KernelState(seconds, count_ops(part), before if same else bytecode))
    return states


def _kernels(module: ir.Module) -> list[ir.OpView]:
    """Functions of tiles, or if there are none, those of the `gpu.module`."""
    found = [op for op in module.body.operations if "tc.kernel" in op.operation.attributes]
    if not found and is_converted(module):
        found = [op for op in kernels_block(module) if op.operation.name == _THREADS]
    return found


def _name(op: ir.OpView) -> str:
    return string(op, "sym_name")


def _named_like_memory(module: ir.Module) -> bool:
    """Whether a symbol may be that of the kernels' shared memory, which is new among all."""
    gpu = [op.operation for op in module.body if op.operation.name == _GPU_MODULE]
    ops = [*module.body, *(op for each in gpu for op in each.regions[0].blocks[0])]
    return any(_name(op).startswith(SMEM_SYMBOL) for op in ops if "sym_name" in op.attributes)

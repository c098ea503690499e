"""Rules about the launch of a kernel: grid, block, cluster, target, signature."""

from __future__ import annotations

from math import prod

from tcir._mlir import ir
from tcir.dialect.attributes import integers
from tcir.dialect.kernel.view import (
    LAUNCH,
    Found,
    KernelView,
    attribute_of,
    triple,
    verify_in_kernel,
)
from tcir.dialect.limits import (
    BLOCK_THREADS,
    CLUSTER_CTAS,
    GRID,
    SETMAXNREG,
    WARP,
    WARPGROUP,
    launch_registers,
)
from tcir.dialect.ops.warp import MmaSyncOp
from tcir.dialect.ops.warpgroup import WGMMA_OPS, WarpgroupRegistersOp
from tcir.target import DEFAULT_TARGET, targets_with


@verify_in_kernel(
    "grid",
    LAUNCH,
    "tc.grid must be array<i64: x, y, z> with 1 <= extents <= {most}, got {got}",
)
def _(kernel: KernelView) -> Found:
    grid = triple(kernel, "tc.grid")
    if grid is None or any(n > most for n, most in zip(grid, GRID, strict=True)):
        yield kernel.func, {"most": GRID, "got": attribute_of(kernel, "tc.grid")}


@verify_in_kernel(
    "block",
    LAUNCH,
    "tc.block must be array<i64: x, y, z> of whole warps, at most 1024 threads, got {got}",
)
def _(kernel: KernelView) -> Found:
    block = triple(kernel, "tc.block")
    if block is None or prod(block) % WARP or prod(block) > BLOCK_THREADS:
        yield kernel.func, {"got": attribute_of(kernel, "tc.block")}


@verify_in_kernel(
    "register-shares",
    SETMAXNREG.source,
    "registers must have one count per warpgroup of tc.block, {threads} threads, got {got}: all "
    "warps of a warpgroup execute the same setmaxnreg",
)
def _(kernel: KernelView) -> Found:
    block = triple(kernel, "tc.block")
    for op in kernel.of(WarpgroupRegistersOp):
        shares = integers(op, "registers")
        if block is not None and len(shares) * WARPGROUP != prod(block):
            yield op, {"threads": prod(block), "got": shares}


@verify_in_kernel(
    "register-pool",
    SETMAXNREG.source,
    "shares must add up to at most {most} registers per thread (.maxnreg {each}, the SM has "
    "{all}), got {got} = {sum}: setmaxnreg.inc waits for registers that no warpgroup gives back",
)
def _(kernel: KernelView) -> Found:
    for op in kernel.of(WarpgroupRegistersOp):
        shares = integers(op, "registers")
        each = launch_registers(WARPGROUP * len(shares))
        if sum(shares) > each * len(shares):
            got = " + ".join(map(str, shares))
            most, all_ = each * len(shares), DEFAULT_TARGET.registers
            yield op, {"most": most, "each": each, "all": all_, "got": got, "sum": sum(shares)}


@verify_in_kernel(
    "cluster",
    "PTX ISA 11.4, .reqnctapercluster; CUDA C++ Programming Guide, thread block clusters",
    "tc.cluster must be array<i64: x, y, z> of at most {most} CTAs, whose extents divide those of "
    "tc.grid, {grid}, got {got}",
)
def _(kernel: KernelView) -> Found:
    if "tc.cluster" not in kernel.func.attributes:
        return
    cluster, grid = triple(kernel, "tc.cluster"), triple(kernel, "tc.grid") or [1, 1, 1]
    if (
        cluster is None
        or prod(cluster) > CLUSTER_CTAS
        or any(g % c for g, c in zip(grid, cluster, strict=True))
    ):
        got = attribute_of(kernel, "tc.cluster")
        yield kernel.func, {"most": CLUSTER_CTAS, "grid": grid, "got": got}


@verify_in_kernel(
    "target",
    "PTX ISA 9.7.16, target notes",
    "tc.target must be {legal}, got {got}: tcgen05 needs an architecture-specific target",
)
def _(kernel: KernelView) -> Found:
    got = attribute_of(kernel, "tc.target")
    legal = [f'"{name}"' for name in targets_with("tcgen05")]
    if str(got) not in legal and not kernel.of(MmaSyncOp, *WGMMA_OPS):  # own rules
        yield kernel.func, {"legal": " or ".join(legal), "got": got}


@verify_in_kernel(
    "signature",
    "PTX ISA 5.4",
    "a kernel takes memrefs and returns nothing, got {got}; write results to an argument",
)
def _(kernel: KernelView) -> Found:
    type_ = ir.FunctionType(ir.TypeAttr(kernel.func.attributes["function_type"]).value)
    if type_.results or not all(isinstance(t, ir.MemRefType) for t in type_.inputs):
        yield kernel.func, {"got": type_}

"""Rules about kernels whose ops work on fragments in registers (mma.sync and wgmma)."""

from __future__ import annotations

from math import prod

from tcir._mlir import ir
from tcir.dialect.kernel.view import Found, KernelView, attribute_of, triple, verify_in_kernel
from tcir.dialect.limits import FP8, WARP
from tcir.dialect.ops.structure import OneThreadOp
from tcir.dialect.ops.sync import MbarrierExpectTxOp
from tcir.dialect.ops.tma import TmaLoadOp
from tcir.dialect.ops.warp import MmaSyncOp
from tcir.dialect.ops.warpgroup import WGMMA_OPS, WgmmaWaitOp
from tcir.dialect.warp_map import CONSUMER, warp_map_of
from tcir.target import TARGETS, targets_with


@verify_in_kernel(
    "warps",
    "tc",
    "a kernel with fragments needs tc.warps = array<i64: m, n> with m * n the {want} warps of "
    "tc.block, or of the consumers, got {got}: it says which warp has which part of a fragment",
)
def _(kernel: KernelView) -> Found:
    block = triple(kernel, "tc.block")
    if block is None or not kernel.has_fragments:
        return
    got = kernel.func.attributes.get("tc.warps", None)
    is_pair = isinstance(got, ir.DenseI64ArrayAttr) and len(got) == 2
    roles = warp_map_of(kernel.func)
    consumes = CONSUMER in roles.kinds
    want = len(roles[CONSUMER].warps) if consumes else prod(block) // WARP
    if not is_pair or prod(list(got)) != want:
        yield kernel.func, {"want": want, "got": attribute_of(kernel, "tc.warps")}


@verify_in_kernel(
    "one-thread",
    "PTX ISA 9.7.13.15, 9.7.9.27",
    "{got} must be in tc.one_thread: every thread of the CTA would issue it, and each arrival "
    "counts",
)
def _(kernel: KernelView) -> Found:
    if not kernel.asynchronous or kernel.roles or not kernel.has_fragments:
        return
    if kernel.of(*WGMMA_OPS):  # roles come later
        return
    for op in kernel.of(MbarrierExpectTxOp, TmaLoadOp):
        if not isinstance(op.operation.parent.opview, OneThreadOp):
            yield op, {"got": op.operation.name}


@verify_in_kernel(
    "warp-target",
    "PTX ISA 9.7.14.5, target notes",
    "tc.target must be one of {legal} for mma.sync of {element}, got {got}: cp.async needs sm_80, "
    "e4m3 and e5m2 need sm_89",
)
def _(kernel: KernelView) -> Found:
    name = kernel.func.attributes.get("tc.target", None)
    got = name.value if isinstance(name, ir.StringAttr) else None
    for op in kernel.of(MmaSyncOp):
        element = str(op.a.type.element)
        fp8 = any(str(v.type.element) in FP8 for v in (op.a, op.b))
        legal = targets_with("fp8") if fp8 else list(TARGETS)
        if got not in legal:
            yield op, {"legal": ", ".join(legal), "element": element, "got": got or "none"}


@verify_in_kernel(
    "wgmma-target",
    "PTX ISA 9.7.15, target notes",
    "tc.target must be {legal} for wgmma, got {got}: other architectures have other tensor cores",
)
def _(kernel: KernelView) -> Found:
    name = kernel.func.attributes.get("tc.target", None)
    got = name.value if isinstance(name, ir.StringAttr) else None
    legal = targets_with("wgmma")
    for op in kernel.of(*WGMMA_OPS):
        if got not in legal:
            yield op, {"legal": " or ".join(legal), "got": got or "none"}


@verify_in_kernel(
    "wgmma-warps",
    "PTX ISA 9.7.15.2",
    "tc.warps must give each warp 16 rows and all columns of a product of wgmma, got {got} for "
    "{rows} rows: a warpgroup has 64 of them",
)
def _(kernel: KernelView) -> Found:
    warps = kernel.func.attributes.get("tc.warps", None)
    for op in kernel.of(*WGMMA_OPS):
        rows = op.d.type.shape[0]
        if not isinstance(warps, ir.DenseI64ArrayAttr) or list(warps) != [rows // 16, 1]:
            yield op, {"got": attribute_of(kernel, "tc.warps"), "rows": rows}


@verify_in_kernel(
    "wgmma-wait",
    "PTX ISA 9.7.15.7.3",
    "no tc.wgmma_wait follows this {op} in its role: nothing tells when it is complete",
)
def _(kernel: KernelView) -> Found:
    if not kernel.asynchronous:
        return
    last: dict[ir.Operation | None, ir.OpView] = {}
    for site in kernel.sites:
        role = site.role.operation if site.role else None
        if isinstance(site.op, WGMMA_OPS):
            last[role] = site.op
        elif isinstance(site.op, WgmmaWaitOp):
            last.pop(role, None)
    yield from ((op, {"op": op.operation.name}) for op in last.values())

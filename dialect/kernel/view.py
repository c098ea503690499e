"""The view of a kernel that verifier rules use: its ops in program order, each with the warp role
that executes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tcir._mlir import ir
from tcir.dialect.operation import Op, Traits, traits_of
from tcir.dialect.ops.structure import RoleOp
from tcir.dialect.rules import Function, verify
from tcir.dialect.warp_types import FragmentType

SUBJECT = "tc.kernel"
Found = Iterator[tuple[ir.OpView, Mapping[str, object]]]
"""A kernel rule yields the op at fault and the values for its message."""


@dataclass(frozen=True)
class KernelOp:
    """One op of a kernel, the warp role that executes it, if any, and whether the op is inside a
    loop or branch."""

    op: ir.OpView
    role: RoleOp | None = None
    nested: bool = False

    @property
    def traits(self) -> Traits:
        """Traits of the op's class."""
        return traits_of(self.op)

    @property
    def name(self) -> str:
        """Name of the op, such as ``tc.mma``."""
        return self.op.operation.name


@dataclass(frozen=True)
class KernelView:
    """A kernel with its ops in program order."""

    func: ir.OpView
    sites: list[KernelOp] = field(default_factory=list)

    def of(self, *kinds: Any) -> list[Any]:
        """The ops of the given classes, in program order."""
        return [s.op for s in self.sites if isinstance(s.op, kinds)]

    @property
    def asynchronous(self) -> bool:
        """Whether barriers have been placed in the kernel, so that asynchronous ops take effect
        only when a barrier reports it."""
        return "tc.async" in self.func.attributes

    @property
    def has_fragments(self) -> bool:
        """Whether any op has an operand or result that warps hold in registers."""
        return any(
            isinstance(value.type, FragmentType)
            for site in self.sites
            if isinstance(site.op, Op)
            for value in (*site.op.operands, *site.op.results)
        )

    @property
    def roles(self) -> list[RoleOp]:
        """The warp roles of the kernel, in program order."""
        return self.of(RoleOp)


def view(func: ir.OpView) -> KernelView:
    """Builds the view of the kernel `func`."""
    sites: list[KernelOp] = []

    def collect(op: ir.OpView, role: RoleOp | None, nested: bool) -> None:
        for region in op.regions:
            for block in region:
                for inner in block:
                    sites.append(KernelOp(inner, role, nested))
                    is_role = isinstance(inner, RoleOp)
                    collect(inner, inner if is_role else role, nested or not is_role)

    collect(func, None, False)
    return KernelView(func, sites)


def verify_in_kernel(name: str, source: str, text: str) -> Callable[[Function], Function]:
    """Registers the decorated generator as the kernel rule ``name``."""
    return verify(SUBJECT, name, source, text)


LAUNCH = "CUDA C++ Programming Guide, technical specifications"


def triple(kernel: KernelView, name: str) -> list[int] | None:
    """The three extents of the attribute ``tc.grid`` or ``tc.block``; None unless the attribute
    consists of three positive integers."""
    attribute = kernel.func.attributes.get(name, None)
    if not isinstance(attribute, ir.DenseI64ArrayAttr):
        return None
    extents = list(attribute)
    return extents if len(extents) == 3 and min(extents) >= 1 else None


def attribute_of(kernel: KernelView, name: str) -> object:
    return kernel.func.attributes.get(name, "none")

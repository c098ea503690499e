"""Upstream's passes and verifiers on IR from outside, which may end the process they run in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcir.codegen.rehearsal import rehearse
from tcir.errors import InvalidIRError, NativeCrashError
from tcir.passmanager.pipeline import Pass, UpstreamPass, is_own

if TYPE_CHECKING:
    from tcir._mlir import ir


class Rehearsal:
    """Has a child process run native code first while the IR is from outside.

    IR is from outside until a pass of ours has lowered the caller's program, and after any pass of
    the caller's: a lowering of ours alone costs nothing.
    """

    def __init__(self) -> None:
        self._outside, self._foreign = True, False

    def before(self, item: Pass, module: ir.Module) -> None:
        """`item` is about to run; `NativeCrashError` if it is upstream's and crashes."""
        if self._outside and isinstance(item, UpstreamPass):
            rehearse(_text(module), f"pass '{item.name}'", str(item))

    def after(self, item: Pass, module: ir.Module) -> None:
        """`item` has run, and `module` is to be verified; `InvalidIRError` if that crashes."""
        if isinstance(item, UpstreamPass):
            return
        self._foreign = self._foreign or not is_own(type(item))
        self._outside = self._foreign
        if not self._outside:
            return
        try:
            rehearse(_text(module), "its verification")
        except NativeCrashError as error:
            raise InvalidIRError(
                f"pass '{item.name}' left invalid IR: {error}", None, item.name
            ) from error


def _text(module: ir.Module) -> str:
    """The module without being verified for printing."""
    return str(module.operation.get_asm(print_generic_op_form=True))

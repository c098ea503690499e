"""Protects against upstream passes and verifiers that may crash on user-supplied IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcir.codegen.rehearsal import rehearse
from tcir.errors import InvalidIRError, NativeCrashError
from tcir.passmanager.pipeline import Pass, UpstreamPass, is_own

if TYPE_CHECKING:
    from tcir._mlir import ir


class Rehearsal:
    """Runs native code first in a child process as long as the IR comes from outside tcir.

    The IR comes from outside until a pass of tcir has lowered the caller's program, and again after
    any pass that the caller supplies. A pipeline of only tcir's passes runs nothing twice.
    """

    def __init__(self) -> None:
        self._outside, self._foreign = True, False

    def before(self, item: Pass, module: ir.Module) -> None:
        """To be called before `item` runs. Raises `NativeCrashError` if `item` is an upstream pass
        that crashes in the child."""
        if self._outside and isinstance(item, UpstreamPass):
            rehearse(_text(module), f"pass '{item.name}'", str(item))

    def after(self, item: Pass, module: ir.Module) -> None:
        """To be called after `item` ran, before `module` is verified. Raises `InvalidIRError` if
        the verifier crashes in the child."""
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
    """Generic text of the module, printed without verification."""
    return str(module.operation.get_asm(print_generic_op_form=True))

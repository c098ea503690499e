"""Lowering of the ops of programmatic dependent launch."""

from __future__ import annotations

from tcir._mlir import nvvm
from tcir.dialect import tc

from .converter import Converter, lower


@lower(tc.GridWaitOp)
def convert_grid_wait(converter: Converter, op: tc.GridWaitOp) -> None:
    """Lowers to ``griddepcontrol.wait``, which every thread that reaches it executes."""
    nvvm.griddepcontrol("wait")


@lower(tc.GridLaunchDependentsOp)
def convert_grid_launch_dependents(converter: Converter, op: tc.GridLaunchDependentsOp) -> None:
    """Lowers to ``griddepcontrol.launch_dependents``. Only the first execution by a thread of the
    CTA has an effect."""
    nvvm.griddepcontrol("launch_dependents")

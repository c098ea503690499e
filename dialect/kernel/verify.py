"""Checks a whole kernel (a ``func.func`` with the attribute ``tc.kernel``).

A kernel rule is a generator of ``(op, values)``, where the values fill the placeholders of the
rule's error message; see `tcir.dialect.kernel.view`.
"""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect.kernel.view import SUBJECT, view
from tcir.dialect.rules import rules_of
from tcir.rule_files import load_folder

load_folder("tcir.dialect.kernel")


def verify_kernel(func: ir.OpView) -> list[tuple[ir.Location, str]]:
    """Returns every violation of a kernel rule in ``func`` as (location, message); [] if there is
    none.

    The ops must have been verified before, because kernel rules rely on the rules of the single
    ops.
    """
    kernel = view(func)
    return [
        (op.location, each.message(values))
        for each in rules_of(SUBJECT)
        for op, values in each.check(kernel)
    ]

"""The base class of the ops: declarations from `TC.Operation`, verification from the rules."""

from __future__ import annotations

from tcir.dialect import rules
from tcir.dialect.base import TC


class Op(TC.Operation):
    """An op of ``tc``; the rules registered for it are its verifier."""

    def verify_invariants(self) -> bool:
        """Called by MLIR's verifier and parser."""
        return rules.verify(self)

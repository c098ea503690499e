"""The upstream passes that lower a converted kernel (scf, arith, llvm, nvvm) to llvm and nvvm only.

Their order matters: `convert-to-llvm` needs the branches that `convert-scf-to-cf` makes, and
`canonicalize` and `cse` come after the last conversion, so that they see its whole result. Other
dialects are not converted; a function with ops that no pass has lowered remains and is rejected.
"""

from __future__ import annotations

LOWER_TO_LLVM = (
    "convert-scf-to-cf",
    "convert-to-llvm{filter-dialects=arith,cf,nvvm}",
    "canonicalize",
    "cse",
    "reconcile-unrealized-casts",
)
"""Texts of upstream passes, for `tcir.passmanager.pipeline.Pipeline`."""

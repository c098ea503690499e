"""The upstream passes that lower a converted kernel (scf, arith, llvm, nvvm) to llvm and nvvm only.

The order matters: `convert-cf-to-llvm` needs the branches that `convert-scf-to-cf` makes, and
`canonicalize` and `cse` come after the last conversion, to see its whole result.
"""

from __future__ import annotations

LOWER_TO_LLVM = (
    "convert-scf-to-cf",
    "convert-arith-to-llvm",
    "convert-cf-to-llvm",
    "convert-nvvm-to-llvm",
    "canonicalize",
    "cse",
    "reconcile-unrealized-casts",
)
"""Plain names of upstream passes, for `tcir.passmanager.pipeline.Pipeline`."""

"""LLVM IR to PTX, by LLVM's NVPTX back end."""

from __future__ import annotations

import re

from tcir.codegen.worker import WORKER
from tcir.errors import Error, UnknownNameError, did_you_mean

PTX_FEATURES = {"sm_100a": "+ptx88", "sm_90": "+ptx84", "sm_80": "+ptx80"}
"""PTX version by target: the least with all its forms. For sm_100a that is 8.8 (tcgen05 with
``.blockN``), for sm_90 8.4 (fp8 ``mma.sync``), for sm_80 8.0 (``bf16`` conversions). The back end
falls back to its own least version, without a word, for a feature it does not know."""


def emit_ptx(llvm_ir: str, target: str = "sm_100a") -> str:
    """PTX of `llvm_ir` for `target`.

    `Error` when LLVM refuses the module or leaves an intrinsic it does not know as a call,
    `NativeCrashError` when it dies.
    """
    if target not in PTX_FEATURES:
        raise UnknownNameError(f"unknown target '{target}'" + did_you_mean(target, PTX_FEATURES))
    features = PTX_FEATURES[target]
    ptx: str = WORKER.call("emit_ptx", llvm_ir, ".ll", cpu=target, features=features)
    left = sorted(set(re.findall(r"llvm\.nvvm\.[\w.]+", ptx)))
    if left:
        raise Error(
            f"the NVPTX back end has no instruction for {', '.join(left)}; "
            "say it as inline PTX instead"
        )
    version = f"{features[len('+ptx')]}.{features[len('+ptx') + 1 :]}"
    if f".version {version}\n" not in ptx:
        raise Error(f"expected PTX {version}, got another version from the NVPTX back end")
    return ptx

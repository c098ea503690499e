"""Compiles functions to object code with numba; imported only if the cache has no object code for a
function.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import types

from tcir.machine.jit.entry import entry
from tcir.machine.jit.external import EXTERNAL
from tcir.machine.jit.kinds import ALIGNED, C_CONTIGUOUS, ArgumentKind
from tcir.machine.jit.native import target_machine
from tcir.machine.jit.runtime import RUNTIME

_NUMBERS = {"bool": types.boolean, "int": types.int64, "float": types.float64}
_RESULTS = {**_NUMBERS, "None": types.none}


def type_of(function: FunctionType, fma: bool) -> types.Type:
    """The numba type of `function` as a value that other compiled functions call."""
    return types.Dispatcher(_dispatcher(function, fma))


def object_code(
    function: FunctionType, fma: bool, kinds: Sequence[ArgumentKind], returned: str, symbol: str
) -> bytes:
    """Compiles object code for arguments of these types; `symbol` is the only symbol that it
    defines.
    """
    dispatcher = _dispatcher(function, fma)
    signature = tuple(map(_numba_type, kinds))
    dispatcher.compile(signature)
    compiled = dispatcher.overloads[signature]
    if compiled.signature.return_type != _RESULTS[returned]:
        found = compiled.signature.return_type
        raise TypeError(f"{function.__name__}: annotated as {returned}, is {found}")
    module = llvm.parse_assembly(dispatcher.inspect_llvm(signature))
    module.link_in(llvm.parse_assembly(RUNTIME))
    for name in [one.name for one in module.functions if one.name in EXTERNAL]:
        module.link_in(llvm.parse_assembly(EXTERNAL[name].text))
    module.link_in(llvm.parse_assembly(entry(symbol, compiled.fndesc.llvm_func_name, kinds)))
    for one in module.functions:
        if not one.is_declaration and one.name != symbol:
            one.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    passes.run(module, llvm.create_pass_builder(target_machine(), options))
    module.verify()
    declared = [one.name for one in module.functions if one.is_declaration]
    missing = [name for name in declared if name.lower().startswith(("nrt_", "numba_"))]
    if missing:
        raise TypeError(f"{function.__name__}: {', '.join(missing)} not in machine/jit/runtime.py")
    code: bytes = target_machine().emit_object(module)
    return code


@cache
def _dispatcher(function: FunctionType, fma: bool) -> Any:
    return numba.njit(function, nogil=True, fastmath={"contract"} if fma else False)


def _numba_type(kind: ArgumentKind) -> types.Type:
    if kind.dimensions is None:
        return _NUMBERS[kind.type]
    if kind.dimensions < 0:
        return types.UniTuple(types.int64, -kind.dimensions)  # type: ignore[no-untyped-call]
    return types.Array(
        numba.from_dtype(np.dtype(kind.type)),
        kind.dimensions,
        "C" if kind.flags & C_CONTIGUOUS else "A",
        aligned=bool(kind.flags & ALIGNED),
    )

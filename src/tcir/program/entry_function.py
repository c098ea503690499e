"""Selects one program of a module that has several: a public function, given by its name, and the
functions it calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcir.errors import InputError, did_you_mean, format_location

if TYPE_CHECKING:
    from tcir._mlir import ir


def keep_entry(module: ir.Module, entry: str) -> None:
    """Makes `entry` the only public function of `module`, and drops functions that it does not
    call.

    Raises InputError if no function with a body has this name, or if it is one launch of several.
    """
    from tcir._mlir import ir, passmanager
    from tcir.passes.emit.gpu_module import launch_order
    from tcir.passes.emit.tensor_functions import functions_with_body

    functions = {each.name.value: each for each in functions_with_body(module)}
    where = format_location(module.operation.location)
    if not isinstance(entry, str) or entry not in functions:
        names = ", ".join(f"@{name}" for name in functions)
        raise InputError(
            f"{where}entry: expected a func.func with a body: {names or 'there is none'}, got "
            f"'{entry}'{did_you_mean(str(entry), functions)}"
        )
    if launch_order(functions[entry]) is not None:
        raise InputError(
            f"{where}entry: expected a program, got @{entry}, one launch of several (tc.order), "
            "which reads the results of earlier launches; leave entry out"
        )
    with module.context:
        for name, function in functions.items():
            if name != entry:
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
            elif "sym_visibility" in function.attributes:
                del function.attributes["sym_visibility"]
        passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)

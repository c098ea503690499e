"""``--verify-roundtrip``: checks that a written module reads back as the same module."""

from __future__ import annotations

from io import BytesIO

from tcir._mlir import ir
from tcir.errors import InputError


def verify_roundtrip(module: ir.Module) -> None:
    """Writes `module` as text, as generic text and as bytecode, and reads each back.

    Locations are not compared, since the text omits the bodies that named linalg ops imply.

    Raises:
        InputError: for the first form that is not read back as `module`, with the first lines that
            differ, or the parser's reason
    """
    wanted = _generic(module)
    bytecode = BytesIO()
    module.operation.write_bytecode(bytecode)
    written = {
        "text": module.operation.get_asm(),
        "generic text": wanted,
        "bytecode": bytecode.getvalue(),
    }
    for form, data in written.items():
        try:
            got = _generic(ir.Module.parse(data, module.context))
        except ir.MLIRError as error:
            raise InputError(f"--verify-roundtrip: {form} cannot be read back: {error}") from error
        if got != wanted:
            raise InputError(f"--verify-roundtrip: {form}: {_difference(wanted, got)}")


def _generic(module: ir.Module) -> str:
    return module.operation.get_asm(print_generic_op_form=True)


def _difference(wanted: str, got: str) -> str:
    lines = (wanted.splitlines(), got.splitlines())
    pairs = ((one.strip(), other.strip()) for one, other in zip(*lines) if one != other)
    one, other = next(pairs, ("", ""))
    if not one and not other:
        return f"expected {len(lines[0])} lines, got {len(lines[1])}"
    return f"expected {one!r}, got {other!r}"

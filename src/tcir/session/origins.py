"""Changes the locations of errors to those of the ops from which a program was imported.

Errors of a compiled program refer to lines of its MLIR text, which users never see. The module from
which that text was printed has the locations that the importer assigned.
"""

from __future__ import annotations

import re

from tcir._mlir import ir
from tcir.errors import Error, InputError, InvalidIRError

_PLACE = re.compile(r'"?([^"\s(\[]+)"?:(\d+):(\d+)')
_TEXT = re.compile(r'"?<text>"?:(\d+):(\d+): (?:error: )?')


def origin(location: ir.Location) -> str:
    """A location as ``file:line:column: ``; if there are several, the first; "" for an unknown
    location.
    """
    found = _PLACE.search(str(location))
    return f"{':'.join(found.groups())}: " if found else ""


def at_its_origin(error: Error, module: ir.Module) -> Error:
    """Returns `error` in a form in which locations in the text of `module` are replaced by the
    locations of the module's ops.
    """
    places = _places(module)
    message = _TEXT.sub(lambda found: places.get((found[1], found[2]), ""), str(error))
    kinds = (InvalidIRError, InputError, Error)
    return next(kind for kind in kinds if isinstance(error, kind))(message)


def _places(module: ir.Module) -> dict[tuple[str, str], str]:
    """Maps line and column of each op in the module's text to the location that the module has for
    it."""
    with module.context:
        ours, read = _locations(module), _locations(ir.Module.parse(str(module)))
    found = {}
    for own, in_text in zip(ours, read, strict=True):
        if place := _PLACE.search(str(in_text)):
            found[place[2], place[3]] = origin(own)
    return found


def _locations(module: ir.Module) -> list[ir.Location]:
    found: list[ir.Location] = []

    def visited(op: ir.Operation) -> ir.WalkResult:
        found.append(op.location)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visited)
    return found

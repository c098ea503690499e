"""Findings and names of kernels as the doors print them: one line for a cause, names that fit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tcir.machine.findings import Finding

LONGEST = 60
"""Characters of a kernel's name that are printed whole."""
_SOURCE = re.compile(r"\(([^()]+:\d+)\)")


@dataclass
class Cause:
    """Findings of the same kind between the same lines of the source, such as those of a loop that
    was unrolled. alike: how many there are besides the first."""

    first: Finding
    alike: int = 0

    def __str__(self) -> str:
        return f"{self.first}" + f"; {self.alike} more between these lines" * bool(self.alike)


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """In order. Findings without lines of a source are causes of their own."""
    found: dict[object, Cause] = {}
    for finding in findings:
        places = [_SOURCE.findall(each) for each in (finding.first, finding.second) if each]
        lines = tuple(tuple(each) for each in places) if all(places) else finding.key
        key = finding.severity, finding.code, finding.kind, lines
        if key in found:
            found[key].alike += 1
        else:
            found[key] = Cause(finding)
    return list(found.values())


def shown_name(name: str) -> str:
    """A kernel's name; of a long one in C++ the function, of another its beginning and end."""
    if len(name) <= LONGEST:
        return name
    function = source_name(name)
    return f"{function}<…>" if len(function) <= LONGEST else f"{name[:40]}…{name[-12:]}"


def source_name(mangled: str) -> str:
    """Name of a C++ function, without namespaces and template arguments; unchanged if not
    mangled."""
    text, name = mangled.removeprefix("_Z").removeprefix("N"), mangled
    while mangled.startswith("_Z") and (length := re.match(r"\d+", text)):
        text = text[length.end() :]
        name, text = text[: int(length[0])], text[int(length[0]) :]
        if not mangled.startswith("_ZN"):
            break
    return name

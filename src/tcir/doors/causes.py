"""Findings and kernel names as the doors (commands such as ``python -m tcir.triton``) print them:
one line per cause; long names are shortened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tcir.machine.findings import Finding

LONGEST = 60
"""Maximum length of a kernel's name that is printed whole."""
_SOURCE = re.compile(r"\(([^()]+:\d+)\)")


@dataclass
class Cause:
    """Findings of the same kind between the same lines of the source, such as those of an unrolled
    loop. Its text names the severity unless that is "error".

    alike: number of findings besides the first
    """

    first: Finding
    alike: int = 0

    def __str__(self) -> str:
        severity = "" if self.first.severity == "error" else f"{self.first.severity}: "
        return f"{severity}{self.first}" + f"; {self.alike} more between these lines" * bool(
            self.alike
        )


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """Groups findings into causes, in order. Each finding without source lines is a cause of its
    own.
    """
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
    """A kernel's name as it is printed: a long C++ name is shortened to the function's name,
    another long name to its beginning and end.
    """
    if len(name) <= LONGEST:
        return name
    function = source_name(name)
    return f"{function}<…>" if len(function) <= LONGEST else f"{name[:40]}…{name[-12:]}"


def source_name(mangled: str) -> str:
    """Name of a C++ function, without namespaces and template arguments; a name that is not mangled
    is returned unchanged.
    """
    text, name = mangled.removeprefix("_Z").removeprefix("N"), mangled
    while mangled.startswith("_Z") and (length := re.match(r"\d+", text)):
        text = text[length.end() :]
        name, text = text[: int(length[0])], text[int(length[0]) :]
        if not mangled.startswith("_ZN"):
            break
    return name

"""Errors of the simulated machine: illegal programs, and instructions that are not modelled."""

from __future__ import annotations

from tcir.errors import Error, IncompleteError
from tcir.machine.findings import Finding
from tcir.machine.refusal import Refusal


class MachineError(Error, RuntimeError):
    """An illegal use of the hardware.

    code:     short name of the error
    site:     the operation that caused it
    findings: hazards found before the run ended; they often explain the error
    who:      the agent (warp or role) that caused it; "" if no agent did
    """

    exit_code = 1
    who = ""

    def __init__(self, code: str, message: str, *, site: object = None) -> None:
        where = f" at {site}" if site is not None else ""
        super().__init__(f"{code}: {message}{where}")
        self.code, self.site, self.message = code, site, message
        self.findings: list[Finding] = []

    def __str__(self) -> str:
        return super().__str__() + (f" ({self.who})" if self.who else "")

    @classmethod
    def of(cls, refusal: Refusal, site: object) -> MachineError:
        """Wraps a `Refusal` in a MachineError that names the operation, `site`."""
        return cls(refusal.code, str(refusal), site=site)


class Deadlock(MachineError):
    """Raised when every agent waits. The message lists each agent with its wait and its location;
    the agents at which the deadlock begins come first.
    """

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class NotModelled(IncompleteError, RuntimeError):
    """Raised for a use that is legal on the hardware but that the simulated machine does not model;
    the verdict of the run is "incomplete".
    """

    who = ""

    def __init__(self, what: str, *, site: object = None) -> None:
        super().__init__(what)
        self.what, self.site = what, site
        self.findings: list[Finding] = []

"""What a program can do wrong, and what the machine cannot do yet."""

from __future__ import annotations

from tcir.errors import Error, IncompleteError
from tcir.machine.findings import Finding
from tcir.machine.refusal import Refusal


class MachineError(Error, RuntimeError):
    """An illegal use of the hardware. ``code`` is a short name, ``site`` the operation.

    ``findings``: the hazards found before it ended the run; they often say why it came to this.
    ``who``: the agent that did it, "" for none.
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
        """The same refusal, seen at an operation."""
        return cls(refusal.code, str(refusal), site=site)


class Deadlock(MachineError):
    """Every agent waits; the message lists who waits for what and where, what the others wait for
    in the end first."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class NotModelled(IncompleteError, RuntimeError):
    """Legal on the hardware, without a rule in this machine: the run is incomplete."""

    who = ""

    def __init__(self, what: str, *, site: object = None) -> None:
        super().__init__(what)
        self.what, self.site = what, site
        self.findings: list[Finding] = []

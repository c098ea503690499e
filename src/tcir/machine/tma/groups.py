"""Bulk groups of an agent: cp.async.bulk.commit_group and wait_group (PTX ISA 9.7.9.25.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tcir.machine.engine.core import Blocking
from tcir.machine.engine.operation import Operation
from tcir.machine.errors import MachineError
from tcir.machine.memory.global_and_shared import GlobalAndShared
from tcir.machine.refusal import Refusal


class BulkGroups(GlobalAndShared):
    """Bulk operations that complete in groups.

    Such an operation records what it reads under the component `bulk_reads` and what it writes
    under `bulk_writes`, both with the number `bulk_number`, and goes to `launch_in_group`.
    """

    _bulk_open: list[Operation]
    _bulk_groups: list[list[Operation]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bulk_open, self._bulk_groups = [], []
        self.last_bulk: Any = None
        """Site of the last operation of a bulk group."""
        self.bulk_reads, self.bulk_writes = ("bulk", self.me), ("bulk write", self.me)

    @property
    def bulk_issued(self) -> int:
        """Bulk groups with an operation in them, the open one included."""
        return len(self._bulk_groups) + bool(self._bulk_open)

    @property
    def bulk_number(self) -> int:
        """Number of the group that is open."""
        return len(self._bulk_groups) + 1

    def launch_in_group(self, operation: Operation) -> None:
        """Starts an operation as part of the open group."""
        self.last_bulk = operation.site
        self._bulk_open.append(operation)
        self.cta.launch(operation)

    def bulk_commit(self, *, site: Any) -> None:
        """cp.async.bulk.commit_group."""
        self._at(site)
        self._bulk_groups.append(self._bulk_open)
        self._bulk_open = []

    def bulk_wait(self, pending: int, read: bool = False, *, site: Any) -> Blocking:
        """cp.async.bulk.wait_group(.read): all but the last ``pending`` groups are complete.

        With ``read`` only their sources may be reused; what they wrote is not yet visible.
        """
        self._at(site)
        last = max(0, len(self._bulk_groups) - pending)
        groups = self._bulk_groups[:last]
        yield from self._wait(
            lambda: all(o.done for g in groups for o in g), lambda: f"bulk groups at {site}"
        )
        seen = self.clock.get(self.bulk_reads, 0)
        self.clock[self.bulk_reads] = max(seen, last)
        if not read:
            seen = self.clock.get(self.bulk_writes, 0)
            self.clock[self.bulk_writes] = max(seen, last)

    def _refused(self, site: Any, check: Callable[..., None], *arguments: Any) -> None:
        """Runs a check of the pure functions; what it refuses is a MachineError here."""
        try:
            check(*arguments)
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None

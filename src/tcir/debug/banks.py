"""Bank conflicts of shared memory, counted while a kernel runs.

Shared memory has 32 banks of 4 bytes. A warp's access is served in phases of at most 128 bytes: 32
threads of up to 4 bytes each, 16 of 8 bytes, 8 of 16 bytes, 8 rows of ldmatrix. A phase takes as
many passes as the largest number of distinct words that it accesses in one bank (CUDA C++
Programming Guide, compute capability 5.x and later). cp.async counts as a write by its threads.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.debug.control import Follower
from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.op import Blocking

BANKS = 32
WORD = 4
PHASE_BYTES = BANKS * WORD


def extra_passes(addresses: NDArray[np.int64], nbytes: int) -> int:
    """Number of passes beyond the first of each phase, for an access of `nbytes` at each thread's
    address.
    """
    at_once = min(BANKS, PHASE_BYTES // nbytes)
    extra = 0
    for start in range(0, len(addresses), at_once):
        first = addresses[start : start + at_once, None] // WORD
        words = np.unique(first + np.arange(-(-nbytes // WORD)))
        extra += int(np.bincount(words % BANKS).max()) - 1
    return extra


class BankConflicts(Follower):
    """Counts bank conflicts by instruction: the instruction at ``site`` needed ``conflicts[site]``
    extra passes in ``accesses[site]`` accesses.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conflicts: Counter[str] = Counter()
        self.accesses: Counter[str] = Counter()

    def _note(self, site: Any, addresses: NDArray[np.int64], nbytes: int) -> None:
        self.accesses[str(site)] += 1
        extra = extra_passes(addresses, nbytes)
        if extra:
            self.conflicts[str(site)] += extra

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        memory: Any = interpreter.warp.agent.memory
        copies: Any = interpreter.warp.agent.cp_async
        read, store, copy = memory.read, memory.store, copies.copy

        def counted_read(space: str, addresses: Any, nbytes: int, **how: Any) -> Any:
            if space == "shared":
                self._note(how["site"], addresses, nbytes)
            return read(space, addresses, nbytes, **how)

        def counted_store(space: str, addresses: Any, data: Any, **how: Any) -> None:
            if space == "shared":
                self._note(how["site"], addresses, data.shape[1])
            store(space, addresses, data, **how)

        def counted_copy(
            lanes: int, targets: Any, sources: Any, nbytes: int, inside: Any, **how: Any
        ) -> None:
            self._note(how["site"], targets, nbytes)
            copy(lanes, targets, sources, nbytes, inside, **how)

        memory.read, memory.store, copies.copy = counted_read, counted_store, counted_copy
        return interpreter.run()

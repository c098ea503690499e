"""State that all warps of one launch share: sizes, parameters, instruction budget, special
registers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.lanes import FULL
from tcir.interp.ptx.special_registers import GRID_WORKSPACE
from tcir.interp.ptx.syntax import Site
from tcir.machine import Agent, DecodedMap, Finding, Machine, MachineError
from tcir.machine.memory.protocols import CtaProtocol
from tcir.target import DEFAULT_TARGET

Triple = tuple[int, int, int]

PRINTED = 1 << 20
"""Largest output in characters: cudaLimitPrintfFifoSize is 1 MB by default."""

Values = int | np.ndarray
"""One value for the warp, or one per lane."""


@dataclass(frozen=True)
class LaunchSizes:
    """Sizes of a launch: CTAs of the grid, threads of a CTA, CTAs of a cluster, and bytes of
    dynamic shared memory and of all shared memory of a CTA.
    """

    grid: Triple
    block: Triple
    cluster: Triple
    dynamic_smem: int
    total_smem: int

    @property
    def threads(self) -> int:
        """Number of threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        """Number of warps of a CTA."""
        return -(-self.threads // 32)

    def thread(self, number: int) -> Triple:
        """Coordinates (%tid) of a thread, given its linear number in the CTA."""
        x, y, _ = self.block
        return number % x, number // x % y, number // (x * y)


class LaunchState:
    """State that all warps of a launch share. params: bytes of the kernel parameters. cooperative:
    whether the launch has a workspace for the barrier of the whole grid
    """

    def __init__(
        self, machine: Machine, sizes: LaunchSizes, params: bytes, cooperative: bool = True
    ) -> None:
        self.machine, self.sizes, self.cooperative = machine, sizes, cooperative
        self.params = np.frombuffer(params, np.uint8)
        self.max_instructions = machine.options.max_instructions
        self.instructions = 0
        self.maps: dict[bytes, DecodedMap] = {}
        self.reductions: dict[object, list[tuple[int, int]]] = {}  # of bar.red, see isa/sync.py
        self.output: list[str] = []
        """Text that the kernel printed."""
        self._room = PRINTED
        self._clock = 0
        self._grid_workspace = 0

    def retire(self, agent: Agent, count: int, at: Site | None) -> None:
        """Counts executed warp instructions, and ends the run when the instruction budget is spent.

        at: the warp's next instruction; at a backward branch, the first instruction of the loop
        """
        self.instructions += count
        if self.instructions > self.max_instructions:
            raise MachineError(
                "instruction-budget",
                f"expected at most {self.max_instructions} warp instructions, got more; an endless "
                f"loop of {agent.name}? raise max_instructions if not",
                site=agent.name if at is None else f"the loop from {at}",
            )

    def print(self, text: str) -> None:
        """Keeps a thread's printed text, up to the size of the driver's buffer."""
        if self._room:
            self.output.append(text[: self._room])
            self._room -= len(self.output[-1])
            if not self._room:
                self.output.append(f"\n[more than {PRINTED} characters: the rest is dropped]\n")

    def report(self, finding: Finding) -> None:
        self.machine.findings.append(finding)

    @property
    def clocked(self) -> bool:
        """Whether any warp has read a clock."""
        return self._clock > 0

    # --- special registers --------------------------------------------------------------------
    def special(self, name: str, cta: CtaProtocol, warp: int, tid: np.ndarray) -> Values:
        """Values of a special register (PTX ISA 10). tid: the linear thread numbers of the lanes"""
        base, _, axis = name.partition(".")
        if axis == "w":
            return 0
        if axis:
            return self._vector(base, "xyz".index(axis), cta, tid)
        if name in GRID_WORKSPACE:
            high = name == GRID_WORKSPACE[0]
            return self._workspace() >> 32 if high else self._workspace() & FULL
        values = self._scalars(cta, warp)
        if name not in values:
            raise MachineError("special-register", f"no value for {name} here", site=name)
        return values[name]

    def _workspace(self) -> int:
        """Address of a cooperative launch's barrier; a null pointer in others."""
        if not self._grid_workspace and self.cooperative:
            self._grid_workspace = self.machine.memory.bind(np.zeros(2, np.uint32))
        return self._grid_workspace

    def _vector(self, base: str, n: int, cta: CtaProtocol, tid: np.ndarray) -> Values:
        sizes = self.sizes
        x, y, _ = sizes.block
        match base:
            case "%tid":
                return (tid % x, tid // x % y, tid // (x * y))[n]
            case "%ntid":
                return sizes.block[n]
            case "%ctaid":
                return cta.index[n]
            case "%nctaid":
                return sizes.grid[n]
            case "%cluster_ctaid":
                return cta.index[n] % sizes.cluster[n]
            case "%cluster_nctaid":
                return sizes.cluster[n]
            case "%clusterid":
                return cta.index[n] // sizes.cluster[n]
            case "%nclusterid":
                return sizes.grid[n] // sizes.cluster[n]
        raise MachineError("special-register", f"no value for {base} here", site=base)

    def _scalars(self, cta: CtaProtocol, warp: int) -> dict[str, Values]:
        sizes = self.sizes
        lane = np.arange(32, dtype=np.int64)
        one = np.int64(1)
        x, y, z = sizes.cluster
        return {
            "%laneid": lane,
            "%warpid": warp,
            "%nwarpid": sizes.warps,
            "%smid": 0,
            "%nsmid": DEFAULT_TARGET.sms,
            "%gridid": 0,
            "%cluster_ctarank": cta.rank_in_cluster,
            "%is_explicit_cluster": sizes.cluster != (1, 1, 1),
            "%cluster_nctarank": x * y * z,
            "%lanemask_eq": one << lane,
            "%lanemask_lt": (one << lane) - 1,
            "%lanemask_le": (one << lane + 1) - 1,
            "%lanemask_gt": FULL & ~((one << lane + 1) - 1),
            "%lanemask_ge": FULL & ~((one << lane) - 1),
            "%dynamic_smem_size": sizes.dynamic_smem,
            "%total_smem_size": sizes.total_smem,
            "%aggr_smem_size": sizes.total_smem + DEFAULT_TARGET.smem_reserved,
            "%current_graph_exec": 0,  # not launched by a graph
        }

    def clock(self, name: str) -> int:
        """Value of %clock and similar registers. Time is not modelled, so each register counts how
        often it was read.
        """
        self._clock += 1
        return self._clock & (FULL if name in ("%clock", "%globaltimer_lo") else (1 << 63) - 1)

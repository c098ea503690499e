"""The back ends of pipelines: passes that lower tiles, or kernels of threads, to the llvm
dialect."""

from __future__ import annotations

from collections.abc import Sequence

from tcir.passes.module.plan_workspaces import PlanWorkspaces
from tcir.passes.module.programmatic_launch import ProgrammaticLaunch
from tcir.passes.nvvm.convert_tc_to_nvvm import ConvertTcToNvvm
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.passes.pipelining.assign_roles import AssignRoles
from tcir.passes.pipelining.cluster_launch_control import ClusterLaunchControl
from tcir.passes.pipelining.defer_stores import DeferStores
from tcir.passes.pipelining.delay_waits import DelayWaits
from tcir.passes.pipelining.expect_waits import ExpectWaits
from tcir.passes.pipelining.fetch_ahead import FetchAhead
from tcir.passes.pipelining.interleave_products import InterleaveProducts
from tcir.passes.pipelining.multi_buffer import MultiBuffer
from tcir.passes.pipelining.overlap_products import OverlapProducts
from tcir.passes.pipelining.place_barriers import PlaceBarriers
from tcir.passes.pipelining.plan_memory import PlanMemory
from tcir.passes.pipelining.skew_attention import SkewAttention
from tcir.passes.pipelining.take_turns import TakeTurns
from tcir.passes.pipelining.unroll_rings import UnrollRings
from tcir.passes.pipelining.wait_ahead import WaitAhead
from tcir.passmanager.pipeline import Pass

ATTENTION = (SkewAttention(), TakeTurns(), DelayWaits(), InterleaveProducts())
"""Products of a block of keys among those of others, or of another tile; warpgroups that multiply
in turn."""
WARPGROUPS = (DeferStores(), WaitAhead(), UnrollRings())
"""Stores under the next tile's products; tiles of the next step waited for; loops unrolled."""
ONE_WARPGROUP = (DeferStores(), FetchAhead(), WaitAhead(), UnrollRings(), OverlapProducts())
"""Also for CTAs with one tile, or of one warpgroup: biases loaded ahead, overlapping groups."""


def tile_to_llvm(
    stages: int,
    acc_stages: int = 0,
    *,
    takes_over: bool = False,
    programmatic: bool = False,
    several: bool = False,
    warpgroups: Sequence[Pass] = (),
) -> list[Pass | str]:
    """The passes after tiling; `stages` and `acc_stages` are options of multi-buffer.

    takes_over: whether CTAs take over the work of CTAs that have not been launched yet (cluster
        launch control)
    programmatic: whether the launch may start before the previous one has ended; several: whether
        only in programs of several launches
    warpgroups: additional passes on the warp roles, for targets whose warpgroups both multiply and
        store
    """
    return [
        MultiBuffer(stages=stages, acc_stages=acc_stages),
        PlaceBarriers(),
        PlanMemory(),
        AssignRoles(),
        *([ClusterLaunchControl()] if takes_over else []),
        *([ProgrammaticLaunch(several)] if programmatic else []),
        *warpgroups,
        ConvertTcToNvvm(),
        PlanWorkspaces(),
        *LOWER_TO_LLVM,
        ExpectWaits(),
    ]


def threads_to_llvm(*cleaning: Pass | str) -> list[Pass | str]:
    """The passes after the conversion to threads, for kernels without a ring in shared memory.

    cleaning: passes that clean up the threads' programs while their loops are still ``scf.for``
    """
    return [PlanWorkspaces(), *cleaning, *LOWER_TO_LLVM]

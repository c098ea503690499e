"""All of the dialect under one name: ``from tcir.dialect import tc; tc.MmaOp(...)``."""

from __future__ import annotations

from tcir.dialect import type_rules as type_rules
from tcir.dialect.base import TC, load
from tcir.dialect.ops.block_scale import CpScalesOp, MmaBlockScaleOp
from tcir.dialect.ops.block_scaled import BlockScaledMatmulOp, ScalesToBlockedOp
from tcir.dialect.ops.codes import PackCodesOp, UnpackCodesOp
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.ops.halo import RefreshOp, ShiftOp
from tcir.dialect.ops.highlevel import Conv2dOp, MatmulOp
from tcir.dialect.ops.lanes import (
    EnableLanesOp,
    LaneIndexOp,
    LaneMasksOp,
    StoreLanesOp,
    WriteLaneMaskOp,
)
from tcir.dialect.ops.memory import (
    MbarrierInitOp,
    SlotOp,
    SmemTileOp,
    TmemAllocOp,
    TmemDeallocOp,
    TmemRelinquishOp,
    TmemTileOp,
)
from tcir.dialect.ops.movement import CpOp, StoreRowsOp, TmemLdOp, TmemStOp, TmemWaitOp
from tcir.dialect.ops.repack import RepackOp
from tcir.dialect.ops.structure import OneThreadOp, RoleOp
from tcir.dialect.ops.sync import (
    CommitOp,
    CtaBarrierOp,
    FenceOp,
    MbarrierArriveOp,
    MbarrierExpectTxOp,
    MbarrierWaitOp,
)
from tcir.dialect.ops.tma import MakeTensorMapOp, TmaLoadOp
from tcir.dialect.ops.warp import (
    CpAsyncCommitOp,
    CpAsyncOp,
    CpAsyncWaitOp,
    LoadFragmentOp,
    MmaSyncOp,
    StoreFragmentOp,
    ZeroFragmentOp,
)
from tcir.dialect.types import (
    SWIZZLE_BYTES,
    LaneMasksType,
    MbarrierType,
    RingType,
    SmemType,
    TensorMapType,
    TmemBaseType,
    TmemType,
    element_bytes,
)
from tcir.dialect.warp_types import FragmentType, StagedType

__all__ = [
    "SWIZZLE_BYTES",
    "TC",
    "BlockScaledMatmulOp",
    "CommitOp",
    "Conv2dOp",
    "CpAsyncCommitOp",
    "CpAsyncOp",
    "CpAsyncWaitOp",
    "CpOp",
    "CpScalesOp",
    "CtaBarrierOp",
    "EnableLanesOp",
    "FenceOp",
    "FragmentType",
    "LaneIndexOp",
    "LaneMasksOp",
    "LaneMasksType",
    "LoadFragmentOp",
    "MakeTensorMapOp",
    "MatmulOp",
    "MbarrierArriveOp",
    "MbarrierExpectTxOp",
    "MbarrierInitOp",
    "MbarrierType",
    "MbarrierWaitOp",
    "MmaBlockScaleOp",
    "MmaOp",
    "MmaSyncOp",
    "OneThreadOp",
    "PackCodesOp",
    "RefreshOp",
    "RepackOp",
    "RingType",
    "RoleOp",
    "ScalesToBlockedOp",
    "ShiftOp",
    "SlotOp",
    "SmemTileOp",
    "SmemType",
    "StagedType",
    "StoreFragmentOp",
    "StoreLanesOp",
    "StoreRowsOp",
    "TensorMapType",
    "TmaLoadOp",
    "TmemAllocOp",
    "TmemBaseType",
    "TmemDeallocOp",
    "TmemLdOp",
    "TmemRelinquishOp",
    "TmemStOp",
    "TmemTileOp",
    "TmemType",
    "TmemWaitOp",
    "UnpackCodesOp",
    "WriteLaneMaskOp",
    "ZeroFragmentOp",
    "element_bytes",
    "load",
]

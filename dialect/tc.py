"""All of the dialect under one name: ``from tcir.dialect import tc; tc.MmaOp(...)``."""

from __future__ import annotations

from . import type_rules as type_rules
from .base import TC, load
from .block_scale_ops import CpScalesOp, MmaBlockScaleOp
from .block_scaled import BlockScaledMatmulOp, ScalesToBlockedOp
from .codes import PackCodesOp, UnpackCodesOp
from .compute import MmaOp
from .halo import RefreshOp, ShiftOp
from .highlevel import Conv2dOp, MatmulOp
from .lanes import EnableLanesOp, LaneIndexOp, LaneMasksOp, StoreLanesOp, WriteLaneMaskOp
from .memory import (
    MbarrierInitOp,
    SlotOp,
    SmemTileOp,
    TmemAllocOp,
    TmemDeallocOp,
    TmemRelinquishOp,
    TmemTileOp,
)
from .movement import CpOp, StoreRowsOp, TmemLdOp, TmemStOp, TmemWaitOp
from .repack import RepackOp
from .structure import OneThreadOp, RoleOp
from .sync import (
    CommitOp,
    CtaBarrierOp,
    FenceOp,
    MbarrierArriveOp,
    MbarrierExpectTxOp,
    MbarrierWaitOp,
)
from .tma import MakeTensorMapOp, TmaLoadOp
from .types import (
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
from .warp import (
    CpAsyncCommitOp,
    CpAsyncOp,
    CpAsyncWaitOp,
    LoadFragmentOp,
    MmaSyncOp,
    StoreFragmentOp,
    ZeroFragmentOp,
)
from .warp_types import FragmentType, StagedType

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

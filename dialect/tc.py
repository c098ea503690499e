"""All names of the dialect in one module: ``from tcir.dialect import tc; tc.MmaOp(...)``."""

# ruff: noqa: F403  (for type checkers; at run time every file of the folder is loaded)
from __future__ import annotations

from typing import TYPE_CHECKING

from tcir.dialect import type_rules as type_rules
from tcir.dialect import warp_types as warp_types
from tcir.dialect.base import TC as TC
from tcir.dialect.base import load as load
from tcir.dialect.types import SWIZZLE_BYTES as SWIZZLE_BYTES
from tcir.dialect.types import element_bytes as element_bytes
from tcir.rule_files import load_folder

if TYPE_CHECKING:
    from tcir.dialect.ops.attention import *
    from tcir.dialect.ops.attention_backward import *
    from tcir.dialect.ops.block_scale import *
    from tcir.dialect.ops.block_scaled import *
    from tcir.dialect.ops.block_scaled_attention import *
    from tcir.dialect.ops.cluster import *
    from tcir.dialect.ops.codes import *
    from tcir.dialect.ops.combine_parts import *
    from tcir.dialect.ops.compute import *
    from tcir.dialect.ops.cp_rows import *
    from tcir.dialect.ops.epilogue import *
    from tcir.dialect.ops.grid_control import *
    from tcir.dialect.ops.grouped import *
    from tcir.dialect.ops.halo import *
    from tcir.dialect.ops.highlevel import *
    from tcir.dialect.ops.lanes import *
    from tcir.dialect.ops.launch_control import *
    from tcir.dialect.ops.load_shared import *
    from tcir.dialect.ops.loads import *
    from tcir.dialect.ops.memory import *
    from tcir.dialect.ops.mma_sparse import *
    from tcir.dialect.ops.mma_ws import *
    from tcir.dialect.ops.movement import *
    from tcir.dialect.ops.quantise import *
    from tcir.dialect.ops.repack import *
    from tcir.dialect.ops.row_fragments import *
    from tcir.dialect.ops.row_vectors import *
    from tcir.dialect.ops.smem_part import *
    from tcir.dialect.ops.staged_fragment import *
    from tcir.dialect.ops.store_shared import *
    from tcir.dialect.ops.stores import *
    from tcir.dialect.ops.structure import *
    from tcir.dialect.ops.sum_parts import *
    from tcir.dialect.ops.sync import *
    from tcir.dialect.ops.tma import *
    from tcir.dialect.ops.tma_store import *
    from tcir.dialect.ops.tmem_words import *
    from tcir.dialect.ops.turns import *
    from tcir.dialect.ops.warp import *
    from tcir.dialect.ops.warpgroup import *
    from tcir.dialect.types import *
    from tcir.dialect.warp_types import *

load_folder("tcir.dialect.ops")
globals().update({each.__name__: each for each in (*TC.operations, *TC.types)})

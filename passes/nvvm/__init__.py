"""Rules of ``convert-tc-to-nvvm``, one file per op group.

Importing the package registers them all; `tcir.passes.nvvm.converter.rule` adds one from outside.
"""

from . import block_scale as block_scale
from . import compute as compute
from . import halo as halo
from . import lanes as lanes
from . import loads as loads
from . import movement as movement
from . import scalar as scalar
from . import stores as stores
from . import structure as structure
from . import sync as sync
from . import warp_copy as warp_copy
from . import warp_fragments as warp_fragments
from . import warp_store as warp_store

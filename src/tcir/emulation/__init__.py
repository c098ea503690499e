"""Kernels for sm_100a on a GPU of compute capability 9.0: see docs/explanation/emulation.md.

`emulate` rewrites the PTX so that helper warps of each CTA are its tensor core. It knows the PTX
parser, and nothing of the compiler or MLIR; `tensor_core.cu` decodes descriptors and sums on the
device with code of its own.
"""

from tcir.emulation.errors import EmulationError
from tcir.emulation.rewriting import Emulated, EmulatedLaunch, emulate, emulate_all

__all__ = ["Emulated", "EmulatedLaunch", "EmulationError", "emulate", "emulate_all"]

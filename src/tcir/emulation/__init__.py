"""Runs kernels for sm_100a on a GPU of compute capability 9.0: see docs/explanation/emulation.md.

`emulate` rewrites the PTX so that helper warps of each CTA act as its tensor core. It depends on
the PTX parser, but not on the compiler or MLIR; `tensor_core.cu` decodes descriptors and sums on
the device with code of its own.
"""

from tcir.emulation.errors import EmulationError
from tcir.emulation.rewriting import Emulated, EmulatedLaunch, emulate, emulate_all

__all__ = ["Emulated", "EmulatedLaunch", "EmulationError", "emulate", "emulate_all"]

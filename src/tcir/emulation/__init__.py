"""Runs kernels for sm_100a on a GPU of compute capability 9.0: see docs/explanation/emulation.md.

`emulate` rewrites the PTX so that helper warps of each CTA do the work of its tensor core. It
depends on the PTX parser, but not on the compiler or MLIR. `tensor_core.cu` decodes descriptors and
computes sums on the device; it shares no code with the simulated machine.
"""

from tcir.emulation.errors import EmulationError
from tcir.emulation.rewriting import Emulated, EmulatedLaunch, emulate, emulate_all

__all__ = ["Emulated", "EmulatedLaunch", "EmulationError", "emulate", "emulate_all"]

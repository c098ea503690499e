"""CUDA programs on the simulated machine: modules of PTX or CUDA C++, their kernels and launches.

`Module.from_ptx` and `Module.from_source` load one; a call of `module.kernel(name)` executes it.
"""

from tcir.cuda.module import Kernel, Module

__all__ = ["Kernel", "Module"]

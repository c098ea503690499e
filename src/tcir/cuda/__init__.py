"""Runs CUDA programs on the simulated machine: modules of PTX or CUDA C++, their kernels and
launches.

`Module.from_ptx` and `Module.from_source` load a module; a call of `module.kernel(name)` executes
the kernel.
"""

from tcir.cuda.module import Kernel, Module

__all__ = ["Kernel", "Module"]

"""Runs CuTe DSL programs on the simulated machine: ``python -m tcir.cute script.py``.

The script runs unchanged, on CPU tensors. CuTe DSL compiles its kernels for sm_100a as it does for
a GPU, and also compiles its host code. In place of NVIDIA's CUDA runtime, the host code calls
tcir's (`tcir.cute.engine`), which executes the PTX. Needs the packages of the extra ``cute``.
"""

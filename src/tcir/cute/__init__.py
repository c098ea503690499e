"""CuTe DSL programs on the simulated machine: ``python -m tcir.cute script.py``.

The script runs unchanged, on CPU tensors. CuTe DSL compiles its kernels for sm_100a as it does for
a GPU, and also its host code. That code calls tcir's CUDA runtime (`tcir.cute.engine`) in place of
NVIDIA's, which executes the PTX. Needs the packages of the extra ``cute``.
"""

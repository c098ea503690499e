"""CuTe DSL programs on the simulated machine: ``python -m tcir.cute script.py``.

The script runs as it is, on tensors of the CPU. CuTe DSL compiles its kernels for sm_100a as it
does for a GPU, and its host code as well; where that calls the CUDA runtime it calls ours
(`tcir.cute.engine`), which executes the PTX. Needs the packages of the extra ``cute``.
"""

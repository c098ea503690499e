"""Runs Triton and Gluon programs on the simulated machine: ``python -m tcir.triton script.py``.

The script runs unchanged, on CPU tensors. Triton compiles its kernels for sm_100a as it does for a
GPU. tcir's driver (`tcir.triton.driver`) receives each launch, executes its PTX and checks for
hazards. Needs the packages of the extra ``triton``.
"""

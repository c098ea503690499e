"""Triton and Gluon programs on the simulated machine: ``python -m tcir.triton script.py``.

The script runs as it is, on tensors of the CPU. Triton compiles its kernels for sm_100a as it does
for a GPU; a driver of ours (`tcir.triton.driver`) gets each launch and executes its PTX, with
hazards. Needs the packages of the extra ``triton``.
"""

"""Kernels of our own, compiled by other compilers and run from their PTX on the simulated machine.

`make peers` (or `python -m peers.run`) compiles them for sm_100a, runs each through `tcir.run_ptx`
and compares with numpy. Needs the compilers (Triton with Gluon; CuTe DSL), but no GPU. Their
output is kept in a temporary folder only.
"""

"""Executes PTX text on the simulated machine: parser, decoded instructions, warps.

Knows `tcir.machine` and nothing of the compiler. The entry point for users is `tcir.run.run_ptx`.
"""

"""Executes PTX text on the simulated machine: parser, decoded instructions, warps.

Depends on `tcir.machine`, not on the compiler. The entry point for users is `tcir.run.run_ptx`.
"""

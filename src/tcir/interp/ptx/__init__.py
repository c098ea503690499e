"""Executes PTX text on the simulated machine: the parser, the decoded instructions, and the warps.

This package depends on `tcir.machine`, not on the compiler. The entry point for users is
`tcir.run.run_ptx`.
"""

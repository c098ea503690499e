"""`tcir.prove`: checks PTX and the data of its launches with sentryward, a third-party static
verifier.

The verifier judges every schedule of a kernel, whereas the simulated machine executes one or a few
schedules. docs/reference/prove.md explains how far the verifier's verdicts can be relied on.
"""

"""`tcir.prove`: checks PTX and launch data with sentryward, a third-party static verifier.

The verifier judges every schedule, whereas the machine executes one or a few.
docs/reference/prove.md explains how far its verdicts can be relied on.
"""

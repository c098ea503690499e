"""`tcir.prove`: checks PTX and launch data with sentryward, a third-party static verifier.

The verifier judges every schedule, whereas the machine executes one or a few.
docs/reference/prove.md describes what its verdicts are worth.
"""

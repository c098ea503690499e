"""`tcir.prove`: PTX and launch data handed to sentryward, a static verifier of other people's.

It judges every schedule, where the machine executes one or a few. docs/reference/prove.md says what
its verdicts are worth.
"""

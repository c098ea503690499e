"""Executes loops that compute and load by one call of compiled code, not instruction by
instruction.

The code returns before anything that the machine must check, which is then executed as usual.
"""

"""Executes loops that compute and load by one call of compiled code, instead of instruction by
instruction.

The compiled code returns before any instruction that the machine must check; that instruction is
then executed as usual.
"""

"""Observes accesses of instructions to registers or memory that an operation in flight still uses.

Each file wraps the ops of a program that need such a check.
"""

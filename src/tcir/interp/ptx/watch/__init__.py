"""Accesses of instructions to registers that an operation in flight still reads or writes.

Each file wraps the ops of a program that touch such registers.
"""

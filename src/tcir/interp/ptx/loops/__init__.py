"""Loops that compute and load: one call of compiled code, not one instruction after the other.

It stops in front of whatever the machine has to look at, so that this is executed as always.
"""

"""Happens-before: clocks, accesses, findings."""

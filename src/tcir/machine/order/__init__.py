"""Happens-before: clocks, accesses to memory, and the hazards that follow from them."""

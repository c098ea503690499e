"""Inputs for which the ops of a program operate at their boundaries: ties of roundings, limits of
types, constants of comparisons, ends of blocks.
"""

from tcir.program.boundary.executions import PlacedInputs, boundary_inputs

__all__ = ["PlacedInputs", "boundary_inputs"]

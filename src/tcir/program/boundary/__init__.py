"""Inputs at the boundaries of a program's ops: ties, limits, constants, ends of blocks."""

from tcir.program.boundary.executions import PlacedInputs, boundary_inputs

__all__ = ["PlacedInputs", "boundary_inputs"]

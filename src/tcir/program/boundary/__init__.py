"""Inputs at the boundaries of a program's ops: ties, limits, constants, ends of blocks."""

from tcir.program.boundary.executions import Placed, boundary_inputs

__all__ = ["Placed", "boundary_inputs"]

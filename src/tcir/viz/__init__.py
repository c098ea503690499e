"""Pictures of layouts, memories, schedules and reports: SVG, HTML and terminal text.

Knows the layout algebra; the views of kernels import the MLIR bindings when they are used. Knows
nothing of the simulated machine.
"""

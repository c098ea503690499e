"""Pictures of layouts, memories, schedules and reports: SVG, HTML and terminal text.

Depends on the layout algebra; the views of kernels import the MLIR bindings when used. Does not
depend on the simulated machine.
"""

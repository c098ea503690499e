"""Pictures of layouts, memories, schedules and reports, as SVG, HTML and terminal text.

The package depends on `tcir.layout`; the views of kernels import the MLIR bindings when they are
used. It does not depend on the simulated machine.
"""

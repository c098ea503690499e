"""The simulated hardware. Imports nothing of the compiler and no MLIR."""

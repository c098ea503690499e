"""Layout algebra: shape:stride layouts, swizzles, descriptor and TMEM layouts. Imports no MLIR."""

"""Creates kernels from numpy arrays, for users who do not write MLIR.

Each function generates the program as `linalg` text (``kernel.mlir``) for the shapes and types of
its arguments, compiles it, and keeps the arrays as the kernel's example inputs:

    kernel = tcir.compile_matmul(a, b, bias=bias, activation="relu", out="float16")
    y = kernel.run()                     # on the simulated machine
    print(kernel.validate())             # executed and compared after every pass
"""

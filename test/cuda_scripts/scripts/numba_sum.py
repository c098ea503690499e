"""numba.cuda: a sum through shared memory, and one through a device function.

With the argument "race" there is no barrier between its steps.
"""

import sys
import warnings

import numpy as np
from numba import cuda

warnings.simplefilter("ignore")
RACE = "race" in sys.argv


@cuda.jit(device=True)
def twice(x):
    return x + x


@cuda.jit(lineinfo=True)
def total(x, out):
    part = cuda.shared.array(128, "float32")
    t = cuda.threadIdx.x
    part[t] = x[t]
    cuda.syncthreads()
    step = 64
    while step:
        if t < step:
            part[t] += part[t + step]
        if not RACE:
            cuda.syncthreads()
        step //= 2
    if t == 0:
        out[0] = part[0]


@cuda.jit
def doubled(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = twice(x[i])


x = np.arange(128, dtype=np.float32)
out = cuda.device_array(1, np.float32)
total[1, 128](cuda.to_device(x), out)
y = x.copy()
doubled[2, 96](y)
right = (y == 2 * x).all() and (RACE or out.copy_to_host()[0] == x.sum())
print("right" if right else "wrong")

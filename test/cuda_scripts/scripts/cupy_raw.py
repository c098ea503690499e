"""CuPy: RawKernel, a template in a RawModule, its variable, elementwise kernels and a reduction.

With the argument "sort" it calls a function of Thrust, which CuPy has as machine code.
"""

import sys

import cupy as cp

add = cp.RawKernel(
    """extern "C" __global__ void add(const float *x, const float *y, float *z) {
         int i = blockDim.x * blockIdx.x + threadIdx.x;
         z[i] = x[i] + y[i];
       }""",
    "add",
    options=("-lineinfo",),
)
x = cp.arange(25, dtype=cp.float32).reshape(5, 5)
z = cp.zeros((5, 5), dtype=cp.float32)
add((5,), (5,), (x, x, z))
right = cp.asnumpy(z).tolist() == cp.asnumpy(x * 2).tolist()

module = cp.RawModule(
    code="""__constant__ double factor;
            template <typename T> __global__ void fill(T *p, T v) {
              p[threadIdx.x] = v * factor;
            }""",
    name_expressions=["fill<double>"],
)
fill = module.get_function("fill<double>")
cp.ndarray(1, cp.float64, module.get_global("factor"))[...] = 4
filled = cp.empty(8)
fill((1,), (8,), (filled, cp.float64(3)))
right = right and filled.get().tolist() == [12] * 8 and float(x.sum()) == 300
print("right" if right else "wrong")
if "sort" in sys.argv:
    print(cp.sort(cp.arange(9)[::-1]))

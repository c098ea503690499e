"""cuda.core: a C++ template compiled at run time to a cubin, launched on a stream."""

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

CODE = """
template <typename T> __global__ void axpy(T a, const T *x, T *y, size_t n) {
  size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
  if (i < n) y[i] += a * x[i];
}
"""
device = Device()
device.set_current()
stream = device.create_stream()
program = Program(CODE, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}"))
kernel = program.compile("cubin", name_expressions=("axpy<float>",)).get_kernel("axpy<float>")

n = 300
x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
buffers = [device.memory_resource.allocate(each.nbytes, stream=stream) for each in (x, y)]
for buffer, array in zip(buffers, (x, y), strict=True):
    driver.cuMemcpyHtoD(int(buffer.handle), array, array.nbytes)
config = LaunchConfig(grid=3, block=128)
launch(stream, config, kernel, np.float32(2), *buffers, np.uint64(n))
stream.sync()
out = np.empty_like(y)
driver.cuMemcpyDtoH(out, int(buffers[1].handle), out.nbytes)
print("right" if (out == y + 2 * x).all() else "wrong")

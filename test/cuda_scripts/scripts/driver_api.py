"""A kernel through the CUDA driver's own bindings; prints what each call says."""

import sys

import numpy as np
from cuda.bindings import driver

PTX = b"""
.version 8.8
.target sm_100a
.address_size 64
.global .u32 offset = 3;
.visible .entry iota(.param .u64 p, .param .u32 n) {
  .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .pred %q;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %q, %r2, %r1;
  @%q ret;
  ld.global.u32 %r3, [offset];
  add.u32 %r4, %r2, %r3;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
  ret;
}
"""


def check(error: driver.CUresult, *values: object) -> object:
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return values[0] if len(values) == 1 else values


check(*driver.cuInit(0))
device = check(*driver.cuDeviceGet(0))
print(check(*driver.cuDeviceGetName(64, device)).rstrip(b"\0").decode())
check(*driver.cuCtxSetCurrent(check(*driver.cuDevicePrimaryCtxRetain(device))))
module = check(*driver.cuModuleLoadData(PTX + b"\0"))
kernel = check(*driver.cuModuleGetFunction(module, b"iota"))
print(driver.cuModuleGetFunction(module, b"other")[0].name)
print(driver.cuModuleLoadData(b"\x7fELF" + bytes(60))[0].name)
print(driver.cuFuncGetParamInfo(kernel, 1)[1:], driver.cuFuncGetParamInfo(kernel, 2)[0].name)
where, size = check(*driver.cuModuleGetGlobal(module, b"offset"))
check(*driver.cuMemcpyHtoD(where, np.array([5], np.uint32), size))

n = 40
memory = check(*driver.cuMemAlloc(4 * n))
check(*driver.cuMemsetD32(memory, 7, n))
values = (memory, n - 2), (None, np.ctypeslib.ctypes.c_uint32)
check(*driver.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, 0, values, 0))
out = np.empty(n, np.uint32)
check(*driver.cuMemcpyDtoH(out, memory, out.nbytes))
print("right" if out.tolist() == [*range(5, n + 3), 7, 7] else out)
if "outside" in sys.argv:
    check(*driver.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, 0, ((memory, n + 1), values[1]), 0))

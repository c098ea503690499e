// bfloat16 loads, f32 sums, one bfloat16 result per row.
//
// class:      cuda
// launch:     grid=4, block=32
// arg x:      (np.arange(256) % 5).astype(ml_dtypes.bfloat16)
// arg y:      undefined(4, ml_dtypes.bfloat16)
// expect y:   x.reshape(4, 64).astype(np.float32).sum(1)
// silicon:    clean
// isa:        clean

#include <cuda_bf16.h>
extern "C" __global__ void rows(const __nv_bfloat16 *x, __nv_bfloat16 *y) {
  float v = 0;
  for (int i = threadIdx.x; i < 64; i += 32) v += __bfloat162float(x[blockIdx.x * 64 + i]);
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  if (threadIdx.x == 0) y[blockIdx.x] = __float2bfloat16(v);
}

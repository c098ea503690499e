// Packed half arithmetic: y = 2 x + 1 on pairs.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(64).astype(np.float16)
// arg y:      undefined(64, np.float16)
// expect y:   2 * x + 1
// silicon:    clean
// isa:        clean

#include <cuda_fp16.h>
extern "C" __global__ void line(const __half2 *x, __half2 *y) {
  y[threadIdx.x] = __hfma2(x[threadIdx.x], __float2half2_rn(2.f), __float2half2_rn(1.f));
}

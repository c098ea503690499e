// float to e4m3 and back through the conversion intrinsics.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      (np.arange(32) - 16).astype(np.float32) / 4
// arg y:      undefined(32, np.float32)
// expect y:   x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
// silicon:    clean
// isa:        clean

#include <cuda_fp8.h>
extern "C" __global__ void trip(const float *x, float *y) {
  y[threadIdx.x] = float(__nv_fp8_e4m3(x[threadIdx.x]));
}

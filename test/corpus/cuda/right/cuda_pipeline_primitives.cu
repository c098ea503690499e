// __pipeline_memcpy_async: two stages, each thread fetches and reads its own 16 bytes.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(512, dtype=np.int32)
// arg y:      undefined(128, np.int32)
// expect y:   x.reshape(4, 128).sum(0)
// silicon:    clean
// isa:        clean

#include <cuda_pipeline.h>
extern "C" __global__ void sum(const int4 *x, int4 *y) {
  __shared__ int4 s[2][32];
  int t = threadIdx.x;
  int4 v = {0, 0, 0, 0};
  __pipeline_memcpy_async(&s[0][t], &x[t], 16);
  __pipeline_commit();
  for (int i = 0; i < 4; ++i) {
    if (i < 3) __pipeline_memcpy_async(&s[(i + 1) % 2][t], &x[(i + 1) * 32 + t], 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    int4 a = s[i % 2][t];
    v.x += a.x, v.y += a.y, v.z += a.z, v.w += a.w;
  }
  y[t] = v;
}

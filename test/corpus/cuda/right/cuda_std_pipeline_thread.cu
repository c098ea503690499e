// cuda::make_pipeline(): a pipeline of one thread, two stages of cp.async.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(160, dtype=np.int32)
// arg y:      undefined(32, np.int32)
// expect y:   x.reshape(5, 32).max(0)
// silicon:    clean
// isa:        clean

#include <cuda/pipeline>
extern "C" __global__ void maximum(const int *x, int *y) {
  __shared__ int s[2][32];
  auto pipe = cuda::make_pipeline();
  int t = threadIdx.x, v = -1;
  for (int next = 0, i = 0; i < 5; ++i) {
    for (; next < 5 && next < i + 2; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(&s[next % 2][t], &x[next * 32 + t], sizeof(int), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    v = max(v, s[i % 2][t]);
    pipe.consumer_release();
  }
  y[t] = v;
}

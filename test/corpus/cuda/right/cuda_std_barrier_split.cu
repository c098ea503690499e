// cuda::barrier with a token: arrive, independent work, wait.
//
// class:      cuda
// launch:     grid=2, block=64
// arg x:      np.arange(128, dtype=np.int32)
// arg y:      undefined(128, np.int32)
// expect y:   (x.reshape(2, 64)[:, ::-1] + (np.arange(64) ** 2)).ravel()
// silicon:    clean
// isa:        clean

#include <cuda/barrier>
extern "C" __global__ void mirror(const int *x, int *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (t == 0) init(&bar, 64);
  __syncthreads();
  s[t] = x[i];
  auto token = bar.arrive();
  int own = t * t;
  bar.wait(std::move(token));
  y[i] = own + s[63 - t];
}

// Four bulk copies in a row on one cuda::barrier, each awaited by all threads before the next.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(1024, dtype=np.int32)
// arg y:      undefined(256, np.int32)
// expect y:   x.reshape(4, 256).max(0)
// silicon:    clean
// isa:        clean

#include <cuda/barrier>
extern "C" __global__ void maximum(const int *x, int *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(128) int s[256];
  int t = threadIdx.x, v[4] = {0, 0, 0, 0};
  if (t == 0) init(&bar, 64);
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    cuda::barrier<cuda::thread_scope_block>::arrival_token token;
    if (t == 0) {
      cuda::device::memcpy_async_tx(s, x + 256 * i, cuda::aligned_size_t<16>(1024), bar);
      token = cuda::device::barrier_arrive_tx(bar, 1, 1024);
    } else {
      token = bar.arrive(1);
    }
    bar.wait(std::move(token));
    for (int k = 0; k < 4; ++k) v[k] = max(v[k], s[64 * k + t]);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
  }
  for (int k = 0; k < 4; ++k) y[64 * k + t] = v[k];
}

// cuda::device::memcpy_async_tx: one thread starts a bulk copy and announces its bytes.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(64, dtype=np.float32)
// arg y:      undefined(64, np.float32)
// expect y:   x[::-1]
// silicon:    clean
// isa:        clean

#include <cuda/barrier>
extern "C" __global__ void mirror(const float *x, float *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(128) float s[64];
  if (threadIdx.x == 0) init(&bar, 64);
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(s, x, cuda::aligned_size_t<16>(256), bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, 256);
  } else {
    token = bar.arrive(1);
  }
  bar.wait(std::move(token));
  y[threadIdx.x] = s[63 - threadIdx.x];
}

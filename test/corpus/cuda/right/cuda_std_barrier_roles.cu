// Producer and consumer warps with two cuda::barriers, full and empty, over four items.
//
// class:      cuda
// launch:     grid=1, block=64
// arg y:      undefined((4, 32), np.int32)
// expect y:   np.arange(4)[:, None] * 10 + np.arange(32)
// silicon:    clean
// isa:        clean

#include <cuda/barrier>
using bar_t = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void stream(int *y) {
  __shared__ bar_t full, empty;
  __shared__ int slot[32];
  int t = threadIdx.x % 32;
  if (threadIdx.x == 0) init(&full, 64), init(&empty, 64);
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int i = 0; i < 4; ++i) {
      empty.arrive_and_wait();
      slot[t] = 10 * i + t;
      (void)full.arrive();
    }
  } else {
    (void)empty.arrive();
    for (int i = 0; i < 4; ++i) {
      full.arrive_and_wait();
      y[32 * i + t] = slot[t];
      (void)empty.arrive();
    }
  }
}

// A cuda::latch: three warps count down, the fourth waits and adds up.
//
// class:      cuda
// launch:     grid=1, block=128
// arg y:      undefined(1, np.int32)
// expect y:   6
// silicon:    clean
// isa:        clean

#include <cuda/latch>
extern "C" __global__ void gather(int *y) {
  __shared__ cuda::latch<cuda::thread_scope_block> *l;
  __shared__ alignas(16) char room[sizeof(*l)];
  __shared__ int s[3];
  int w = threadIdx.x / 32;
  if (threadIdx.x == 0) l = new (room) cuda::latch<cuda::thread_scope_block>(3);
  __syncthreads();
  if (threadIdx.x % 32) return;
  if (w < 3) {
    s[w] = w + 1;
    l->count_down();
  } else {
    l->wait();
    *y = s[0] + s[1] + s[2];
  }
}

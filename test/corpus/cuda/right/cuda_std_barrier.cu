// cuda::barrier: three phases of arrive_and_wait around an exchange in shared memory.
//
// class:      cuda
// launch:     grid=1, block=64
// arg y:      undefined(64, np.int32)
// expect y:   (np.arange(64) + 3 * 21) % 64
// silicon:    clean
// isa:        clean

#include <cuda/barrier>
extern "C" __global__ void rotate(int *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int s[2][64];
  int t = threadIdx.x, v = t;
  if (t == 0) init(&bar, 64);
  __syncthreads();
  for (int i = 0; i < 3; ++i) {
    s[i % 2][t] = v;
    bar.arrive_and_wait();
    v = s[i % 2][(t + 21) % 64];
  }
  y[t] = v;
}

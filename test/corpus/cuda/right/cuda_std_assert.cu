// libcu++ without NDEBUG: its own assertions and __assertfail are in the code and hold.
//
// class:      cuda
// launch:     grid=1, block=32
// arg y:      undefined(32, np.int32)
// expect y:   np.arange(32) + 1
// silicon:    clean
// isa:        clean

#include <cassert>
#include <cuda/barrier>
#include <cuda/std/array>
extern "C" __global__ void two(int *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ cuda::std::array<int, 32> s;
  if (threadIdx.x == 0) init(&bar, 32);
  __syncthreads();
  s[threadIdx.x] = threadIdx.x + 1;
  bar.arrive_and_wait();
  assert(s[threadIdx.x] > 0);
  y[threadIdx.x] = s[threadIdx.x];
}

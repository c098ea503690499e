// cuda::memcpy_async of a whole block on a cuda::barrier.
//
// class:      cuda
// launch:     grid=2, block=32
// arg x:      np.arange(256, dtype=np.int32)
// arg y:      undefined(64, np.int32)
// expect y:   x.reshape(2, 4, 32).sum(1).ravel()
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;
extern "C" __global__ void sum(const int *x, int *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(16) int s[128];
  auto block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, 32);
  block.sync();
  cuda::memcpy_async(block, s, x + blockIdx.x * 128, cuda::aligned_size_t<16>(512), bar);
  bar.arrive_and_wait();
  int v = 0;
  for (int i = 0; i < 4; ++i) v += s[32 * i + threadIdx.x];
  y[blockIdx.x * 32 + threadIdx.x] = v;
}

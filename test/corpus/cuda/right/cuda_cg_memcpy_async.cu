// cg::memcpy_async and cg::wait of a block.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(64, dtype=np.int32)
// arg y:      undefined(64, np.int32)
// expect y:   x[::-1]
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
extern "C" __global__ void mirror(const int *x, int *y) {
  __shared__ alignas(16) int s[64];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, x, sizeof(s));
  cg::wait(block);
  for (int i = threadIdx.x; i < 64; i += 32) y[i] = s[63 - i];
}

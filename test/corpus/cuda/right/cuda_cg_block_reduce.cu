// Cooperative groups: a reduction over tiles of 32 and then over the block.
//
// class:      cuda
// launch:     grid=2, block=96
// arg x:      np.arange(192, dtype=np.int32)
// arg y:      np.zeros(2, np.int32)
// expect y:   x.reshape(2, 96).sum(1)
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void sums(const int *x, int *y) {
  __shared__ int total;
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) total = 0;
  block.sync();
  auto warp = cg::tiled_partition<32>(block);
  int v = cg::reduce(warp, x[blockIdx.x * 96 + threadIdx.x], cg::plus<int>());
  if (warp.thread_rank() == 0) atomicAdd(&total, v);
  block.sync();
  if (block.thread_rank() == 0) y[blockIdx.x] = total;
}

// Cooperative groups: tiles of 8 threads reduce by shuffles.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(64, dtype=np.int32)
// arg y:      undefined(8, np.int32)
// expect y:   x.reshape(8, 8).sum(1)
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void sums(const int *x, int *y) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int v = cg::reduce(tile, x[threadIdx.x], cg::plus<int>());
  if (tile.thread_rank() == 0) y[threadIdx.x / 8] = v;
}

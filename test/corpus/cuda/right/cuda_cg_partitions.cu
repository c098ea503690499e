// Binary and labeled partitions of a tile.
//
// class:      cuda
// launch:     grid=1, block=32
// arg y:      undefined((2, 32), np.int32)
// expect y:   [np.full(32, 16), [11 if n % 3 < 2 else 10 for n in range(32)]]
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void parts(int *y) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int t = threadIdx.x;
  auto even = cg::binary_partition(tile, t % 2 == 0);
  auto thirds = cg::labeled_partition(tile, t % 3);
  y[t] = even.size();
  y[32 + t] = thirds.size();
}

// Cooperative groups: inclusive and exclusive scans of a tile.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(1, 33, dtype=np.int32)
// arg y:      undefined((2, 32), np.int32)
// expect y:   [np.cumsum(x), np.cumsum(x) - x]
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void scans(const int *x, int *y) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int v = x[threadIdx.x];
  y[threadIdx.x] = cg::inclusive_scan(tile, v);
  y[32 + threadIdx.x] = cg::exclusive_scan(tile, v);
}

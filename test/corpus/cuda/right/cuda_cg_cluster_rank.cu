// Distributed shared memory: each block of a cluster reads its neighbour's row.
//
// class:      cuda
// launch:     grid=4, block=32, cluster=4
// arg y:      undefined((4, 32), np.int32)
// expect y:   (np.arange(4)[:, None] + 1) % 4 * 100 + np.arange(32)
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4, 1, 1) pass(int *y) {
  __shared__ int s[32];
  auto cluster = cg::this_cluster();
  int r = cluster.block_rank(), t = threadIdx.x;
  s[t] = 100 * r + t;
  cluster.sync();
  y[32 * r + t] = cluster.map_shared_rank(s, (r + 1) % 4)[t];
  cluster.sync();
}

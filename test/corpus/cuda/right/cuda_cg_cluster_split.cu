// Cluster barrier in two halves: arrive, own work, wait.
//
// class:      cuda
// launch:     grid=4, block=32, cluster=2
// arg y:      undefined((4, 32), np.int32)
// expect y:   (np.arange(4)[:, None] ^ 1) * 32 + 31 - np.arange(32) + np.arange(32) ** 2
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) pass(int *y) {
  __shared__ int s[32];
  auto cluster = cg::this_cluster();
  int t = threadIdx.x;
  s[t] = blockIdx.x * 32 + t;
  cluster.barrier_arrive();
  int own = t * t;
  cluster.barrier_wait();
  y[blockIdx.x * 32 + t] = own + cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[31 - t];
  cluster.sync();
}

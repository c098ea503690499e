// The cluster histogram of the programming guide: bins distributed over two blocks.
//
// class:      cuda
// launch:     grid=2, block=32, cluster=2
// arg x:      (np.arange(128) * 7 % 16).astype(np.int32)
// arg bins:   np.zeros(16, np.int32)
// expect bins: np.bincount(x, minlength=16)
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) histogram(const int *x, int *bins) {
  __shared__ int s[8];
  auto cluster = cg::this_cluster();
  if (threadIdx.x < 8) s[threadIdx.x] = 0;
  cluster.sync();
  for (int i = blockIdx.x * 32 + threadIdx.x; i < 128; i += 64)
    atomicAdd(cluster.map_shared_rank(s, x[i] / 8) + x[i] % 8, 1);
  cluster.sync();
  if (threadIdx.x < 8) bins[cluster.block_rank() * 8 + threadIdx.x] = s[threadIdx.x];
}

// Blocks of a cluster read each other's shared memory without cluster.sync() in between.
//
// class:      clusters
// missing:    cluster.sync() between the stores and the remote loads
// source:     CUDA C++ Programming Guide "Distributed Shared Memory"; PTX ISA 9.7.13.3
// launch:     grid=2, block=32, cluster=2
// arg y:      undefined((2, 32), np.int32)
// expect y:   [[1], [0]] + np.zeros(32)
// silicon:    error race|undefined-read
// isa:        error race|undefined-read

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) pass(int *y) {
  __shared__ int s[32];
  auto cluster = cg::this_cluster();
  s[threadIdx.x] = cluster.block_rank();
  EDGE("barrier.cluster.arrive; barrier.cluster.wait;");
  y[cluster.block_rank() * 32 + threadIdx.x] =
      *(volatile int *)(cluster.map_shared_rank(s, cluster.block_rank() ^ 1) + threadIdx.x);
  cluster.sync();
}

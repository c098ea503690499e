// Coalesced threads of a divergent branch aggregate an atomic.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(64, dtype=np.int32)
// arg count:  np.zeros(1, np.int32)
// arg y:      undefined(22, np.int32)
// expect count: 22
// expect y:   any
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void keep(const int *x, int *count, int *y) {
  int v = x[threadIdx.x];
  if (v % 3 == 0) {
    auto g = cg::coalesced_threads();
    int at;
    if (g.thread_rank() == 0) at = atomicAdd(count, g.size());
    y[g.shfl(at, 0) + g.thread_rank()] = v;
  }
}

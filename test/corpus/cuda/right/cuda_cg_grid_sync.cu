// A cooperative launch: every block reads its neighbour's word behind grid.sync().
//
// class:      cuda
// launch:     grid=4, block=32, ctas_per_sm=4
// arg a:      undefined(4, np.int32)
// arg y:      undefined(4, np.int32)
// expect a:   [0, 10, 20, 30]
// expect y:   [10, 20, 30, 0]
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void pass(int *a, int *y) {
  auto grid = cg::this_grid();
  if (threadIdx.x == 0) a[blockIdx.x] = 10 * blockIdx.x;
  grid.sync();
  if (threadIdx.x == 0) y[blockIdx.x] = a[(blockIdx.x + 1) % gridDim.x];
}

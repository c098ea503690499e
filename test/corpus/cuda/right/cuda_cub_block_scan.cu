// cub::BlockScan: an exclusive sum and the block's total.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(64, dtype=np.int32)
// arg y:      undefined(65, np.int32)
// expect y:   np.concatenate([[0], np.cumsum(x)])
// silicon:    clean
// isa:        clean

#include <cub/block/block_scan.cuh>
extern "C" __global__ void scan(const int *x, int *y) {
  using Scan = cub::BlockScan<int, 64>;
  __shared__ typename Scan::TempStorage room;
  int v, total;
  Scan(room).ExclusiveSum(x[threadIdx.x], v, total);
  y[threadIdx.x] = v;
  if (threadIdx.x == 0) y[64] = total;
}

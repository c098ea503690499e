// cub::WarpReduce of parts of a warp and cub::WarpScan, one storage per warp.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(64, dtype=np.int32)
// arg y:      undefined((2, 64), np.int32)
// expect y:   [np.repeat(x.reshape(8, 8).max(1), 8), np.cumsum(x.reshape(2, 32), 1).ravel()]
// silicon:    clean
// isa:        clean

#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
struct Max { __device__ int operator()(int a, int b) const { return a > b ? a : b; } };
extern "C" __global__ void both(const int *x, int *y) {
  using Reduce = cub::WarpReduce<int, 8>;
  using Scan = cub::WarpScan<int>;
  __shared__ typename Reduce::TempStorage r[8];
  __shared__ typename Scan::TempStorage s[2];
  int t = threadIdx.x, v = x[t], m = Reduce(r[t / 8]).Reduce(v, Max()), sum;
  m = __shfl_sync(0xffffffff, m, t % 32 & 24);
  Scan(s[t / 32]).InclusiveSum(v, sum);
  y[t] = m;
  y[64 + t] = sum;
}

// cub::BlockReduce, the default algorithm.
//
// class:      cuda
// launch:     grid=2, block=128
// arg x:      np.arange(256, dtype=np.int32)
// arg y:      undefined(2, np.int32)
// expect y:   x.reshape(2, 128).sum(1)
// silicon:    clean
// isa:        clean

#include <cub/block/block_reduce.cuh>
extern "C" __global__ void sum(const int *x, int *y) {
  using Reduce = cub::BlockReduce<int, 128>;
  __shared__ typename Reduce::TempStorage room;
  int v = Reduce(room).Sum(x[blockIdx.x * 128 + threadIdx.x]);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}

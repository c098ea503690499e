// cub::BlockRadixSort of 64 keys of 8 bits, two per thread.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      (np.arange(64) * 41 % 251).astype(np.uint8)
// arg y:      undefined(64, np.uint8)
// expect y:   np.sort(x)
// silicon:    clean
// isa:        clean

#include <cub/block/block_radix_sort.cuh>
extern "C" __global__ void sort(const unsigned char *x, unsigned char *y) {
  using Sort = cub::BlockRadixSort<unsigned char, 32, 2>;
  __shared__ typename Sort::TempStorage room;
  unsigned char v[2] = {x[2 * threadIdx.x], x[2 * threadIdx.x + 1]};
  Sort(room).Sort(v);
  y[2 * threadIdx.x] = v[0];
  y[2 * threadIdx.x + 1] = v[1];
}

// Sequentially consistent atomics (the default) as a ticket of the last block.
//
// class:      cuda
// launch:     grid=3, block=1
// arg part:   undefined(3, np.int32)
// arg count:  np.zeros(1, np.int32)
// arg out:    undefined(1, np.int32)
// expect part: [1, 4, 9]
// expect count: 3
// expect out: 14
// silicon:    clean
// isa:        clean

#include <cuda/atomic>
extern "C" __global__ void reduce(int *part, int *count, int *out) {
  part[blockIdx.x] = (blockIdx.x + 1) * (blockIdx.x + 1);
  cuda::atomic_ref<int, cuda::thread_scope_device> c(*count);
  if (c.fetch_add(1) == 2) *out = part[0] + part[1] + part[2];
}

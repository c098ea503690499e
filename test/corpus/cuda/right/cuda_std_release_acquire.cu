// Message passing between blocks by atomic_ref: store release, load acquire.
//
// class:      cuda
// launch:     grid=2, block=1
// arg data:   undefined(2, np.int32)
// arg flag:   np.zeros(1, np.int32)
// arg out:    undefined(1, np.int32)
// expect data: [20, 22]
// expect flag: 1
// expect out: 42
// silicon:    clean
// isa:        clean

#include <cuda/atomic>
extern "C" __global__ void pass(int *data, int *flag, int *out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag);
  if (blockIdx.x == 0) {
    data[0] = 20;
    data[1] = 22;
    f.store(1, cuda::memory_order_release);
  } else {
    while (f.load(cuda::memory_order_acquire) == 0) {}
    *out = data[0] + data[1];
  }
}

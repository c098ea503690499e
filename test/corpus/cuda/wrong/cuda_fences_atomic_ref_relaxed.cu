// Message passing between blocks by cuda::atomic_ref with relaxed order.
//
// class:      fences
// missing:    release of the store and acquire of the load, or thread fences
// source:     PTX ISA 8.8 "Release and acquire patterns"
// launch:     grid=2, block=1
// arg data:   undefined(1, np.int32)
// arg flag:   np.zeros(1, np.int32)
// arg out:    undefined(1, np.int32)
// expect data: 6
// expect flag: 1
// expect out: 6
// silicon:    error race
// isa:        error race

#include <cuda/atomic>
extern "C" __global__ void pass(int *data, int *flag, int *out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag);
  if (blockIdx.x == 0) {
    *data = 6;
    EDGE("fence.acq_rel.gpu;");
    f.store(1, cuda::memory_order_relaxed);
  } else {
    while (f.load(cuda::memory_order_relaxed) == 0) {}
    EDGE("fence.acq_rel.gpu;");
    *out = *data;
  }
}

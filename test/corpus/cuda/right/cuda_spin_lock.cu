// A spin lock by atomicCAS with fences around the critical section, 4 blocks, 2 rounds each.
//
// class:      cuda
// launch:     grid=4, block=32
// arg lock:   np.zeros(1, np.int32)
// arg sum:    np.zeros(1, np.int32)
// expect sum: 20
// silicon:    clean
// isa:        clean

extern "C" __global__ void add(int *lock, int *sum) {
  if (threadIdx.x) return;
  for (int i = 0; i < 2; ++i) {
    while (atomicCAS(lock, 0, 1)) {}
    __threadfence();
    *sum += blockIdx.x + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

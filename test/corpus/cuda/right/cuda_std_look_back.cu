// A decoupled look-back scan: status and value in one 64-bit word, relaxed.
//
// class:      cuda
// launch:     grid=4, block=1
// arg x:      np.array([3, 5, 7, 9], np.uint32)
// arg status: np.zeros(4, np.uint64)
// arg y:      undefined(4, np.uint32)
// expect status: [2 << 32 | 3, 2 << 32 | 8, 2 << 32 | 15, 2 << 32 | 24]
// expect y:   [3, 8, 15, 24]
// silicon:    clean
// isa:        clean

#include <cuda/atomic>
extern "C" __global__ void scan(const unsigned *x, unsigned long long *status, unsigned *y) {
  using word = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;
  int b = blockIdx.x;
  unsigned sum = x[b], before = 0;
  word(status[b]).store((b ? 1ull : 2ull) << 32 | sum, cuda::memory_order_relaxed);
  for (int i = b - 1; i >= 0; --i) {
    unsigned long long s;
    while (!((s = word(status[i]).load(cuda::memory_order_relaxed)) >> 32)) {}
    before += (unsigned)s;
    if (s >> 32 == 2) break;
  }
  if (b) word(status[b]).store(2ull << 32 | (before + sum), cuda::memory_order_relaxed);
  y[b] = before + sum;
}

// cuda::ptx: mbarrier_init, expect_tx, a bulk copy and a polling wait of all threads.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(64, dtype=np.int32)
// arg y:      undefined(64, np.int32)
// expect y:   x ^ 63
// silicon:    clean
// isa:        clean

#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void mirror(const int *x, int *y) {
  __shared__ alignas(128) int s[64];
  __shared__ alignas(8) cuda::std::uint64_t bar;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 256);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, x, 256, &bar);
  }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
  y[threadIdx.x] = s[63 - threadIdx.x];
}

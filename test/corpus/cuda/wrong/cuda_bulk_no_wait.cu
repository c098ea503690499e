// A block reads what a bulk copy brings as soon as it has been started.
//
// class:      mbarrier
// missing:    the wait for the barrier that counts the bytes
// source:     PTX ISA 9.7.9.25.4 "cp.async.bulk"
// launch:     grid=1, block=32
// arg x:      np.arange(32, dtype=np.int32)
// arg y:      undefined(32, np.int32)
// expect y:   x
// silicon:    error race|undefined-read
// isa:        error race|undefined-read

#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void copy(const int *x, int *y) {
  __shared__ alignas(128) volatile int s[32];
  __shared__ alignas(8) cuda::std::uint64_t bar;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 128);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, (int *)s, x, 128, &bar);
    asm volatile("// EDGE: { .reg .pred q; W: mbarrier.try_wait.parity.shared::cta.b64 q, [%0], 0; @!q bra W; }"
                 :: "r"((unsigned)__cvta_generic_to_shared(&bar)) : "memory");
  }
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
  if (threadIdx.x == 0) while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
}

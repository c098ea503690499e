// cuda::pipeline with one producer warp and one consumer warp.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(96, dtype=np.int32)
// arg y:      undefined(96, np.int32)
// expect y:   2 * x
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
extern "C" __global__ void scale(const int *x, int *y) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ int s[2][32];
  auto block = cg::this_thread_block();
  auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  int t = threadIdx.x % 32;
  for (int i = 0; i < 3; ++i) {
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      cuda::memcpy_async(&s[i % 2][t], &x[32 * i + t], sizeof(int), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      y[32 * i + t] = 2 * s[i % 2][t];
      pipe.consumer_release();
    }
  }
}

// Eight blocks of 1 KB through a two-stage pipeline: its waits poll the barrier and %globaltimer.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(2048, dtype=np.int32)
// arg y:      undefined(256, np.int32)
// expect y:   x.reshape(8, 256).sum(0)
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
extern "C" __global__ void sum(const int *x, int *y) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) int s[2][256];
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int v[4] = {0, 0, 0, 0};
  for (int next = 0, i = 0; i < 8; ++i) {
    for (; next < 8 && next < i + 2; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[next % 2], x + next * 256, cuda::aligned_size_t<16>(1024), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    for (int k = 0; k < 4; ++k) v[k] += s[i % 2][k * 64 + threadIdx.x];
    pipe.consumer_release();
  }
  for (int k = 0; k < 4; ++k) y[k * 64 + threadIdx.x] = v[k];
}

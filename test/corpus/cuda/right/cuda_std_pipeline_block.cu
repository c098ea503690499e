// cuda::pipeline of a block: two stages, all threads produce and consume.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(128, dtype=np.int32)
// arg y:      undefined(32, np.int32)
// expect y:   x.reshape(4, 32)[:, ::-1].sum(0)
// silicon:    clean
// isa:        clean

#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
extern "C" __global__ void sum(const int *x, int *y) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) int s[2][32];
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int v = 0;
  for (int next = 0, i = 0; i < 4; ++i) {
    for (; next < 4 && next < i + 2; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[next % 2], x + next * 32, cuda::aligned_size_t<16>(128), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    v += s[i % 2][31 - threadIdx.x];
    pipe.consumer_release();
  }
  y[threadIdx.x] = v;
}

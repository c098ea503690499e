// cuda::ptx: a block fills a tile, fences the proxy, and one thread stores it in bulk.
//
// class:      cuda
// launch:     grid=2, block=32
// arg y:      undefined(64, np.int32)
// expect y:   np.arange(64) * 3
// silicon:    clean
// isa:        clean

#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void fill(int *y) {
  __shared__ alignas(128) int s[32];
  s[threadIdx.x] = 3 * (blockIdx.x * 32 + threadIdx.x);
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + blockIdx.x * 32, s, 128);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

// A counting semaphore in shared memory lets two of four warps in at a time.
//
// class:      cuda
// launch:     grid=1, block=128
// arg y:      np.zeros(1, np.int32)
// expect y:   10
// silicon:    clean
// isa:        clean

#include <cuda/semaphore>
extern "C" __global__ void enter(int *y) {
  __shared__ cuda::counting_semaphore<cuda::thread_scope_block> *s;
  __shared__ alignas(16) char room[sizeof(*s)];
  if (threadIdx.x == 0) s = new (room) cuda::counting_semaphore<cuda::thread_scope_block>(2);
  __syncthreads();
  if (threadIdx.x % 32) return;
  s->acquire();
  atomicAdd(y, (int)threadIdx.x / 32 + 1);
  s->release();
}

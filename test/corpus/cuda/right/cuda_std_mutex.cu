// A binary semaphore of device scope guards a plain counter of several blocks.
//
// class:      cuda
// launch:     grid=3, block=32
// arg sem:    np.ones(4, np.int64)
// arg y:      np.zeros(1, np.int32)
// expect sem: any
// expect y:   3
// silicon:    clean
// isa:        clean

#include <cuda/semaphore>
extern "C" __global__ void enter(cuda::binary_semaphore<cuda::thread_scope_device> *sem, int *y) {
  if (threadIdx.x) return;
  sem->acquire();
  *y = *y + 1;
  sem->release();
}

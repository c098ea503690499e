// A device assert that holds, compiled without NDEBUG.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(1, 33, dtype=np.int32)
// arg y:      undefined(32, np.int32)
// expect y:   5040 // x
// silicon:    clean
// isa:        clean

#include <cassert>
extern "C" __global__ void divide(const int *x, int *y) {
  assert(x[threadIdx.x] != 0);
  y[threadIdx.x] = 5040 / x[threadIdx.x];
}

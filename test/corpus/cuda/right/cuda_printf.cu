// Device printf: the text goes to the caller, the kernel goes on.
//
// class:      cuda
// launch:     grid=2, block=32
// arg y:      undefined(2, np.int32)
// expect y:   [1, 2]
// silicon:    clean
// isa:        clean

#include <cstdio>
extern "C" __global__ void say(int *y) {
  if (threadIdx.x == 0) {
    printf("block %d of %d\n", blockIdx.x, gridDim.x);
    y[blockIdx.x] = blockIdx.x + 1;
  }
}

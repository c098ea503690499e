// A recursive device function with a stack frame per call.
//
// class:      cuda
// launch:     grid=1, block=16
// arg y:      undefined(16, np.uint32)
// expect y:   [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 1, 1, 2, 3, 5, 8]
// silicon:    clean
// isa:        clean

__device__ __noinline__ unsigned fibonacci(unsigned n) {
  return n < 2 ? 1 : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void numbers(unsigned *y) { y[threadIdx.x] = fibonacci(threadIdx.x % 10); }

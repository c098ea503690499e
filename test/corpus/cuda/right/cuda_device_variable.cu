// A counter in a __device__ variable with an initial value.
//
// class:      cuda
// launch:     grid=3, block=32
// arg y:      np.zeros(3, np.uint32)
// expect y:   any
// silicon:    clean
// isa:        clean

__device__ unsigned next = 5;
extern "C" __global__ void tickets(unsigned *y) {
  if (threadIdx.x == 0) y[blockIdx.x] = atomicAdd(&next, 2u);
}

// A tile of shared memory filled by all threads and read by other warps.
//
// class:      barriers
// missing:    __syncthreads between the stores and the loads
// source:     PTX ISA 9.7.13.1 "bar"
// launch:     grid=1, block=64
// arg y:      undefined(64, np.int32)
// expect y:   np.arange(64)[::-1]
// silicon:    error race|undefined-read
// isa:        error race|undefined-read

extern "C" __global__ void mirror(int *y) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  EDGE("bar.sync 0;");
  y[threadIdx.x] = *(volatile int *)&s[63 - threadIdx.x];
}

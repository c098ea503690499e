// Lanes exchange words through shared memory, compiled by nvcc.
//
// class:      lanes
// missing:    __syncwarp between the stores and the loads
// source:     CUDA C++ Programming Guide "Independent Thread Scheduling"; PTX ISA 9.7.13.2
// launch:     grid=1, block=64
// arg y:      undefined(64, np.int32)
// expect y:   np.arange(64) ^ 3
// silicon:    error race
// isa:        error race

extern "C" __global__ void swap(int *y) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  EDGE("bar.warp.sync -1;");
  y[threadIdx.x] = *(volatile int *)&s[threadIdx.x ^ 3];
}

#include <assert.h>
#include <stdio.h>

__constant__ float coefficients[4];
__device__ unsigned calls;
__device__ unsigned first = 7;

namespace poly {
// a cubic of x, coefficients[0] + coefficients[1] x + …
__global__ void horner(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) calls += 1;
  if (i >= n) return;
  float sum = coefficients[3];
  for (int k = 2; k >= 0; --k) sum = __fmaf_rn(sum, x[i], coefficients[k]);
  y[i] = sum;
}
}  // namespace poly

template <int SCALE>
__global__ void scaled(const float* x, float* y) { y[threadIdx.x] = SCALE * x[threadIdx.x]; }
template __global__ void scaled<2>(const float*, float*);
template __global__ void scaled<3>(const float*, float*);

__global__ void say(int what) {
  assert(what < 10);
  if (threadIdx.x == 0) printf("block %d of %d: %d\n", blockIdx.x, gridDim.x, what);
}

// every thread writes one element: a race
__global__ void race(int* out) { out[0] = threadIdx.x; }

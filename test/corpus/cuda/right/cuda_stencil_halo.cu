// A five-point stencil in one dimension with halo cells that the first threads fill.
//
// class:      cuda
// launch:     grid=3, block=32
// arg x:      np.arange(96, dtype=np.int32) ** 2
// arg y:      undefined(96, np.int32)
// expect y:   np.convolve(x, [1, 1, 1, 1, 1], 'same')
// silicon:    clean
// isa:        clean

extern "C" __global__ void stencil(const int *x, int *y) {
  __shared__ int s[36];
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  s[t + 2] = x[i];
  if (t < 2) s[t] = i >= 2 ? x[i - 2] : 0;
  else if (t < 4) s[t + 32] = i + 30 < 96 ? x[i + 30] : 0;
  __syncthreads();
  y[i] = s[t] + s[t + 1] + s[t + 2] + s[t + 3] + s[t + 4];
}

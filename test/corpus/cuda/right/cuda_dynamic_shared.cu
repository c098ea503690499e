// Dynamic shared memory cut into two arrays of different types.
//
// class:      cuda
// launch:     grid=1, block=32, dynamic_smem=384
// arg y:      undefined(32, np.float32)
// expect y:   np.arange(32)[::-1] * 1.5
// silicon:    clean
// isa:        clean

extern "C" __global__ void two(float *y) {
  extern __shared__ double pool[];
  double *a = pool;
  float *b = (float *)(pool + 32);
  int t = threadIdx.x;
  a[t] = t;
  b[t] = 1.5f;
  __syncthreads();
  y[t] = (float)a[31 - t] * b[t ^ 1];
}

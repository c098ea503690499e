// An inclusive scan in shared memory with two buffers in turns.
//
// class:      cuda
// launch:     grid=1, block=64
// arg x:      np.arange(64, dtype=np.int32)
// arg y:      undefined(64, np.int32)
// expect y:   np.cumsum(x)
// silicon:    clean
// isa:        clean

extern "C" __global__ void scan(const int *x, int *y) {
  __shared__ int s[2][64];
  int t = threadIdx.x, from = 0;
  s[0][t] = x[t];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    s[1 - from][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
    from = 1 - from;
    __syncthreads();
  }
  y[t] = s[from][t];
}

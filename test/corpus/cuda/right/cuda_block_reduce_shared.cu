// A tree reduction in shared memory with __syncthreads between the steps.
//
// class:      cuda
// launch:     grid=2, block=64
// arg x:      np.arange(128, dtype=np.int32)
// arg out:    undefined(2, np.int32)
// expect out: x.reshape(2, 64).sum(1)
// silicon:    clean
// isa:        clean

extern "C" __global__ void reduce(const int *x, int *out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// __syncthreads_count, _and and _or as block-wide votes.
//
// class:      cuda
// launch:     grid=2, block=96
// arg y:      undefined((2, 3), np.int32)
// expect y:   [[32, 0, 1], [32, 1, 1]]
// silicon:    clean
// isa:        clean

extern "C" __global__ void votes(int *y) {
  int t = threadIdx.x, b = blockIdx.x;
  int n = __syncthreads_count(t % 3 == 0), all = __syncthreads_and(b || t != 50),
      any = __syncthreads_or(t == 95);
  if (t == 0) y[3 * b] = n, y[3 * b + 1] = all != 0, y[3 * b + 2] = any != 0;
}

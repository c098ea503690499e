// A dot product of doubles with fma and shuffles of 64-bit values.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(64, dtype=np.float64)
// arg y:      undefined(1, np.float64)
// expect y:   (x * x).sum()
// silicon:    clean
// isa:        clean

extern "C" __global__ void dot(const double *x, double *y) {
  double v = 0;
  for (int i = threadIdx.x; i < 64; i += 32) v = fma(x[i], x[i], v);
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  if (threadIdx.x == 0) *y = v;
}

// An array of which some elements are set at run time only; all are copied, the set ones are stored.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      (np.arange(32) % 4).astype(np.int32)
// arg y:      undefined(32, np.int32)
// expect y:   x + np.arange(32)
// silicon:    clean
// isa:        clean

struct Row { int v[4]; };
__device__ __noinline__ Row shifted(Row r, int by) {
  for (int i = 0; i < 4; ++i) r.v[i] += by;
  return r;
}
extern "C" __global__ void rows(const int *x, int *y) {
  Row r;
  int at = x[threadIdx.x];
  r.v[at] = threadIdx.x;
  Row s = shifted(r, at);
  y[threadIdx.x] = s.v[at];
}

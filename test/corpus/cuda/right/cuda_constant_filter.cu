// A filter in constant memory, read with indices that differ from lane to lane.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(40, dtype=np.int32)
// arg y:      undefined(32, np.int32)
// expect y:   [sum((k + 1) * (n + k) for k in range(5)) for n in range(32)]
// silicon:    clean
// isa:        clean

__constant__ int weights[5] = {1, 2, 3, 4, 5};
extern "C" __global__ void filter(const int *x, int *y) {
  int v = 0;
  for (int k = 0; k < 5; ++k) {
    int j = (k + threadIdx.x) % 5;
    v += weights[j] * x[threadIdx.x + j];
  }
  y[threadIdx.x] = v;
}

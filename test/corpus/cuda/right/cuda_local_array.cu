// A local array with indices known at run time only: it lives in local memory.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      (np.arange(32 * 8) * 29 % 17).astype(np.int32)
// arg y:      undefined((32, 8), np.int32)
// expect y:   np.sort(x.reshape(32, 8), axis=1)
// silicon:    clean
// isa:        clean

extern "C" __global__ void sort(const int *x, int *y) {
  int v[8];
  for (int i = 0; i < 8; ++i) {
    int a = x[threadIdx.x * 8 + i], j = i;
    for (; j > 0 && v[j - 1] > a; --j) v[j] = v[j - 1];
    v[j] = a;
  }
  for (int i = 0; i < 8; ++i) y[threadIdx.x * 8 + i] = v[i];
}

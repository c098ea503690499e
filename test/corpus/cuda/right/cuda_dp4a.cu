// Quantised dot products by __dp4a, one row per warp.
//
// class:      cuda
// launch:     grid=1, block=64
// arg a:      (np.arange(256) % 7 - 3).astype(np.int8)
// arg b:      (np.arange(128) % 5 - 2).astype(np.int8)
// arg y:      undefined(2, np.int32)
// expect y:   (a.astype(int).reshape(2, 128) * b.astype(int)).sum(1)
// silicon:    clean
// isa:        clean

extern "C" __global__ void dot(const int *a, const int *b, int *y) {
  int w = threadIdx.x / 32, l = threadIdx.x % 32;
  int v = __dp4a(a[w * 32 + l], b[l], 0);
  v = __reduce_add_sync(0xffffffff, v);
  if (l == 0) y[w] = v;
}

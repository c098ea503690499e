// A C++ local that one path leaves uninitialised, copied along and never used on that path.
//
// class:      cuda
// launch:     grid=1, block=32
// arg y:      np.full(32, -1, np.int32)
// expect y:   [99, *[-1] * 31]
// silicon:    clean
// isa:        clean

extern "C" __global__ void lane0(int *y) {
  int v, t = threadIdx.x;
  if (t == 0) v = 98;
  int w = __shfl_sync(0xffffffff, v, t & 16) + 1;
  v = v + 1;
  if (t == 0) y[t] = t == 0 ? v : w;
}

// Keeps the even values: ballots and popcounts give each survivor its place.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      ((np.arange(32) * 5) % 9).astype(np.int32)
// arg y:      np.zeros(32, np.int32)
// arg count:  undefined(1, np.int32)
// expect y:   np.concatenate([x[x % 2 == 0], np.zeros((x % 2).sum(), int)])
// expect count: (x % 2 == 0).sum()
// silicon:    clean
// isa:        clean

extern "C" __global__ void compact(const int *x, int *y, int *count) {
  int v = x[threadIdx.x];
  unsigned keep = __ballot_sync(0xffffffff, v % 2 == 0);
  if (v % 2 == 0) y[__popc(keep & ((1u << threadIdx.x) - 1))] = v;
  if (threadIdx.x == 0) *count = __popc(keep);
}

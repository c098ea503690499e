// The first block stores a row, fences and raises a volatile flag; the second polls, fences, reads.
//
// class:      cuda
// launch:     grid=2, block=1
// arg row:    undefined(4, np.int32)
// arg flag:   np.zeros(1, np.int32)
// arg out:    undefined(4, np.int32)
// expect row: [3, 4, 5, 6]
// expect flag: 1
// expect out: [3, 4, 5, 6]
// silicon:    clean
// isa:        clean

extern "C" __global__ void pass(int *row, volatile int *flag, int *out) {
  if (blockIdx.x == 0) {
    for (int i = 0; i < 4; ++i) row[i] = 3 + i;
    __threadfence();
    *flag = 1;
  } else {
    while (!*flag) {}
    __threadfence();
    for (int i = 0; i < 4; ++i) out[i] = row[i];
  }
}

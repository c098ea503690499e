// Each lane leaves a value in global scratch memory and the first lane of each warp adds them up.
//
// class:      lanes
// missing:    __syncwarp before the leader reads
// source:     PTX ISA 9.7.13.2 "bar.warp.sync"
// launch:     grid=1, block=64
// arg scratch: undefined(64, np.int32)
// arg y:      undefined(2, np.int32)
// expect scratch: np.arange(64) * 2
// expect y:   (np.arange(64) * 2).reshape(2, 32).sum(1)
// silicon:    error race
// isa:        error race

extern "C" __global__ void sums(int *scratch, int *y) {
  int t = threadIdx.x;
  scratch[t] = 2 * t;
  EDGE("bar.warp.sync -1;");
  if (t % 32) return;
  int v = 0;
  for (int i = 0; i < 32; ++i) v += scratch[t + i];
  y[t / 32] = v;
}

// Blocks add floats in the order of their numbers with relaxed polling.
//
// class:      fences
// missing:    __threadfence before the turn is passed on and behind the poll
// source:     PTX ISA 8.8 "Release and acquire patterns"
// launch:     grid=3, block=32
// arg turn:   np.zeros(1, np.uint32)
// arg sum:    np.zeros(1, np.float32)
// expect turn: 3
// expect sum: 6
// silicon:    error race
// isa:        error race

extern "C" __global__ void add(volatile unsigned *turn, float *sum) {
  if (threadIdx.x) return;
  while (*turn != blockIdx.x) {}
  EDGE("fence.acq_rel.gpu;");
  *sum += blockIdx.x + 1;
  EDGE("fence.acq_rel.gpu;");
  *turn = blockIdx.x + 1;
}

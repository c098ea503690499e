// The last-block reduction compiled by nvcc.
//
// class:      fences
// missing:    __threadfence between the partial sum and the ticket
// source:     CUDA C++ Programming Guide "Memory Fence Functions"; PTX ISA 8.8
// launch:     grid=4, block=32
// arg part:   undefined(4, np.int32)
// arg count:  np.zeros(1, np.uint32)
// arg out:    undefined(1, np.int32)
// expect part: [1, 2, 3, 4]
// expect count: 4
// expect out: 10
// silicon:    error race
// isa:        error race

extern "C" __global__ void reduce(int *part, unsigned *count, int *out) {
  if (threadIdx.x) return;
  part[blockIdx.x] = blockIdx.x + 1;
  EDGE("fence.acq_rel.gpu;");
  if (atomicAdd(count, 1) != gridDim.x - 1) return;
  __threadfence();
  int v = 0;
  for (int i = 0; i < gridDim.x; ++i) v += ((volatile int *)part)[i];
  *out = v;
}

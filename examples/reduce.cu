// Sum of an array: a tree in shared memory, then one atomic addition per CTA.
//
//   python -c "import numpy as np; np.save('ones.npy', np.ones(5000, np.float32))"
//   tc-run examples/reduce.cu --grid 20 --block 256 --arg ones.npy --arg zeros=f32,1 --arg s32=5000 --save 1=sum.npy

extern "C" __global__ void reduce(const float* x, float* sum, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sum, part[0]);
}

// Headers of CCCL: half floats, cooperative groups, cuda::barrier and atomic, cuda::ptx, CUB, Thrust.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>

#include <cstdio>
#include <cub/block/block_reduce.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/ptx>

namespace cg = cooperative_groups;

__global__ void halves(const __half *x, float *out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> turn;
  __shared__ float part[64];
  if (threadIdx.x == 0) init(&turn, blockDim.x);
  __syncthreads();
  part[threadIdx.x] = __half2float(x[threadIdx.x]);
  turn.arrive_and_wait();
  using Sum = cub::BlockReduce<float, 64>;
  __shared__ typename Sum::TempStorage room;
  float sum = Sum(room).Sum(part[63 - threadIdx.x]);
  if (threadIdx.x == 0) *out = sum;
}

__global__ void grid_wide(int *data, int *out) {
  cg::grid_group grid = cg::this_grid();
  cuda::atomic_ref<int, cuda::thread_scope_device> total(data[0]);
  total.fetch_add(1, cuda::memory_order_relaxed);
  grid.sync();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
  int lanes = cg::reduce(warp, int(cuda::ptx::get_sreg_laneid()), cg::plus<int>());
  if (grid.thread_rank() == 0) *out = total.load() * 1000 + lanes;
}

int main() {
  thrust::device_vector<__half> x(64, __float2half(0.5f));
  thrust::device_vector<float> sum(1);
  halves<<<1, 64>>>(thrust::raw_pointer_cast(x.data()), thrust::raw_pointer_cast(sum.data()));
  thrust::device_vector<int> data(1, 0), out(1);
  int *from = thrust::raw_pointer_cast(data.data()), *to = thrust::raw_pointer_cast(out.data());
  void *given[] = {&from, &to};
  cudaLaunchCooperativeKernel(grid_wide, dim3(3), dim3(64), given, 0, 0);
  thrust::device_vector<int> counted(1000, 3);
  printf("%g %d %d\n", float(sum[0]), int(out[0]), thrust::reduce(counted.begin(), counted.end()));
}

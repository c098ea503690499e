// What the runtime allows a launch, and what has to be asked for first.
#include <cooperative_groups.h>
#include <cstdio>

__global__ void nothing() {}
__global__ void other() {}
__global__ void __launch_bounds__(128) bounded() {}
__global__ void fixed(int *out) {
  __shared__ int part[1024];
  part[threadIdx.x] = 1;
  out[threadIdx.x] = part[threadIdx.x];
}
__global__ void meet(int *out) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  out[blockIdx.x] = grid.size();
#ifdef MEET
  grid.sync();
#endif
}

static void say(const char *what) { printf("%s: %s\n", what, cudaGetErrorName(cudaGetLastError())); }
static int cluster(int ctas) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = ctas, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = ctas, config.blockDim = 32, config.attrs = &attribute, config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, nothing);
}

int main(int argc, char **argv) {
  int *out;
  cudaMalloc(&out, 4096);
#ifdef MEET
  meet<<<2, 32>>>(out);
#elif defined(RIGHT)
  nothing<<<1, 32, 49152>>>();
  cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448);
  cudaFuncSetAttribute(nothing, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  nothing<<<dim3(1, 65535 / 8), dim3(1, 1, 64), 232448>>>();
  cluster(8), cluster(16);
  cudaFuncSetAttribute(fixed, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448 - 4096);
  fixed<<<1, 1024, 232448 - 4096>>>(out);
  bounded<<<1, 128>>>();
  meet<<<2, 32>>>(out);
  void *arguments[] = {&out};
  cudaLaunchCooperativeKernel(meet, 2, 32, arguments);
  say("all");
#else
  nothing<<<1, 32, 49153>>>(), say("48 KB");
  printf("%d ", cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449));
  say("227 KB");
  cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
  nothing<<<1, 32, 100000>>>(), say("asked for");
  other<<<1, 32, 100000>>>(), say("of another kernel");
  fixed<<<1, 32, 49152 - 4095>>>(out), say("with static");
  printf("%d ", cudaFuncSetAttribute(fixed, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448 - 4095));
  say("with static, 227 KB");
  printf("%d ", cluster(16)), say("cluster of 16");
  bounded<<<1, 129>>>(), say("launch bounds");
  nothing<<<dim3(1, 65536), 32>>>(), say("grid.y");
  nothing<<<1, 1025>>>(), say("threads");
  nothing<<<1, dim3(32, 33)>>>(), say("threads of two axes");
  nothing<<<1, dim3(1, 1, 65)>>>(), say("block.z");
  nothing<<<0, 32>>>(), say("no CTA");
  nothing<<<1, 32>>>(), say("right");
#endif
}

// What the runtime allows a launch, and what has to be asked for first.
#include <cstdio>

__global__ void nothing() {}
__global__ void other() {}
__global__ void __launch_bounds__(128) bounded() {}
__global__ void fixed(int *out) {
  __shared__ int part[1024];
  part[threadIdx.x] = 1;
  out[threadIdx.x] = part[threadIdx.x];
}
__global__ void registers(float *out) {
  float each[160];
#pragma unroll
  for (int i = 0; i < 160; ++i) each[i] = out[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 160; ++i) out[i] = each[i] * each[(i * 7 + 3) % 160];
}
// As cooperative_groups::grid_group has it: without its workspace, sync() traps.
__global__ void meet(int *out, bool sync) {
  unsigned low, high;
  asm("mov.u32 %0, %%envreg2;" : "=r"(low));
  asm("mov.u32 %0, %%envreg1;" : "=r"(high));
  if (sync && !(low | high)) __trap();
  out[blockIdx.x] = gridDim.x;
}

static void say(const char *what) { printf("%s: %s\n", what, cudaGetErrorName(cudaGetLastError())); }
static void cluster(int ctas) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = ctas, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = ctas, config.blockDim = 32, config.attrs = &attribute, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, nothing);
}
template <class F>
static void ask(F *kernel, int bytes) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

int main(int argc, char **argv) {
  int *out;
  bool wrong = argc > 1;
  cudaMalloc(&out, 4096);
  nothing<<<1, 32, 49152 + wrong>>>(), say("48 KB");
  ask(nothing, 232448 + wrong), say("227 KB");
  ask(nothing, 100000), nothing<<<1, 32, 100000 + wrong>>>(), say("asked for");
  (wrong ? other : nothing)<<<1, 32, 100000>>>(), say("of another kernel");
  fixed<<<1, 1024, 49152 - 4096 + wrong>>>(out), say("48 KB with static");
  ask(fixed, 232448 - 4096 + wrong), say("227 KB with static");
  cluster(8), say("cluster of 8");
  if (!wrong) cudaFuncSetAttribute(nothing, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  cluster(16), say("cluster of 16");
  bounded<<<1, 128 + wrong>>>(), say("launch bounds");
  if (wrong) registers<<<1, 512>>>((float *)out);
  say("registers");
  nothing<<<dim3(1, wrong ? 65536 : 64), 32>>>(), say("grid.y");
  nothing<<<1, 1024 + wrong>>>(), say("threads");
  nothing<<<1, dim3(32, 32 + wrong)>>>(), say("threads of two axes");
  nothing<<<1, dim3(1, 1, 64 + wrong)>>>(), say("block.z");
  nothing<<<1 - wrong, 32>>>(), say("CTAs");
  void *arguments[] = {&out, &wrong};
  meet<<<2, 32>>>(out, false), say("grid group");
  if (!wrong) wrong = true, cudaLaunchCooperativeKernel(meet, 2, 32, arguments), say("grid barrier");
  else meet<<<2, 32>>>(out, true), say("grid barrier");
}

// What programs ask about the device, its kernels, memory and streams. Argument "missing": calls a
// function of a library that is not there; it is linked in any case.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

extern "C" int cusolverDnCreate(void **handle);

__global__ void __cluster_dims__(2, 1, 1) ranks(int *out) {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  out[blockIdx.x] = rank;
}

__global__ void __launch_bounds__(256) add(int *data, int value) {
  __shared__ int part[256];
  part[threadIdx.x] = data[threadIdx.x];
  data[threadIdx.x] = part[threadIdx.x] + value;
}

static void say(void *text) { printf("%s\n", (const char *)text); }

int main(int count, char **arguments) {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  int cooperative, clusters;
  cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0);
  cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, 0);
  printf("%s, %d.%d, %d SMs, %d KB, %d %d %d %d, other %d\n", p.name, p.major, p.minor,
         p.multiProcessorCount, (int)(p.sharedMemPerBlockOptin >> 10), p.cooperativeLaunch == cooperative,
         p.clusterLaunch == clusters, p.managedMemory, p.l2CacheSize >> 20, cudaGetDeviceProperties(&p, 1));

  cudaFuncAttributes known, clustered;
  cudaFuncGetAttributes(&known, add), cudaFuncGetAttributes(&clustered, ranks);
  int grid, block, active, none;
  cudaOccupancyMaxPotentialBlockSize(&grid, &block, add);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&active, add, 256, 100 << 10);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&none, add, 512, 0);
  printf("%d bytes, %d threads, sm_%d, cluster of %d; %d x %d, %d, %d\n", (int)known.sharedSizeBytes,
         known.maxThreadsPerBlock, known.ptxVersion, clustered.requiredClusterWidth, grid, block, active, none);

  cudaStream_t stream;
  cudaStreamCreate(&stream);
  int *data, host[256], own[256], back[4];
  cudaMallocAsync(&data, sizeof host, stream);
  cudaMemsetAsync(data, 0, sizeof host, stream);
  add<<<1, 256, 0, stream>>>(data, 3);
  cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream);
  cudaLaunchHostFunc(stream, say, (void *)"stream");
  for (int i = 0; i < 256; ++i) own[i] = i;
  cudaHostRegister(own, sizeof own, cudaHostRegisterDefault);
  add<<<1, 256, 0, stream>>>(own, 1);
  cudaPointerAttributes device, registered, plain;
  cudaPointerGetAttributes(&device, data + 7), cudaPointerGetAttributes(&registered, own);
  cudaPointerGetAttributes(&plain, host);
  cudaHostUnregister(own);
  ranks<<<4, 1, 0, stream>>>(data);
  cudaMemcpy(back, data, sizeof back, cudaMemcpyDefault);
  cudaFreeAsync(data, stream), cudaStreamSynchronize(stream), cudaStreamDestroy(stream);
  const char *words;
  cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &words);
  printf("%d %d %d, %d%d%d%d, %d %d %d, %s, %s\n", host[255], own[0], own[255], back[0], back[1], back[2],
         back[3], device.type, registered.type, plain.type, words, cudaGetErrorString(cudaDeviceSynchronize()));

  if (count > 1 && !strcmp(arguments[1], "missing")) {
    void *handle;
    return cusolverDnCreate(&handle);
  }
}

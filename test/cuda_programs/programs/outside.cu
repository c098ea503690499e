// A store behind an allocation; with an argument the memory is freed before.
#include <cstdio>

__global__ void fill(int* out) { out[threadIdx.x] = threadIdx.x; }

int main(int argc, char**) {
  int* out;
  cudaMalloc(&out, (argc > 1 ? 64 : 63) * sizeof(int));
  if (argc > 1) cudaFree(out);
  fill<<<1, 64>>>(out);
  int first = cudaGetLastError(), later = cudaMalloc(&out, 4), last = cudaDeviceSynchronize();
  printf("%d %d %d %s\n", first, later, last, cudaGetErrorName((cudaError_t)last));
}

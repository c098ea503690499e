// Errors that a program is told, and that it can go on from.
#include <cstdio>

__global__ void nothing() {}

static const char *cooperative(int ctas) {
  cudaLaunchCooperativeKernel(nothing, ctas, 64, nullptr);
  return cudaGetErrorName(cudaGetLastError());
}

int main() {
  nothing<<<1, 2000>>>();
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  int i;
  printf("%s\n", cudaGetErrorName(cudaFree(&i)));
  nothing<<<1, 32>>>();
  cudaGetLastError();
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  printf("%s\n", cooperative(4737));
  printf("%s\n", cooperative(4736));
}

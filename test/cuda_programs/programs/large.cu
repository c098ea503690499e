// 4,096 CTAs, whose results a second launch reads; with -DWRONG the last one writes too far.
#include <cstdio>

__global__ void triple(int *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifndef WRONG
  if (i < n)
#endif
    p[i] = 3 * i;
}
__global__ void gather(const int *p, int *q, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) q[i] = p[p[i] % n];
}

int main() {
  int n = 4096 * 64 - 5, *p, *q;
  int *back = new int[n];
  cudaMalloc(&p, n * 4), cudaMalloc(&q, n * 4);
  triple<<<4096, 64>>>(p, n);
  gather<<<4096, 64>>>(p, q, n);
  cudaMemcpy(back, q, n * 4, cudaMemcpyDefault);
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += back[i] != 3 * (3 * i % n);
  puts(wrong ? "wrong" : "right");
  return wrong != 0;
}

// Memory of device code's malloc lasts beyond the launch: until it is freed, by any kernel.
#include <cstdio>
#include <cstring>

struct Node {
  int value;
  Node *next;
};
__device__ Node *list;

__global__ void push(Node **all) {
  Node *own = all[blockIdx.x * blockDim.x + threadIdx.x] = new Node;
  own->value = threadIdx.x, own->next = nullptr;
}
__global__ void link(Node **all, int n) {
  for (int i = 0; i < n; ++i) all[i]->next = list, list = all[i];
}
__global__ void count(int *out) {
  int found = 0;
  for (Node *at = list; at; at = at->next) found += at->value;
  *out = found;
}
__global__ void drop() {
  while (Node *at = list) list = at->next, delete at;
}
__global__ void large(int *out) {
  void *p = malloc(6 << 20), *q = malloc(6 << 20);
  *out = (p != 0) + (q != 0), free(p), free(q);
}

int sum(int *d, void (*kernel)(int *)) {
  int n = -1;
  kernel<<<1, 1>>>(d);
  cudaMemcpy(&n, d, sizeof n, cudaMemcpyDefault);
  return n;
}

int main(int argc, char **argv) {
  const int threads = 64;
  Node **all, *first;
  int *out;
  cudaMalloc(&all, threads * sizeof(Node *)), cudaMalloc(&out, sizeof *out);
  if (argc > 1 && !strcmp(argv[1], "limit"))
    printf("%s\n", cudaGetErrorString(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20)));
  printf("%d of 2\n", sum(out, large));
  printf("too late: %s\n", cudaGetErrorString(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20)));
  for (int i = 0; i < 2; ++i) {
    push<<<2, threads / 2>>>(all), link<<<1, 1>>>(all, threads);
    printf("sum %d", sum(out, count));
    drop<<<1, 1>>>(), printf(", then %d\n", sum(out, count));
  }
  cudaMemcpy(&first, all, sizeof first, cudaMemcpyDefault);
  printf("copy: %s\n", cudaGetErrorString(cudaMemcpy(out, first, 4, cudaMemcpyDefault)));
  printf("free: %s\n", cudaGetErrorString(cudaFree(first)));
  if (argc > 1 && !strcmp(argv[1], "freed")) link<<<1, 1>>>(all, 1);
}

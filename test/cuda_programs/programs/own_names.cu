// Names of the driver, of the runtime and of the C library that the program defines itself.
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

extern "C" {
int (*cuDriverGetVersion)(int *);
int cuInit = 5, Py_Initialize = 6;

static int calls;
void *calloc(size_t n, size_t size) noexcept { return ++calls, malloc(n * size); }
cudaError_t cudaProfilerStop() { return cudaErrorUnknown; }
}

__global__ void twice(int *p) { *p *= 2; }

int main() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  int version = 0, *p;
  cuDriverGetVersion = (int (*)(int *))dlsym(driver, "cuDriverGetVersion");
  cuDriverGetVersion(&version);
  cudaMallocManaged(&p, 4);
  *p = cuInit + Py_Initialize;
  twice<<<1, 1>>>(p);
  calls = 0;
  void *volatile own = calloc(2, 4);
  printf("%d %d %d %d\n", version, *p, calls, cudaProfilerStop());
  free(own);
}

// Sobol generators in kernels, with the tables of the host library; and the library's own sequence.
#include <cstdio>
#include <curand.h>
#include <curand_kernel.h>

const int DIMENSIONS = 5, COUNT = 24;

template <typename State, typename Vectors, typename... Constant>
__global__ void draw(Vectors *vectors, float *out, Constant *...constants) {
  State state;
  curand_init(vectors[threadIdx.x], constants[threadIdx.x]..., blockIdx.x, &state);
  out[threadIdx.x * COUNT + blockIdx.x] = curand_uniform(&state);
}
template <typename T> T *copied(const T *host) {
  T *device;
  cudaMalloc(&device, DIMENSIONS * sizeof(T));
  cudaMemcpy(device, host, DIMENSIONS * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}
void print(const char *name, float *d) {
  float h[DIMENSIONS * COUNT];
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("%s", name);
  for (float each : h) printf(" %.9g", each);
  printf("\n");
}

int main() {
  float *out;
  cudaMalloc(&out, DIMENSIONS * COUNT * sizeof(float));
  curandDirectionVectors32_t *v, *w;
  curandDirectionVectors64_t *x;
  unsigned *c;
  int bad = curandGetDirectionVectors32(&v, CURAND_DIRECTION_VECTORS_32_JOEKUO6);
  bad |= curandGetDirectionVectors32(&w, CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6);
  bad |= curandGetScrambleConstants32(&c);
  bad |= curandGetDirectionVectors64(&x, CURAND_DIRECTION_VECTORS_64_JOEKUO6);
  if (bad) return printf("error %d\n", bad), 1;
  draw<curandStateSobol32><<<COUNT, DIMENSIONS>>>(copied(v), out), print("kernel", out);
  draw<curandStateSobol64><<<COUNT, DIMENSIONS>>>(copied(x), out), print("kernel64", out);
  draw<curandStateScrambledSobol32><<<COUNT, DIMENSIONS>>>(copied(w), out, copied(c)), print("scrambled", out);
  curandGenerator_t sequence;
  curandCreateGenerator(&sequence, CURAND_RNG_QUASI_SOBOL32);
  curandSetQuasiRandomGeneratorDimensions(sequence, DIMENSIONS);
  curandGenerateUniform(sequence, out, DIMENSIONS * COUNT), print("host", out);
}
